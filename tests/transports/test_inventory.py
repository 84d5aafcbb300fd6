"""Inventories: read by Ansible, kept while their files are the same, refused where we cannot do what they say."""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from hwcheck.errors import UsageError
from hwcheck.transports import inventory
from hwcheck.transports.inventory import Query, read_inventory
from hwcheck.transports.target import LOCAL, PARAMIKO, SSH, Become, Target
from hwcheck.transports.variables import read_option, target_of

TOOL = Path(sys.executable).parent / "ansible-inventory"
needs_ansible = pytest.mark.skipif(
    not (TOOL.exists() or shutil.which("ansible-inventory")), reason="no ansible-inventory (pip install ansible-core)"
)
PASSWORD = "hunter2"  # noqa: S105 - of a test
HOSTS = """
all:
  children:
    gpu:
      hosts:
        gpu-10: {ansible_host: 10.9.8.7, ansible_port: 2222}
        gpu-2: {hwcheck_site: {bounds: {x: {value: 1}}}, motd: "{{ lookup('pipe', 'touch EVIL') }}"}
    login:
      hosts:
        login-1: {ansible_user: ops}
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make an inventory, and stand beside it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hosts.yml").write_text(HOSTS)
    return tmp_path


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Count the starts of Ansible."""
    calls: list[list[str]] = []
    really = inventory._run

    def run(argv: list[str], given: str | None = None) -> str:
        calls.append(argv)
        return really(argv, given)

    monkeypatch.setattr(inventory, "_run", run)
    return calls


@needs_ansible
def test_hosts_come_in_the_order_of_the_inventory(place: Path) -> None:
    """Not sorted by name, and each with the variables that concern us alone."""
    hosts = read_inventory(Query((str(place / "hosts.yml"),)))
    assert list(hosts) == ["gpu-10", "gpu-2", "login-1"]
    assert hosts["gpu-10"] == {"ansible_host": "10.9.8.7", "ansible_port": 2222}
    assert hosts["gpu-2"] == {"hwcheck_site": {"bounds": {"x": {"value": 1}}}}
    assert not (place / "EVIL").exists()


@needs_ansible
@pytest.mark.usefixtures("place")
def test_a_pattern_limits_the_hosts() -> None:
    """As Ansible understands it; one that matches nothing is wrong usage."""
    assert list(read_inventory(Query(("hosts.yml",), "gpu:!gpu-2"))) == ["gpu-10"]
    with pytest.raises(UsageError, match=r"no host in hosts.yml matches nobody\*"):
        read_inventory(Query(("hosts.yml",), "nobody*"))


@needs_ansible
@pytest.mark.usefixtures("place")
def test_a_list_with_commas_is_an_inventory() -> None:
    """As for Ansible."""
    assert list(read_inventory(Query(("b-1,a-2",)))) == ["b-1", "a-2"]


@needs_ansible
def test_the_answer_is_kept_while_the_files_are_the_same(place: Path, counted: list[list[str]]) -> None:
    """A change of a file, of a group's variables or of the pattern asks again."""
    query = Query(("hosts.yml",))
    first = read_inventory(query)
    assert read_inventory(query) == first
    assert len(counted) == 1
    (place / "group_vars").mkdir()
    (place / "group_vars" / "gpu.yml").write_text("ansible_user: root\n")
    assert read_inventory(query)["gpu-2"]["ansible_user"] == "root"
    read_inventory(Query(("hosts.yml",), "gpu"))
    assert len(counted) == 3
    kept = list(Path(os.environ["XDG_CACHE_HOME"], "hwcheck").iterdir())
    assert {stat.S_IMODE(file.stat().st_mode) for file in kept} == {0o600}


@needs_ansible
@pytest.mark.parametrize("variable", ["ansible_password", "ansible_become_password"])
def test_an_inventory_with_passwords_is_never_kept(variable: str, place: Path, counted: list[list[str]]) -> None:
    """Nowhere on disk."""
    (place / "hosts.yml").write_text(f"all: {{hosts: {{gpu-1: {{{variable}: hunter2}}}}}}\n")
    for _ in range(2):
        assert read_inventory(Query(("hosts.yml",)))["gpu-1"] == {variable: "hunter2"}
    assert len(counted) == 2
    assert not any(
        b"hunter2" in file.read_bytes() for file in Path(os.environ["XDG_CACHE_HOME"]).rglob("*") if file.is_file()
    )


@needs_ansible
def test_a_program_as_inventory_is_asked_each_time(place: Path, counted: list[list[str]]) -> None:
    """It may say something else the next time."""
    script = place / "hosts.sh"
    script.write_text('#!/bin/sh\necho \'{"all": {"hosts": ["gpu-1"]}}\'\n')
    script.chmod(0o755)
    for _ in range(2):
        assert list(read_inventory(Query(("hosts.sh",)))) == ["gpu-1"]
    assert len(counted) == 2


@needs_ansible
def test_a_variable_that_is_a_vault_is_opened(place: Path) -> None:
    """With the password file that Ansible gets too; without it the variable is named."""
    (place / "key").write_text("secret")
    (place / "key").chmod(0o600)
    vault = ("--vault-password-file", "key")
    locked = inventory._run(
        [inventory._tool("ansible-vault"), "encrypt_string", *vault, "hunter2", "--name", "ansible_become_password"]
    )
    (place / "group_vars").mkdir()
    (place / "group_vars" / "all.yml").write_text(locked)
    hosts = read_inventory(Query(("hosts.yml",), vault=vault))
    assert {host: variables["ansible_become_password"] for host, variables in hosts.items()} == dict.fromkeys(
        hosts, "hunter2"
    )
    with pytest.raises(UsageError, match="gpu-10: ansible_become_password is locked"):
        read_inventory(Query(("hosts.yml",)))


@needs_ansible
@pytest.mark.parametrize("text", ["{", "- a\n- b\n", "\x00\x01"])
def test_an_inventory_that_is_none_is_wrong_usage(text: str, place: Path) -> None:
    """Never an empty fleet."""
    (place / "hosts.yml").write_text(text)
    with pytest.raises(UsageError):
        [target_of(name, variables, Target("")) for name, variables in read_inventory(Query(("hosts.yml",))).items()]


def test_an_inventory_that_is_not_there_is_wrong_usage() -> None:
    """Said before Ansible is started."""
    with pytest.raises(UsageError, match=r"no such inventory: none\.yml"):
        read_inventory(Query(("none.yml",)))


def test_without_ansible_the_extra_is_named(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """How to install it."""
    monkeypatch.setattr(sys, "executable", str(place / "python"))
    monkeypatch.setenv("PATH", str(place))
    with pytest.raises(UsageError, match=r"pip install 'hwcheck\[ansible\]'"):
        read_inventory(Query(("hosts.yml",)))


@pytest.mark.usefixtures("place")
def test_a_cache_that_others_could_write_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies there is taken for nothing."""
    query = Query(("hosts.yml",))
    file = Path(os.environ["XDG_CACHE_HOME"], "hwcheck", inventory._key(query))
    file.parent.mkdir()
    file.write_text(json.dumps([["evil", {}]]))
    file.chmod(0o666)
    monkeypatch.setattr(inventory, "_ask", lambda _: {"all": {"hosts": ["gpu-1"]}})
    assert list(read_inventory(query)) == ["gpu-1"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


# ------------------------------------------------------------------------------------------------------------ variables


def target(**variables: Any) -> Target:
    """Read the variables of a host."""
    return target_of("gpu-1", variables, Target("", user="ops", options=(("Port", "1"),)))


def test_variables_say_how_to_reach_a_host() -> None:
    """Each goes before the command line."""
    found = target(
        ansible_host="10.1.1.1", ansible_port="2200", ansible_user="root", ansible_ssh_private_key_file="~/key",
        ansible_python_interpreter="/usr/bin/python3.11", ansible_become=True, ansible_become_password=PASSWORD,
        ansible_ssh_common_args="-o ProxyJump=bastion -oCompression=yes -p 7 -C", hwcheck_profile="hgx-h200",
        hwcheck_site={"checks": {}}, ansible_timeout=7, site_thing={"any": "thing"}, hwcheck_failure_domain=12,
    )  # fmt: skip
    assert found == Target(
        "gpu-1", "10.1.1.1", 2200, "root", ("~/key",), "/usr/bin/python3.11", SSH, Become("root", PASSWORD), None,
        (("ProxyJump", "bastion"), ("Compression", "yes"), ("Port", "7"), ("ConnectTimeout", "7"), ("Port", "1")),
        "hgx-h200", {"checks": {}}, "12",
    )  # fmt: skip
    assert target() == Target("gpu-1", user="ops", options=(("Port", "1"),))


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("ssh", SSH),
        ("smart", SSH),
        ("ansible.builtin.ssh", SSH),
        ("paramiko", PARAMIKO),
        ("paramiko_ssh", PARAMIKO),
        ("local", LOCAL),
    ],
)
def test_connections_that_there_are(word: str, kind: str) -> None:
    """In all of Ansible's spellings."""
    assert target(ansible_connection=word).connection == kind


@pytest.mark.parametrize("auto", ["auto", "auto_silent", "auto_legacy"])
def test_a_search_for_python_is_no_path(auto: str) -> None:
    """Our own default is used."""
    assert target(ansible_python_interpreter=auto).python == ""


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"ansible_connection": "winrm"}, "ansible_connection is winrm"),
        ({"ansible_become": "yes", "ansible_become_method": "su"}, "only sudo"),
        ({"ansible_become": "yes", "ansible_become_flags": "-i"}, "ansible_become_flags"),
        ({"ansible_become": "perhaps"}, "neither yes nor no"),
        ({"ansible_become_exe": "/opt/sudo"}, "ansible_become_exe cannot be honoured"),
        ({"ansible_ssh_private_key": "---"}, "ansible_ssh_private_key cannot be honoured"),
        ({"ansible_paramiko_proxy_command": "nc"}, "ansible_paramiko_proxy_command cannot be honoured"),
        ({"ansible_shell_type": "powershell"}, "ansible_shell_type cannot be honoured"),
        ({"ansible_ssh_common_args": "-W host:22"}, "has -W"),
        ({"ansible_ssh_extra_args": "-o"}, "without a value"),
        ({"ansible_ssh_args": "'"}, "cannot be read"),
        ({"ansible_port": "22a"}, "is no port"),
        ({"ansible_port": 70000}, "is no port"),
        ({"ansible_host": "{{ inventory_hostname }}.example.com"}, "is a template"),
        ({"ansible_user": "{{ lookup('pipe', 'id') }}"}, "is a template"),
        ({"ansible_host": "-oProxyCommand=evil"}, "begins with a dash"),
        ({"ansible_user": "a\nb"}, "cannot be printed"),
        ({"ansible_host": ["a"]}, "is no text"),
        ({"hwcheck_site": "hgx"}, "is no mapping"),
        ({"hwcheck_sites": {}}, "hwcheck_sites is not known"),
        ({"hwcheck_failure_domain": "{{ rack }}"}, "is a template"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(variables: dict[str, Any], words: str) -> None:
    """With the host; never ignored."""
    with pytest.raises(UsageError) as error:
        target(**variables)
    assert words in str(error.value)
    assert str(error.value).startswith("host gpu-1: ")


def test_switching_off_the_host_key_is_an_option_for_the_transport_to_refuse() -> None:
    """The built-in client always checks; OpenSSH does as it is told."""
    assert target(ansible_host_key_checking=False).options[0] == ("StrictHostKeyChecking", "no")
    assert target(ansible_host_key_checking=True).options == (("Port", "1"),)


@pytest.mark.parametrize(
    ("text", "option"),
    [("A=b", ("A", "b")), ("A b c", ("A", "b c")), (" A = b", ("A", "b")), ("A", ("A", "")), ("A=b=c", ("A", "b=c"))],
)
def test_options_are_read_as_ssh_reads_them(text: str, option: tuple[str, str]) -> None:
    """With an equals sign or a blank."""
    assert read_option(text) == option
