"""Roles on lab nodes, by plain ansible-playbook: predicted, changed, then unchanged, undone; no template is run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hwcheck.lab.host.lab import HostLab, missing
from tests.lab.host_machine import login, plant
from tests.writers.perftest import program

ROOT = Path(__file__).parents[2]
LACKS = missing()
pytestmark = [
    pytest.mark.lab,
    pytest.mark.slow,
    pytest.mark.skipif(bool(LACKS), reason="the lab's host form needs " + "; ".join(LACKS)),
]
pytest.importorskip("ansible")
DROP_IN = "/etc/sysctl.d/90-hwcheck.conf"
WANTED = {"vm.swappiness": "11", "net.ipv4.tcp_rmem": "4096 131072 16777216"}
NODES = ("one", "two")
UNSAFE = """
- hosts: one
  gather_facts: false
  module_defaults: {2}
  roles:
    - role: rdma_sysctl
      vars:
        rdma_sysctl_values:
          vm.swappiness: !unsafe "{0}"
    - role: limits
      vars:
        limits_services: [!unsafe "{1}"]
        limits_service_memlock: infinity
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostLab]:
    """Return two small nodes that run."""
    home = tmp_path_factory.mktemp("lab")
    for name in NODES:
        plant(home, name)
    lab = HostLab(home)
    assert lab.up(list(NODES)) == {}
    yield lab
    lab.down()


class Played:
    """What a play has come to."""

    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.code, self.text = done.returncode, done.stdout + done.stderr
        self.changed = [int(found) for found in re.findall(r"changed=(\d+)", done.stdout)]


def play(lab: HostLab | Path, tmp_path: Path, file: str | list[dict[str, Any]], *words: str) -> Played:
    """Run a playbook of ours, or plays of a test, as a user of plain Ansible does."""
    path = str(ROOT / "playbooks" / str(file))
    if not isinstance(file, str):
        path = str(tmp_path / "play.yml")
        Path(path).write_text(json.dumps(file), encoding="utf-8")
    ansible = str(Path(sys.executable).with_name("ansible-playbook"))
    inventory = lab.inventory if isinstance(lab, HostLab) else lab
    environment = {
        **os.environ,
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_LOCAL_TEMP": str(tmp_path / "tmp"),
    }
    return Played(
        subprocess.run(
            [ansible, "-i", str(inventory), path, *words], capture_output=True, text=True, check=False,
            env=environment, cwd=ROOT, timeout=180,
        )
    )  # fmt: skip


def role(name: str, **variables: Any) -> list[dict[str, Any]]:
    """Return a play of one role."""
    return [{"hosts": "all", "gather_facts": False, "roles": [{"role": name, "vars": variables}]}]


def state(lab: HostLab) -> list[str]:
    """Return what the nodes say of what the tests change."""
    script = f"cat {DROP_IN} /proc/sys/vm/swappiness /proc/sys/net/ipv4/tcp_rmem"
    return [login(lab, name, script).replace("\t", " ") for name in NODES]


def test_predicted_changed_unchanged_undone(lab: HostLab, tmp_path: Path) -> None:
    """Check mode says what the first run changes and writes nothing; the second changes nothing; undo restores all."""
    before = state(lab)
    asked = role("rdma_sysctl", rdma_sysctl_values=WANTED)
    predicted = play(lab, tmp_path, asked, "--check", "--diff")
    assert (predicted.code, predicted.changed) == (0, [1, 1]), predicted.text
    assert "+vm.swappiness = 11" in predicted.text
    assert state(lab) == before
    asked[0]["module_defaults"] = {"hwcheck_apply": {"run": "role-run", "journal_dir": str(tmp_path / "kept")}}
    first = play(lab, tmp_path, asked)
    assert (first.code, first.changed) == (0, [1, 1]), first.text
    assert "vm.swappiness = 11" in state(lab)[0]
    assert sorted(path.name for path in (tmp_path / "kept/journal").iterdir()) == ["one.json", "two.json"]
    del asked[0]["module_defaults"]
    again = play(lab, tmp_path, asked)
    assert (again.code, again.changed) == (0, [0, 0]), again.text
    undone = play(lab, tmp_path, "rollback.yml", "-e", "hwcheck_run=role-run")
    assert undone.code == 0, undone.text
    assert state(lab) == before


def test_rollback_demands_a_run(lab: HostLab, tmp_path: Path) -> None:
    """Without a name nothing is touched, and the message says where it stands."""
    undone = play(lab, tmp_path, "rollback.yml")
    assert undone.code == 2
    assert "Name the run" in undone.text


def test_every_role_without_variables_changes_nothing(lab: HostLab, tmp_path: Path) -> None:
    """All roles in one play, nothing asked: what could not be read is told, and nothing is written or refused."""
    names = sorted(path.name for path in (ROOT / "roles").iterdir() if path.is_dir())
    before = state(lab)
    played = play(lab, tmp_path, [{"hosts": "all", "gather_facts": False, "roles": [{"role": name} for name in names]}])
    assert (played.code, played.changed) == (0, [0, 0]), played.text
    assert state(lab) == before
    assert login(lab, "one", "ls /var/lib/hwcheck/journal 2>/dev/null | grep -v role-run; true") == ""


@pytest.mark.parametrize(
    ("name", "variables", "why"),
    [
        ("rdma_sysctl", {"rdma_sysctl_values": {"vm.swappiness": True}}, "quote words such as"),
        ("rdma_sysctl", {"rdma_sysctl_values": {"dev.ib_uverbs.max_devices": "128"}}, "this kernel has no parameter"),
        ("rdma_sysctl", {"rdma_sysctl_values": "vm.swappiness=1"}, "must map keys to values"),
        ("pcie_aspm", {"pcie_aspm_policy": "off"}, "must be one of"),
        ("rdma_sysctl", {"rdma_sysctl_interfaces": ["lo"], "rdma_sysctl_arp_ignore": True}, "quote words such as"),
        ("qp_warmup", {"qp_warmup_peers": [{"name": "one"}], "qp_warmup_methods": ["rping"]}, "address"),
    ],
)
def test_what_makes_no_sense_is_refused(
    lab: HostLab, tmp_path: Path, name: str, variables: dict[str, Any], why: str
) -> None:
    """Unknown keys, YAML's booleans where a word is meant, and wrong types end the play with a sentence."""
    before = state(lab)
    played = play(lab, tmp_path, role(name, **variables))
    assert played.code == 2, played.text
    assert why in played.text
    assert state(lab) == before


def test_a_template_in_a_value_is_never_evaluated(lab: HostLab, tmp_path: Path) -> None:
    """Neither in what a node said, nor in a value marked unsafe, as plans mark them; it is refused as what it is."""
    marks = [tmp_path / f"evaluated-{number}" for number in range(3)]
    templates = ["{{ lookup('pipe', 'touch " + str(mark) + "') }}" for mark in marks]
    login(lab, "one", f"mkdir -p /run; cat > /run/said <<'END'\n{templates[0]}\nEND")
    tasks = [
        {"ansible.builtin.command": "cat /run/said", "register": "said", "changed_when": False},
        {"ansible.builtin.set_fact": {"told": {"vm.swappiness": "{{ said.stdout }}"}}},
        {"ansible.builtin.include_role": {"name": "rdma_sysctl"}, "vars": {"rdma_sysctl_values": "{{ told }}"}},
    ]
    one_run = {"hwcheck_apply": {"run": "template"}}
    played = play(lab, tmp_path, [{"hosts": "one", "gather_facts": False, "module_defaults": one_run, "tasks": tasks}])
    assert "touch" in played.text
    unsafe = tmp_path / "unsafe.yml"
    unsafe.write_text(UNSAFE.format(*templates[1:], json.dumps(one_run)), encoding="utf-8")
    ansible = str(Path(sys.executable).with_name("ansible-playbook"))
    subprocess.run(
        [ansible, "-i", str(lab.inventory), str(unsafe)], capture_output=True, check=False, cwd=ROOT, timeout=180,
        env={**os.environ, "ANSIBLE_LOCAL_TEMP": str(tmp_path / "tmp")},
    )  # fmt: skip
    assert not [mark for mark in marks if mark.exists()]
    assert play(lab, tmp_path, "rollback.yml", "-e", "hwcheck_run=template", "--limit", "one").code == 0
    assert login(lab, "one", "ls /tmp/evaluated* 2>/dev/null; cat /proc/sys/vm/swappiness") == "60\n"


def test_apply_takes_settings_from_the_inventory(lab: HostLab, tmp_path: Path) -> None:
    """``hwcheck_settings`` of plain Ansible users, one list for all mechanisms; then back."""
    variables = json.dumps({"hwcheck_settings": [{"mechanism": "sysctl", "values": WANTED}], "hwcheck_run": "plain"})
    predicted = play(lab, tmp_path, "apply.yml", "-e", variables, "--check")
    assert predicted.changed == [1, 1], predicted.text
    assert play(lab, tmp_path, "apply.yml", "-e", variables).changed == [1, 1]
    assert play(lab, tmp_path, "apply.yml", "-e", json.dumps({"hwcheck_settings": []})).changed == [0, 0]
    assert play(lab, tmp_path, "rollback.yml", "-e", "hwcheck_run=plain").code == 0
    assert "vm.swappiness" not in state(lab)[0]


def test_peers_warm_each_other(tmp_path: Path) -> None:
    """Two inventory hosts of this machine, a program of perftest's manners on PATH; results lie on the controller."""
    binary = tmp_path / "bin/ib_send_lat"
    binary.parent.mkdir()
    binary.write_text(program(sys.executable), encoding="utf-8")
    binary.chmod(0o755)
    hosts = {
        name: {
            "address": f"127.0.0.{number}",
            "ansible_connection": "local",
            "ansible_python_interpreter": sys.executable,
        }
        for number, name in enumerate(("one", "two"), 2)
    }
    inventory = tmp_path / "hosts.json"
    inventory.write_text(json.dumps({"all": {"hosts": hosts}}), encoding="utf-8")
    peers = [{"name": name, "address": host["address"]} for name, host in hosts.items()]
    peers.append({"name": "absent", "address": "127.0.0.99"})
    asked = role(
        "qp_warmup", qp_warmup_peers=peers, qp_warmup_methods=["send_lat"], qp_warmup_results_dir=str(tmp_path / "got")
    )
    asked[0]["environment"] = {"PATH": f"{binary.parent}:{os.environ['PATH']}", "ADDRESS": "{{ address }}"}
    played = play(inventory, tmp_path, asked)
    assert (played.code, played.changed) == (0, [0, 0]), played.text
    told = [json.loads((tmp_path / "got" / f"{name}.json").read_text(encoding="utf-8")) for name in hosts]
    assert [one["pairs"][0]["status"] for one in told] == ["warmed", "warmed"]
    assert [one["left_out"] for one in told] == [["absent"], ["absent"]]
    assert [one["ratio"] for node in told for one in node["measurements"]] == [pytest.approx(41.5 / 2.1)]
    few = play(inventory, tmp_path, asked, "--forks", "1")
    assert few.code == 2
    assert "have to run at once" in few.text
