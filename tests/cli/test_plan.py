"""``hwcheck plan`` as a user meets it: exit codes, forms, files, options."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from hwcheck.cli.main import main
from hwcheck.lab import nodes
from hwcheck.plan.file import read_plan
from tests.lab.lab_node import NOT_IN_A_TREE
from tests.machines import as_q, hgx_h200

EXAMPLES = Path(nodes.__file__).parents[1] / "examples"
HEALTHY = as_q(hgx_h200())
WORK = as_q(hgx_h200({1: {"persistence": "Disabled"}}))
UNTOLD = as_q(hgx_h200()).replace("Enabled", "Insufficient Permissions", 1)
WAIVER = "- {check: gpu.persistence, owner: ops, reason: a test node of ours, expires: 2999-01-01}\n"

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def post(tmp_path: Path) -> Any:
    """Return a function that writes a text and gives its path."""

    def write(text: str, name: str = "posted.txt") -> str:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def plan(*arguments: str) -> int:
    """Run the verb in this process; argparse's own exit counts as an exit code."""
    try:
        return main(["plan", *arguments])
    except SystemExit as error:
        return int(error.code or 0)


def printed(capsys: Capture) -> dict[str, Any]:
    """Return the plan that was printed as JSON."""
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    return told


@pytest.mark.parametrize(
    ("text", "code", "detailed"),
    [(HEALTHY, 0, 0), (WORK, 0, 4), (UNTOLD, 3, 3)],
    ids=["nothing to do", "work", "not told"],
)
def test_the_exit_code_says_whether_all_was_told(text: str, code: int, detailed: int, post: Any) -> None:
    """0 also with work to do, 4 for it where that is asked for, 3 where an answer is missing."""
    assert plan("--evidence", post(text)) == code
    assert plan("--evidence", post(text), "--detailed-exitcode") == detailed


def test_examples_are_planned(capsys: Capture) -> None:
    """The healthy one has nothing to do, the faulty one a reset and a list for people."""
    assert plan("--evidence", str(EXAMPLES / "hgx-h200-healthy")) == 0
    assert "Nothing to do" in capsys.readouterr().out
    assert plan("--evidence", str(EXAMPLES / "hgx-h200-faulty"), "--detailed-exitcode") == 4
    out = capsys.readouterr().out
    assert "hbm.remap_pending  reset the GPU" in out
    assert "rdma.port_down on mlx5_4/1" in out


def test_a_plan_is_kept_for_apply(post: Any, tmp_path: Path, capsys: Capture) -> None:
    """The file is whole, for its owner only, and the same as is printed."""
    path = tmp_path / "plan.json"
    assert plan("--evidence", post(WORK), "--format", "json", "-o", str(path)) == 0
    assert path.stat().st_mode & 0o777 == 0o600
    kept = json.loads(path.read_text(encoding="utf-8"))
    assert kept == printed(capsys)
    (node,) = read_plan(path).nodes
    assert [(step.mechanism, step.key) for step in node.steps] == [
        ("unit_property", "nvidia-persistenced.service ExecStart"),
        ("unit", "nvidia-persistenced.service"),
        ("gpu", "persistence"),
    ]
    assert [item.name for item in tmp_path.iterdir() if item.name.startswith(".")] == []


def test_a_plan_that_cannot_be_kept_is_an_error(post: Any, tmp_path: Path, capsys: Capture) -> None:
    """No folder is made, and nothing is printed as if it had been kept."""
    assert plan("--evidence", post(WORK), "-o", str(tmp_path / "none" / "plan.json")) == 2
    assert "No such file" in capsys.readouterr().err


def test_ansible_vars_are_printed(post: Any, capsys: Capture) -> None:
    """An inventory with the settings of each node, every text unsafe."""
    assert plan("--evidence", post(WORK), "--format", "ansible-vars") == 0
    out = capsys.readouterr().out
    assert "hwcheck_settings:" in out
    assert 'mechanism: !unsafe "gpu"' in out


def test_waivers_and_families_narrow_the_plan(post: Any, capsys: Capture) -> None:
    """What the site accepts is left out; what is not asked for is not planned."""
    path, waivers = post(WORK), post(WAIVER, "waivers.yaml")
    assert plan("--evidence", path, "--waivers", waivers, "--detailed-exitcode", "--format", "json") == 0
    (node,) = printed(capsys)["nodes"]
    assert [one["why"] for one in node["left_out"]] == ["waived"]
    assert plan("--evidence", path, "--only", "thermal", "--detailed-exitcode") == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--opt-in", "nonsense"], "nonsense: no check and no family"),
        (["--only", "nonsense"], "no such family"),
        (["-w", "gpu-1"], "without reading any node"),
        (["--site", "/nonexistent.yaml"], "cannot be read"),
    ],
)
def test_wrong_usage_stops_before_anything(arguments: list[str], words: str, post: Any, capsys: Capture) -> None:
    """Exit 2, nothing is printed as a plan."""
    assert plan("--evidence", post(WORK), *arguments) == 2
    told = capsys.readouterr()
    assert words in told.err
    assert told.out == ""


def test_settings_that_contradict_each_other_are_an_error(post: Any, tmp_path: Path, capsys: Capture) -> None:
    """Two checks of a site want different values for one key: both are named, no plan is made."""
    check = """
      {fact: gpu.persistence_mode, title: Ours, expect: {equals: true}, why: because of it, source: site, remedy: {
      kind: write, text: Set it as wanted.,
      write: {mechanism: sysctl, key: vm.swappiness, value: %s, indirect: true}}}"""
    site = post("checks:\n" + "".join(f"  sysctl.{name}:{check % name[-1]}\n" for name in ("ours1", "ours2")), "s.yaml")
    assert plan("--evidence", post(WORK), "--site", site, "-o", str(tmp_path / "plan.json")) == 2
    assert "sysctl.ours1 wants sysctl vm.swappiness = 1, sysctl.ours2 wants 2" in capsys.readouterr().err
    assert not (tmp_path / "plan.json").exists()


def test_a_node_without_a_known_platform_has_no_plan(post: Any, capsys: Capture) -> None:
    """Said in the report and by the exit code; a profile named on the command line is believed."""
    path = post(as_q(hgx_h200()).replace("NVIDIA H200", "NVIDIA X9").replace("233510DE", "999910DE"))
    assert plan("--evidence", path) == 3
    assert "platform is not known" in capsys.readouterr().out
    assert plan("--evidence", path, "--profile", "hgx-h200") in (0, 3)
    assert "platform is not known" not in capsys.readouterr().out


def test_an_unreachable_node_has_no_plan(capsys: Capture) -> None:
    """It is said, and counts as not told."""
    options = ["--ssh-option", "Port=1", "--connect-timeout", "2", "--timeout", "5", "-q"]
    assert plan("-w", "localhost", *options) == 3
    assert "No plan for it: could not be reached" in capsys.readouterr().out


def lab(tmp_path: Path, *faults: str) -> tuple[nodes.Node, list[str]]:
    """Start a lab node, and return the options that read it."""
    node, _ = nodes.up(tmp_path, "gpu-001", "hgx-h200", list(faults))
    off = [word for name in NOT_IN_A_TREE for word in ("--off", name)]
    return node, ["--live-root", str(node.root), "-q", *off]


def test_a_live_node_is_planned(tmp_path: Path, capsys: Capture) -> None:
    """Read, judged and planned in one go; nothing on it changes."""
    node, options = lab(tmp_path, "numa-balancing", "mrrs-512")
    before = {path: path.stat().st_mtime_ns for path in node.root.rglob("*") if path.is_file()}
    with mock.patch.dict("os.environ", node.environment()):
        assert plan(*options, "--detailed-exitcode", "--format", "json") == 4
        (told,) = printed(capsys)["nodes"]
        assert [step["key"] for step in told["steps"]] == ["kernel.numa_balancing"]
        assert [one["id"] for one in told["left_out"] if one["why"] == "opt-in"] == ["pcie.max_read_request"]
        assert plan(*options, "--opt-in", "pcie.max_read_request,cpu", "--format", "json") in (0, 3)
        (told,) = printed(capsys)["nodes"]
        assert [step["mechanism"] for step in told["steps"]] == ["pci_bits", "sysctl"]
    assert {path: path.stat().st_mtime_ns for path in node.root.rglob("*") if path.is_file()} == before


def test_what_no_check_wants_any_more_is_shown_as_retired(tmp_path: Path, capsys: Capture) -> None:
    """Our line of a check that a site layer had: under a heading of its own, and no setting is counted for it."""
    node, options = lab(tmp_path)
    ours = node.root / "etc/sysctl.d/90-hwcheck.conf"
    ours.write_text("# hwcheck: sysctl.ours; key vm.swappiness\nvm.swappiness = 11\n", encoding="utf-8")
    with mock.patch.dict("os.environ", node.environment()):
        assert plan(*options, "--detailed-exitcode") == 4
    told = " ".join(capsys.readouterr().out.split())
    assert "1 retired, no reboot; disturbs nothing." in told
    assert "Retired, what runs stays until the next boot sysctl.ours sysctl vm.swappiness was hwcheck keeps" in told


def test_options_are_told_without_loading_what_judges() -> None:
    """The verb starts as fast as check does: help needs no parser of any tool."""
    code = (
        "import sys; from hwcheck.cli.main import build_parser; build_parser()\n"
        "late = ('rich', 'yaml', 'jsonschema', 'hwcheck.checks', 'hwcheck.profiles', 'hwcheck.plan')\n"
        "print([name for name in late if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
