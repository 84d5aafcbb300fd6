"""``hwcheck check`` as a user meets it: exit codes, streams, options."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hwcheck.cli.main import main
from tests.machines import as_q, hgx_h200

HEALTHY = as_q(hgx_h200())
FAILING = as_q(hgx_h200({2: {"remap_failure": "Yes"}}))
WARNING = as_q(hgx_h200({1: {"persistence": "Disabled"}}))
UNTOLD = as_q(hgx_h200()).replace("Enabled", "Insufficient Permissions", 1)
BOTH = as_q(hgx_h200({2: {"remap_failure": "Yes"}})).replace("Enabled", "Insufficient Permissions", 1)
WAIVER = "- {{check: {check}, owner: ops, reason: known since acceptance, expires: {expires}}}\n"

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def post(tmp_path: Path) -> Any:
    """Return a function that writes a text and gives its path."""

    def write(text: str | bytes, name: str = "posted.txt") -> str:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return write


def check(*arguments: str) -> int:
    """Run the verb in this process; argparse's own exit counts as an exit code."""
    try:
        return main(["check", *arguments])
    except SystemExit as error:
        return int(error.code or 0)


def judged(capsys: Capture) -> dict[str, Any]:
    """Return the run that was printed as JSON."""
    run: dict[str, Any] = json.loads(capsys.readouterr().out)
    return run


@pytest.mark.parametrize(
    ("text", "code", "verdict"),
    [(HEALTHY, 0, "pass"), (WARNING, 0, "pass"), (FAILING, 1, "fail"), (UNTOLD, 3, "unknown"), (BOTH, 1, "fail")],
    ids=["healthy", "warning", "fail", "unknown", "fail beats unknown"],
)
def test_the_exit_code_is_the_verdict(text: str, code: int, verdict: str, post: Any, capsys: Capture) -> None:
    """0 no fail, 1 a fail, 3 something could not be told; a fail beats the rest, a warning alone is 0."""
    assert check("--evidence", post(text), "--format", "json") == code
    assert judged(capsys)["verdict"] == verdict


@pytest.mark.parametrize(("text", "code"), [(HEALTHY, 0), (WARNING, 1), (UNTOLD, 3)], ids=["pass", "warn", "unknown"])
def test_strict_counts_warnings_as_fails(text: str, code: int, post: Any) -> None:
    """A pipeline may refuse warnings; what is unknown stays unknown."""
    assert check("--evidence", post(text), "--strict", "--format", "json") == code


def test_only_judges_the_families_named(post: Any, capsys: Capture) -> None:
    """The findings, and the exit code, are of those families alone."""
    path = post(FAILING)
    assert check("--evidence", path, "--only", "thermal,power", "--format", "json") == 0
    assert {finding["check"].partition(".")[0] for finding in judged(capsys)["findings"]} <= {
        "thermal",
        "power",
        "evidence",
    }
    assert check("--evidence", path, "--only", "thermal", "--only", "hbm", "--format", "json") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--only", "termal"], "no such family: termal"),
        (["--profile", "hgx-h2000"], "no such profile: hgx-h2000"),
        (["--format", "yaml"], "invalid choice"),
        (["--waivers", "{dir}/none.yaml"], "none.yaml: cannot be read"),
        (["--site", "{dir}/none.yaml"], "none.yaml: cannot be read"),
        (["--evidence", "{dir}/none.txt"], "No such file"),
        (["--evidence", "{dir}/\x1b[31mnone"], "No such file"),
        (["--nonsense"], "unrecognized arguments"),
    ],
)
def test_wrong_usage_is_told_and_nothing_is_judged(
    arguments: list[str], words: str, tmp_path: Path, post: Any, capsys: Capture
) -> None:
    """Exit code 2, one line on standard error, nothing on standard output, no escapes."""
    filled = [argument.replace("{dir}", str(tmp_path)) for argument in arguments]
    evidence = [] if "--evidence" in arguments else ["--evidence", post(HEALTHY)]
    assert check(*evidence, *filled) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err
    assert "Traceback" not in captured.err
    assert "\x1b" not in captured.err


@pytest.mark.parametrize(
    ("option", "text", "words"),
    [
        ("--site", "checks:\n  gpu.mig:\n    severity: disaster\n", "file.yaml:3: "),
        ("--site", "checks:\n  gpu.mgi:\n    severity: warn\n", "file.yaml:2: no such check: gpu.mgi"),
        ("--waivers", "- {check: hbm.total, owner: ops, reason: x}\n", "file.yaml:1: a waiver needs expires"),
        ("--waivers", "check: hbm.total\n", "file.yaml:1: a waiver file is a list"),
        ("--waivers", b"\xff\xfe\x00", "file.yaml: cannot be read"),
    ],
)
def test_a_wrong_file_is_told_with_its_line(
    option: str, text: str | bytes, words: str, post: Any, capsys: Capture
) -> None:
    """A layer or waiver file that does not load stops the run before anything is judged."""
    assert check("--evidence", post(HEALTHY), option, post(text, "file.yaml")) == 2
    captured = capsys.readouterr()
    assert words in captured.err
    assert captured.out == ""


def test_a_site_layer_changes_what_is_expected(post: Any, capsys: Capture) -> None:
    """The site's wish is judged by, and the finding tells its value."""
    entry = "{expect: {equals: true}, severity: fail, why: sliced on purpose, source: site standard 12}"
    site = f"checks:\n  gpu.mig: {entry}\n"
    assert check("--evidence", post(HEALTHY), "--site", post(site, "site.yaml"), "--format", "json") == 1
    failed = [finding for finding in judged(capsys)["findings"] if finding["status"] == "fail"]
    assert {finding["check"] for finding in failed} == {"gpu.mig"}


def test_a_profile_given_is_judged_by_whatever_the_evidence_says(post: Any, capsys: Capture) -> None:
    """An H200 judged as an H100 has the wrong memory; the report says that the profile was given."""
    assert check("--evidence", post(HEALTHY), "--profile", "hgx-h100", "--format", "json") == 1
    run = judged(capsys)
    assert (run["nodes"][0]["platform"], run["nodes"][0]["confidence"]) == ("hgx-h100", "given")
    assert run["profile"]["name"] == "hgx-h100"


def test_a_waived_finding_is_shown_and_does_not_count(post: Any, capsys: Capture) -> None:
    """The fail stays in the report, with who accepted it and why."""
    path = post(FAILING)
    assert check("--evidence", path, "--format", "json") == 1
    failing = {finding["check"] for finding in judged(capsys)["findings"] if finding["status"] == "fail"}
    waivers = "".join(WAIVER.format(check=id, expires="2999-12-31") for id in failing)
    assert check("--evidence", path, "--waivers", post(waivers, "waivers.yaml"), "--format", "json") == 0
    run = judged(capsys)
    assert run["verdict"] == "pass"
    assert all(finding["waived"]["owner"] == "ops" for finding in run["findings"] if finding["status"] == "fail")


def test_an_expired_waiver_counts_for_nothing(post: Any) -> None:
    """After its last day the finding counts again."""
    waivers = post(WAIVER.format(check='"*"', expires="2020-01-31"), "waivers.yaml")
    assert check("--evidence", post(FAILING), "--waivers", waivers, "--format", "json") == 1


@pytest.mark.parametrize("form", ["text", "json", "jsonl", "junit"])
@pytest.mark.parametrize("data", [b"", b"\n\n", b"hello world\n", bytes(range(256)) * 8, b"\x1f\x8b\x08"])
def test_evidence_that_tells_nothing_is_unknown(data: bytes, form: str, post: Any, capsys: Capture) -> None:
    """An empty, foreign, binary or broken file is never healthy: exit code 3, and the report says so."""
    assert check("--evidence", post(data), "--format", form) == 3
    captured = capsys.readouterr()
    assert "no check could be answered" in captured.out.replace("\n    ", " ")
    assert captured.err == ""


@pytest.mark.parametrize(("data", "words"), [(b"", "an empty file"), (bytes(64), "a binary file, no text")])
def test_a_file_without_text_is_named(data: bytes, words: str, post: Any, capsys: Capture) -> None:
    """The report says which file gave nothing, and why."""
    check("--evidence", post(data, "kern.log"))
    assert words in " ".join(capsys.readouterr().out.split())


def test_a_file_that_cannot_be_read_is_wrong_usage(post: Any, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason of the system is told; root may read anything, so the refusal is simulated."""
    path, really_open = post(HEALTHY), Path.open

    def refuse(self: Path, *arguments: Any, **more: Any) -> Any:
        if str(self) == path:
            raise PermissionError(13, "Permission denied")
        return really_open(self, *arguments, **more)

    monkeypatch.setattr(Path, "open", refuse)
    assert check("--evidence", path) == 2
    assert capsys.readouterr().err == f"hwcheck: {path}: Permission denied\n"


def test_a_dash_reads_standard_input(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """``nvidia-smi -q | hwcheck check --evidence -``."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(FAILING.encode())))
    assert check("--evidence", "-", "--format", "json") == 1
    failed = next(finding for finding in judged(capsys)["findings"] if finding["status"] == "fail")
    assert failed["evidence"]["file" if "file" in failed["evidence"] else "source"]


def test_several_paths_are_one_node(post: Any, capsys: Capture) -> None:
    """Posted files belong together; a healthy one does not hide a sick one."""
    xid = "[  812.5] NVRM: Xid (PCI:0000:18:00): 79, pid=77, name=train, GPU has fallen off the bus.\n"
    assert check("--evidence", post(HEALTHY), post(xid, "dmesg.txt"), "--format", "json") == 1
    run = judged(capsys)
    assert len(run["nodes"]) == 1
    assert "xid.79" in {finding["check"] for finding in run["findings"] if finding["status"] == "fail"}


def test_jsonl_prints_one_run_a_node(post: Any, capsys: Capture) -> None:
    """A fleet streams through, one line each; the exit code is the worst of all."""
    lines = [f"{host}: {line}" for host, text in (("n1", HEALTHY), ("n2", FAILING)) for line in text.splitlines()]
    assert check("--evidence", post("\n".join(lines)), "--format", "jsonl") == 1
    runs = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(run["nodes"][0]["name"], run["verdict"]) for run in runs] == [("n1", "pass"), ("n2", "fail")]


def test_json_and_errors_keep_apart(post: Any, capsys: Capture) -> None:
    """Standard output is JSON and nothing else; standard error is empty when all went well."""
    check("--evidence", post(UNTOLD), "--format", "json")
    captured = capsys.readouterr()
    assert json.loads(captured.out)["schema"] == "hwcheck.run/1"
    assert captured.err == ""


def test_escapes_in_evidence_reach_no_terminal(post: Any, capsys: Capture) -> None:
    """What a node prints cannot paint the operator's screen, in any form of report."""
    evil = HEALTHY.replace("NVIDIA H200", "NVIDIA \x1b[31mH200\x07\u202e[bold]x[/bold]", 1)
    for form in ("text", "json", "junit"):
        check("--evidence", post(evil), "--format", form)
        out = capsys.readouterr().out
        assert not {"\x1b", "\x07", "\u202e"} & set(out)


def test_no_verb_is_wrong_usage(capsys: Capture) -> None:
    """The help goes to standard error, so that a pipe gets nothing."""
    assert main([]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "check" in captured.err


def test_version_is_told(capsys: Capture) -> None:
    """``--version`` is for bug reports."""
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out.startswith("hwcheck ")


def test_an_interrupt_is_no_traceback(post: Any, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends with the shell's code for it."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("hwcheck.cli.judging.read_paths", interrupt)
    assert check("--evidence", post(HEALTHY)) == 130
    assert capsys.readouterr().err == "hwcheck: interrupted\n"


@pytest.mark.parametrize("form", ["text", "json", "jsonl", "junit"])
def test_a_reader_that_went_away_is_no_traceback(form: str, post: Any, root: Path) -> None:
    """``hwcheck ... | head -1`` ends quietly."""
    command = [sys.executable, "-m", "hwcheck", "check", "--evidence", post(FAILING), "--format", form]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=root) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141  # as a shell says of SIGPIPE


def test_a_terminal_of_another_encoding_is_served(post: Any, root: Path) -> None:
    """A report with characters that the terminal lacks is printed all the same."""
    text = FAILING.replace("NVIDIA H200", "NVIDIA H200 – größer")
    for form in ("text", "json", "junit"):
        done = subprocess.run(
            [sys.executable, "-m", "hwcheck", "check", "--evidence", post(text), "--format", form],
            env={"PYTHONIOENCODING": "ascii"}, capture_output=True, cwd=root, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (1, b"")
