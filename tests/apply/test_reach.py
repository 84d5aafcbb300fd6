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
from hwcheck.apply.ansible import NodeResult, Play, _Listener, inventory_of
from hwcheck.cli.rolling import _variables, ansible_settings, demand_writer
from hwcheck.errors import UsageError
from hwcheck.transports.target import Target

LINE = "{{ lookup(1) }} x"
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


def test_what_reading_took_from_the_command_line_goes_to_ansible_too() -> None:
    """The ssh_config, host keys, options of an inventory's nodes and the Python; what was not given says nothing."""
    given = Namespace(
        ssh_config=Path("my config"), known_hosts=[Path("keys")], ssh_option=["ProxyCommand=ssh -W %h:%p b"],
        inventory=["i"], node_python="/opt/python3",
    )  # fmt: skip
    told = ansible_settings(given)
    assert shlex.split(told["ANSIBLE_SSH_EXTRA_ARGS"]) == [
        "-F", "my config", "-o", 'UserKnownHostsFile="keys" "~/.ssh/known_hosts" "~/.ssh/known_hosts2"',
        "-o", "ProxyCommand=ssh -W %h:%p b",
    ]  # fmt: skip
    assert told["ANSIBLE_PYTHON_INTERPRETER"] == "/opt/python3"
    nothing = Namespace(ssh_config=None, known_hosts=[], ssh_option=[], inventory=["i"], node_python="")
    assert ansible_settings(nothing) == {}


def test_the_password_of_sudo_goes_by_a_file_of_its_own(tmp_path: Path) -> None:
    """Never as an argument or a variable; nobody else may read it."""
    words = Play((), {}, become_password=LINE)._password_file(str(tmp_path))
    assert words == ["--become-password-file", str(tmp_path / "become")]
    assert (tmp_path / "become").read_text(encoding="utf-8") == LINE + "\n"
    assert (tmp_path / "become").stat().st_mode & 0o777 == 0o600
    assert Play((), {})._password_file(str(tmp_path)) == []


@pytest.mark.parametrize(("res", "why"), [
    ({"msg": "no start of JSON", "module_stderr": "x\n/bin/sh: 1: sudo: not\x1b found\n"},
     "/bin/sh: 1: sudo: not found (no start of JSON)"),
    ({"msg": "no start of JSON", "module_stdout": "Killed\n", "module_stderr": ""}, "Killed (no start of JSON)"),
    ({"msg": "failed", "why": "the node is not idle"}, "the node is not idle"),
    ({}, "failed"),
])  # fmt: skip
def test_a_module_without_an_answer_is_told_with_what_its_shell_said(res: dict[str, str], why: str) -> None:
    """Ansible's own words do not say that there is no sudo, or no Python."""
    found = {"n1": NodeResult()}
    _Listener(found, lambda *_: None)({"event": "runner_on_failed", "event_data": {"host": "n1", "res": res}})
    assert (found["n1"].ok, found["n1"].why) == (False, why)


def test_without_ansible_only_this_machine_is_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """That is said before anybody consents or a run begins."""
    monkeypatch.setattr("hwcheck.cli.rolling.missing", lambda: "ansible-runner is not installed")
    assert ansible.missing() == ""
    with pytest.raises(UsageError, match="ansible-runner is not installed; nothing was changed"):
        demand_writer(HERE, [Target("n1", "n1", connection="ssh")])
    demand_writer(HERE, [Target("", "", connection="local")])
    demand_writer(Namespace(root="/image", live_root=""), [Target("n1", "n1", connection="ssh")])
