"""How Ansible is told to reach nodes that the command line names."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from hwcheck.apply import ansible
from hwcheck.apply.ansible import inventory_of
from hwcheck.cli.rolling import _variables, demand_writer
from hwcheck.errors import UsageError
from hwcheck.transports.target import Target

HERE = Namespace(root="", live_root="")


def test_options_of_ssh_keep_their_blanks() -> None:
    """A jump host is one option, as OpenSSH wants it."""
    jump = ("ProxyCommand", "ssh -W %h:%p bastion")
    told = _variables(Target("n1", "n1", connection="ssh", options=(jump, ("Port", "22"))))["ansible_ssh_common_args"]
    assert shlex.split(told) == ["-o", "ProxyCommand=ssh -W %h:%p bastion", "-o", "Port=22"]


def test_ansible_takes_a_password_as_it_stands(tmp_path: Path) -> None:
    """Also where it looks like a template, a number or a word of YAML."""
    passwords = ["{{ 7 * 7 }}", "{% raw %}", "0123", "yes", "null", "a: b", "\u00e9 '\""]
    file = tmp_path / "hosts.yaml"
    file.write_text(inventory_of({f"n{n}": {"told": word} for n, word in enumerate(passwords)}), encoding="utf-8")
    play = tmp_path / "play.yml"
    task = {"copy": {"content": "{{ told | to_json }}", "dest": f"{tmp_path}/{{{{ inventory_hostname }}}}.json"}}
    play.write_text(
        json.dumps([{"hosts": "all", "gather_facts": False, "connection": "local", "tasks": [task]}]), encoding="utf-8"
    )
    command = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", str(file), str(play)]
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    told = [json.loads((tmp_path / f"n{n}.json").read_text(encoding="utf-8")) for n in range(len(passwords))]
    assert told == passwords


def test_without_ansible_only_this_machine_is_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """That is said before anybody consents or a run begins."""
    monkeypatch.setattr("hwcheck.cli.rolling.missing", lambda: "ansible-runner is not installed")
    assert ansible.missing() == ""
    with pytest.raises(UsageError, match="ansible-runner is not installed; nothing was changed"):
        demand_writer(HERE, [Target("n1", "n1", connection="ssh")])
    demand_writer(HERE, [Target("", "", connection="local")])
    demand_writer(Namespace(root="/image", live_root=""), [Target("n1", "n1", connection="ssh")])
