"""A plan for people, and for Ansible."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from hwcheck.errors import PlanError
from hwcheck.facts import Subject, gpu_at
from hwcheck.findings import Act, Write
from hwcheck.plan import NodePlan
from hwcheck.report.plan_text import render_plan
from hwcheck.report.plan_vars import ansible_vars
from hwcheck.report.sheet import Terminal
from hwcheck.transports.nodesets import fold
from tests.plan.made import balancing, finding, plan, snapshot

HOSTILE = "{{ lookup('pipe', 'echo evaluated') }}\u202e\x1b[31m"
ACT = finding("fabric.state", acts=(Act("restart", "nvidia-fabricmanager.service"),), disturbs="board")
GPUS = [gpu_at(f"{bus}:00.0") for bus in ("18", "2a")]


def told(*nodes: NodePlan, width: int = 120) -> str:
    """Render plans as text."""
    out = io.StringIO()
    render_plan(nodes, Terminal(file=out, width=width, markup=False, highlight=False, emoji=False), fold)
    return out.getvalue()


def of(name: str, *findings: Any, **more: Any) -> NodePlan:
    """Plan a node of this name."""
    return plan(*findings, node=name, **more)


def test_nodes_with_one_plan_are_told_once() -> None:
    """As a node set, with what differs in a plan of its own."""
    wanted = finding("sysctl.numa_balancing", writes=(balancing(),))
    text = told(*(of(f"gpu-{number:03}", wanted) for number in range(1, 17)), of("gpu-017"))
    assert "gpu-[001-016]  hgx-h200, 16 nodes alike" in text
    assert text.count("sysctl kernel.numa_balancing = 0") == 1
    assert "gpu-017" in text
    assert "17 nodes: 16 with work, 1 with nothing to do, 0 without a plan." in text
    assert "Nothing was changed." in text


def test_what_differs_is_not_folded() -> None:
    """Another value seen is another plan: the change is not the same."""
    wanted = finding("sysctl.numa_balancing", writes=(balancing(),))
    facts = [snapshot(("sysctl.values", {"kernel.numa_balancing": value})) for value in ("1", "2")]
    text = told(*(of(f"gpu-{number}", wanted, facts=one) for number, one in enumerate(facts)))
    assert "alike" not in text
    assert "running 1" in text
    assert "running 2" in text


def test_the_report_says_all_of_a_plan() -> None:
    """What, from which value, its impact, what is restarted, opt-in, by hand, and one reboot."""
    text = told(
        plan(
            *(finding("gpu.persistence", writes=(Write("gpu", "persistence", "1"),), subject=gpu, seen={
                "running": False, "next boot": None}) for gpu in GPUS),
            finding("limits.x", writes=(Write("unit_property", "a.service LimitMEMLOCK", "infinity",
                                              restart="a.service"),), disturbs="node"),
            finding("pcie.max_read_request", writes=(Write("pci_bits", "max_read_request", "4096", opt_in=True),)),
            finding("kernel.iommu", writes=(Write("kernel_argument", "iommu", "pt", irreversible=True),)),
            finding("service.x", acts=(Act("start", "b.service"),)),
            finding("pcie.link"),
        )
    )  # fmt: skip
    for words in (
        "one reboot; disturbs the whole node", "gpu persistence = 1", "2: 0000:18:00.0, 0000:2a:00.0", "running 0",
        "restart   a.service", "cannot be undone", "start the unit b.service", "--opt-in CHECK",
        "pci_bits max_read_request = 4096", "reboot  once, after all settings", "Needs a person", "What to do about it",
    ):  # fmt: skip
        assert words in text, words


def test_nothing_to_do_is_said() -> None:
    """An empty plan is an answer."""
    assert "Nothing to do, nothing was changed." in told(plan())


def test_a_node_without_a_plan_says_why() -> None:
    """It is not taken for one with nothing to do."""
    text = told(NodePlan("gpu-1", "base", refused="could not be reached: refused"))
    assert "NONE" in text
    assert "No plan for it: could not be reached" in text


@pytest.mark.parametrize("width", [30, 80])
def test_no_node_writes_on_the_terminal(width: int) -> None:
    """Escapes of a node are spelled out, in keys, values, reasons and names."""
    write = Write("sysctl", "net.ipv4.conf.{subject}.arp_ignore", HOSTILE)
    text = told(of(HOSTILE, finding("sysctl.arp_ignore", writes=(write,), subject=Subject("netdev", HOSTILE)),
                   finding(HOSTILE), ACT), width=width)  # fmt: skip
    assert "\x1b" not in text
    assert "\u202e" not in text


# --- ansible-vars


class Strict(yaml.SafeLoader):
    """Loads ``!unsafe`` as a pair, so that a text without it can be told."""


Strict.add_constructor("!unsafe", lambda loader, node: ("unsafe", loader.construct_scalar(node)))


def texts(value: Any) -> list[Any]:
    """Go through all values that are no map and no list."""
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in texts(item)]
    return [leaf for item in value for leaf in texts(item)] if isinstance(value, list) else [value]


def hostile_plan() -> NodePlan:
    """Make a plan in which a node has put a template into a key."""
    write = Write("sysctl", "net.ipv4.conf.{subject}.arp_ignore", HOSTILE, restart=HOSTILE)
    return plan(finding("sysctl.arp_ignore", writes=(write,), subject=Subject("netdev", HOSTILE)), ACT)


def test_every_text_for_ansible_is_unsafe() -> None:
    """No string stands there without the tag, but for an empty one and what YAML takes for no string."""
    loaded = yaml.load(ansible_vars([hostile_plan()]), Loader=Strict)  # noqa: S506 - made from the safe loader
    host = loaded["all"]["hosts"]["gpu-001"]
    assert all(isinstance(leaf, (tuple, bool)) or leaf in (None, "") for leaf in texts(host))
    (step,) = host["hwcheck_settings"]
    assert step["value"] == ("unsafe", HOSTILE)
    assert host["hwcheck_acts"] == [
        {"do": ("unsafe", "restart"), "target": ("unsafe", "nvidia-fabricmanager.service"),
         "disturbs": ("unsafe", "board")}
    ]  # fmt: skip
    assert host["hwcheck_reboot"] is False


def test_ansible_takes_every_text_as_it_stands(tmp_path: Path) -> None:
    """Neither is the template of a node evaluated, nor a word, number or time of YAML taken for another."""
    words = [
        HOSTILE,
        "yes",
        "off",
        "null",
        "~",
        "0",
        "010",
        "0x1f",
        "1_000",
        "1:30",
        "1e3",
        "2026-12-01",
        "<<",
        "=",
        " ",
    ]
    writes = [Write("sysctl", f"a.n{number}", word) for number, word in enumerate(words)]
    node = plan(*(finding(f"a.n{n}", writes=(one,)) for n, one in enumerate(writes)))
    inventory, play = tmp_path / "vars.yml", tmp_path / "play.yml"
    inventory.write_text(ansible_vars([node]), encoding="utf-8")
    play.write_text(
        "- hosts: all\n  gather_facts: false\n  connection: local\n  tasks:\n"
        "    - copy: {content: '{{ hwcheck_settings | to_json }}', dest: " + f"'{tmp_path}/out.json'" + "}\n",
        encoding="utf-8",
    )
    command = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", str(inventory), str(play)]
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    taken = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert taken == [step.for_node() for step in node.steps]
    assert {step["value"] for step in taken} == set(words)


def test_a_host_name_that_is_a_template_is_refused() -> None:
    """Keys of YAML cannot be tagged."""
    with pytest.raises(PlanError, match="no host name"):
        ansible_vars([NodePlan("{{ x }}", "base")])


def test_this_machine_is_localhost() -> None:
    """A node without a name is the one Ansible runs on."""
    assert "localhost:" in ansible_vars([NodePlan("", "base")])
