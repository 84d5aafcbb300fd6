"""
Variables of a host in an Ansible inventory → how to reach it. Plain data: nothing here is ever evaluated as a template.

A variable that says how to connect and that we cannot honour is refused by name, with its host: a node reached another
way than the site wants it reached is worse than none. Variables that do not concern connections are the site's own.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from typing import Any

from hwcheck.errors import UsageError
from hwcheck.transports.target import LOCAL, PARAMIKO, SSH, Become, Target

SECRETS = (
    "ansible_become_password",
    "ansible_become_pass",
    "ansible_password",
    "ansible_ssh_pass",
    "ansible_ssh_password",
)
"""Never written to a cache."""
USED = (
    *SECRETS, "ansible_host", "ansible_ssh_host", "ansible_port", "ansible_ssh_port", "ansible_user",
    "ansible_ssh_user",
    "ansible_ssh_private_key_file", "ansible_private_key_file", "ansible_python_interpreter", "ansible_become",
    "ansible_become_user", "ansible_become_method", "ansible_connection", "ansible_ssh_args", "ansible_ssh_common_args",
    "ansible_ssh_extra_args", "ansible_host_key_checking", "ansible_ssh_host_key_checking", "ansible_timeout",
    "ansible_ssh_timeout", "ansible_become_flags",
)  # fmt: skip
_NO_MATTER = (
    "ansible_ssh_pipelining", "ansible_pipelining", "ansible_ssh_control_path", "ansible_ssh_control_path_dir",
    "ansible_control_path", "ansible_control_path_dir", "ansible_ssh_transfer_method", "ansible_ssh_retries",
    "ansible_ssh_use_tty", "ansible_paramiko_look_for_keys", "ansible_become_allow_same_user", "ansible_ssh_executable",
)  # fmt: skip
"""How Ansible moves its files and shares its connections; nothing of that is done here."""
_REFUSED = ("ansible_ssh_", "ansible_paramiko_", "ansible_become_", "ansible_sudo", "ansible_su_", "ansible_shell_type")
_OWN = ("hwcheck_site", "hwcheck_profile", "hwcheck_failure_domain")
_SUDO_FLAGS = ("-H", "-S", "-n")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:%-]{0,254}")
_FLAGS = {"-i": "IdentityFile", "-l": "User", "-p": "Port", "-J": "ProxyJump", "-F": ""}


def matters(name: str) -> bool:
    """Tell whether a variable concerns us: only these are kept and cached."""
    return name in USED or name.startswith(("hwcheck_", *_REFUSED))


def target_of(name: str, variables: dict[str, Any], default: Target) -> Target:
    """
    Read the variables of one host.

    Args:
        name: of the host in the inventory.
        variables: as ``ansible-inventory --list`` gives them.
        default: what the command line says; a variable goes before it.

    Raises:
        UsageError: a variable that cannot be honoured, or that makes no sense.
    """
    host = _Host(name, variables)
    if not _NAME.fullmatch(name):
        raise UsageError(f"no name of a host: {name!r}")
    host.refuse_unknown()
    user = host.text("ansible_user", "ansible_ssh_user") or default.user
    key = host.text("ansible_ssh_private_key_file", "ansible_private_key_file")
    return replace(
        default,
        name=name,
        address=host.text("ansible_host", "ansible_ssh_host"),
        port=host.port() or default.port,
        user=user,
        key_files=(key,) if key else default.key_files,
        python=_python(host.text("ansible_python_interpreter")) or default.python,
        connection=host.connection(),
        become=host.become(default.become),
        password=host.text("ansible_password", "ansible_ssh_pass", "ansible_ssh_password") or default.password,
        options=(*host.options(), *default.options),
        profile=host.text("hwcheck_profile"),
        site=host.site(),
        failure_domain=host.text("hwcheck_failure_domain"),
    )


def _python(text: str) -> str:
    """Return an interpreter's path; Ansible's own ways to find one are no path."""
    return "" if text.startswith("auto") else text


class _Host:
    """Reads variables, and says whose they are when one is wrong."""

    def __init__(self, name: str, variables: dict[str, Any]) -> None:
        self._name = name
        self._variables = variables

    def wrong(self, variable: str, why: str) -> UsageError:
        return UsageError(f"host {self._name}: {variable} {why}")

    def refuse_unknown(self) -> None:
        for variable in self._variables:
            if variable in USED or variable in _NO_MATTER or variable in _OWN:
                continue
            if variable.startswith("hwcheck_"):
                raise self.wrong(variable, f"is not known; there are {', '.join(_OWN)}")
            if variable.startswith(_REFUSED):
                raise self.wrong(variable, "cannot be honoured")

    def text(self, *variables: str) -> str:
        for variable in variables:
            value = self._variables.get(variable)
            if value is None or value == "":
                continue
            if not isinstance(value, (str, int)) or isinstance(value, bool):
                raise self.wrong(variable, "is no text")
            text = str(value)
            if "{{" in text or "{%" in text:
                raise self.wrong(variable, "is a template; values of an inventory are not evaluated, write it out")
            if not text.isprintable() and variable not in SECRETS:
                raise self.wrong(variable, "holds characters that cannot be printed")
            if text.startswith("-") and variable not in SECRETS and not variable.endswith(("_args", "_flags")):
                raise self.wrong(variable, "begins with a dash")
            return text
        return ""

    def flag(self, variable: str, *, default: bool) -> bool:
        value = self._variables.get(variable)
        if value is None or value == "":
            return default
        word = str(value).lower()
        if word in ("true", "yes", "on", "1", "t", "y"):
            return True
        if word in ("false", "no", "off", "0", "f", "n"):
            return False
        raise self.wrong(variable, f"is neither yes nor no: {word!r}")

    def port(self) -> int:
        text = self.text("ansible_port", "ansible_ssh_port")
        if text and not (text.isdecimal() and 0 < int(text) < 65536):
            raise self.wrong("ansible_port", f"is no port: {text}")
        return int(text or 0)

    def connection(self) -> str:
        word = self.text("ansible_connection").rpartition(".")[2].removesuffix("_ssh")
        kind = {"": SSH, "smart": SSH, "ssh": SSH, "paramiko": PARAMIKO, "local": LOCAL}.get(word)
        if kind is None:
            raise self.wrong("ansible_connection", f"is {word}; there are ssh, paramiko and local")
        return kind

    def become(self, default: Become | None) -> Become | None:
        if not self.flag("ansible_become", default=default is not None):
            return None
        method = self.text("ansible_become_method").rpartition(".")[2]
        if method not in ("", "sudo"):
            raise self.wrong("ansible_become_method", f"is {method}; only sudo can be honoured")
        flags = self.text("ansible_become_flags").split()
        if any(flag not in _SUDO_FLAGS for flag in flags):
            raise self.wrong("ansible_become_flags", "cannot be honoured")
        usual = default or Become()
        password = self.text("ansible_become_password", "ansible_become_pass") or usual.password
        return Become(self.text("ansible_become_user") or usual.user, password)

    def options(self) -> tuple[tuple[str, str], ...]:
        found: list[tuple[str, str]] = []
        for variable in ("ansible_ssh_common_args", "ansible_ssh_extra_args", "ansible_ssh_args"):
            found += self._arguments(variable)
        for variable in ("ansible_host_key_checking", "ansible_ssh_host_key_checking"):
            if not self.flag(variable, default=True):
                found.append(("StrictHostKeyChecking", "no"))
        seconds = self.text("ansible_timeout", "ansible_ssh_timeout")
        if seconds:
            if not seconds.isdecimal():
                raise self.wrong("ansible_timeout", f"is no number of seconds: {seconds}")
            found.append(("ConnectTimeout", seconds))
        return tuple(found)

    def _arguments(self, variable: str) -> list[tuple[str, str]]:
        """Read arguments of the ssh command as options of ssh_config."""
        try:
            words = shlex.split(self.text(variable))
        except ValueError as error:
            raise self.wrong(variable, f"cannot be read: {error}") from error
        found = []
        while words:
            word = words.pop(0)
            flag, value = word[:2], word[2:]
            if flag in ("-C", "-T", "-x", "-q", "-4", "-6") and not value:
                if flag in ("-4", "-6"):
                    found.append(("AddressFamily", "inet" if flag == "-4" else "inet6"))
                continue
            if flag != "-o" and not _FLAGS.get(flag):
                raise self.wrong(variable, f"has {word}, which cannot be honoured")
            value = value or (words.pop(0) if words else "")
            found.append(read_option(value) if flag == "-o" else (_FLAGS[flag], value))
            if not found[-1][1]:
                raise self.wrong(variable, f"has {word} without a value")
        return found

    def site(self) -> dict[str, Any]:
        value = self._variables.get("hwcheck_site")
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.wrong("hwcheck_site", "is no mapping of checks and bounds")
        return value


def read_option(text: str) -> tuple[str, str]:
    """Read ``Name=value`` or ``Name value``, as ``ssh -o`` takes it; the value is "" where there is none."""
    name, _, value = text.strip().replace("=", " ", 1).partition(" ")
    return name, value.strip()
