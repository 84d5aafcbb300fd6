"""What every role has, and what none has: a typed interface, a page about it; no value and no platform of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from hwcheck.mechanisms import MECHANISMS

ROOT = Path(__file__).parents[2]
ROLES = sorted(path for path in (ROOT / "roles").iterdir() if path.is_dir())
MODULES = sorted(path.stem for path in (ROOT / "playbooks/library").glob("*.py"))
PURPOSES = {
    "pcie_aspm", "gpu_persistence", "gpu_clocks", "rdma_qos", "rdma_sysctl", "qp_warmup", "numa_pinning", "time_sync",
    "cpu_power", "kernel_cmdline", "limits", "pcie_acs", "pcie_mrrs", "gpudirect", "driver_stack", "nic_firmware",
}  # fmt: skip
OWN_WORDS = {"", "held", "loaded"}
"""What a mechanism writes whoever asks; every other value comes from the caller."""
PLATFORM = re.compile(r"\b(?:[ABH][12]00|[BG]B?[23]00|GH200|HGX|DGX|NVL\d+|Hopper|Blackwell|Grace)\b", re.IGNORECASE)
HEADINGS = ["Why", "Variables", "What is written", "Undo", "Refused", "Second run", "Never", "Example"]

each_role = pytest.mark.parametrize("role", ROLES, ids=lambda path: path.name)


def load(role: Path, file: str) -> Any:
    """Read a YAML file of a role."""
    return yaml.safe_load((role / file).read_text(encoding="utf-8"))


def options(role: Path) -> dict[str, Any]:
    """Return the public variables of a role, as its argument specification has them."""
    found: dict[str, Any] = load(role, "meta/argument_specs.yml")["argument_specs"]["main"]["options"]
    return found


def calls(role: Path, module: str) -> list[dict[str, Any]]:
    """Return the calls of a module in a role."""
    return [task[module] for task in load(role, "tasks/main.yml") if module in task]


def test_there_is_a_role_for_each_purpose() -> None:
    """All that the profiles name as role exist, and no other."""
    assert {role.name for role in ROLES} == PURPOSES
    layers = "".join(_text(path) for path in (ROOT / "hwcheck/profiles").glob("*.yaml"))
    assert set(re.findall(r"^\s+role: (\w+)", layers, re.MULTILINE)) <= PURPOSES


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@each_role
def test_the_interface_is_typed(role: Path) -> None:
    """Each variable is specified with type, default and a sentence, bears the role's name, and defaults agree."""
    defaults = load(role, "defaults/main.yml")
    specified = options(role)
    assert set(defaults) == set(specified)
    for name, option in specified.items():
        assert name.startswith(f"{role.name}_")
        assert option["type"]
        assert option["description"].endswith(".")
        assert defaults[name] == option.get("default"), name
        if option["type"] == "list":
            assert option["elements"], name


@each_role
def test_by_default_nothing_is_asked_for(role: Path) -> None:
    """Without variables a role names no value: lists and maps are empty, words are empty, switches are off."""
    if role.name == "qp_warmup":
        assert (
            load(role, "defaults/main.yml")["qp_warmup_peers"],
            load(role, "defaults/main.yml")["qp_warmup_methods"],
        ) == ([], [])
        return
    for name, value in load(role, "defaults/main.yml").items():
        assert value in ("", [], {}, False), name


@each_role
def test_a_role_is_one_call(role: Path) -> None:
    """It writes by one call of our module, of known mechanisms, and has the result in a variable of its own name."""
    if role.name == "qp_warmup":
        assert len(calls(role, "hwcheck_warmup")) == 1
        return
    (call,) = calls(role, "hwcheck_apply")
    assert {setting["mechanism"] for setting in call["settings"]} <= set(MECHANISMS)
    assert call["refusals_ok"] == f"{{{{ {role.name}_refusals_ok }}}}"
    modules = {key for task in load(role, "tasks/main.yml") for key in task} - {
        "name",
        "register",
        "when",
        "failed_when",
    }
    assert modules <= {"hwcheck_apply", "hwcheck_advise", "ansible.builtin.debug"}


@each_role
def test_keys_are_those_of_the_mechanism(role: Path) -> None:
    """Where a mechanism has few keys, a role names no other."""
    for call in calls(role, "hwcheck_apply"):
        for setting in call["settings"]:
            mechanism = MECHANISMS[setting["mechanism"]]
            values = setting.get("values")
            if mechanism.of_subject:
                assert set(values) <= set(mechanism.key.split(", ")), setting["id"]
                assert "subjects" in setting, setting["id"]


@each_role
def test_no_value_lives_in_a_role(role: Path) -> None:
    """Every value is the caller's variable, or the only word that its mechanism knows."""
    for call in calls(role, "hwcheck_apply"):
        for setting in call["settings"]:
            values = setting.get("values", {})
            values = values.values() if isinstance(values, dict) else [values]
            for value in (*values, *([setting["value"]] if "value" in setting else [])):
                assert value in OWN_WORDS or re.fullmatch(r"\{\{.*\}\}", str(value), re.DOTALL), value


@each_role
def test_no_platform_lives_in_a_role(role: Path) -> None:
    """A role knows purposes, not machines; its page may say what holds for which."""
    for path in role.rglob("*.yml"):
        assert PLATFORM.findall(_text(path)) == [], path


@each_role
def test_a_page_says_what_it_does(role: Path) -> None:
    """Why, variables, what is written, undo, refusals, second run, what it never does, an example that parses."""
    text = _text(role / "README.md")
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert headings == (
        HEADINGS if role.name != "qp_warmup" else [one for one in HEADINGS if one not in ("Undo", "Refused")]
    )
    for name in options(role):
        assert f"`{name}`" in text, name
    (example,) = re.findall(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    (play,) = yaml.safe_load(example)
    (used,) = play["roles"]
    assert used["role"] == role.name
    assert set(used.get("vars", {})) <= set(options(role))


@pytest.mark.parametrize("module", MODULES)
def test_ansible_doc_shows_each_module(module: str, tmp_path: Path) -> None:
    """Options of the documentation are those that the module takes, and examples and results are described."""
    pytest.importorskip("ansible")
    words = [str(Path(sys.executable).with_name("ansible-doc")), "-t", "module", "--json", module]
    environment = {
        **os.environ,
        "ANSIBLE_LOCAL_TEMP": str(tmp_path),
        "ANSIBLE_LIBRARY": str(ROOT / "playbooks/library"),
    }
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=environment, cwd=tmp_path)
    told = json.loads(done.stdout)[module]
    source = _text(ROOT / f"playbooks/library/{module}.py")
    taken = set(re.findall(r'^            "(\w+)": \{', source, re.MULTILINE))
    assert set(told["doc"]["options"]) == taken
    assert told["examples"]
    assert told["return"]
    assert told["doc"]["attributes"]["check_mode"]["support"] == "full"


@pytest.mark.slow
def test_the_linter_for_playbooks_finds_nothing(tmp_path: Path) -> None:
    """Profile production, nothing skipped."""
    pytest.importorskip("ansiblelint")
    binaries = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{binaries}:{os.environ['PATH']}", "ANSIBLE_LOCAL_TEMP": str(tmp_path)}
    words = [str(binaries / "ansible-lint"), "--nocolor", "playbooks", "roles", "inventories"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment, cwd=ROOT)
    assert done.returncode == 0, done.stdout
    config = yaml.safe_load(_text(ROOT / ".ansible-lint"))
    assert config["profile"] == "production"
    assert not {"skip_list", "warn_list"} & set(config)
