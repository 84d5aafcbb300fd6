"""What apply and rollback share: how nodes are written, which options a run keeps, the line in the system's log."""

from __future__ import annotations

import argparse
import getpass
import os
import shlex
import socket
import syslog
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hwcheck.apply.ansible import Event, Play, missing
from hwcheck.apply.direct import Direct
from hwcheck.apply.roll import Writer
from hwcheck.apply.run_folder import RunFolder, runs_home
from hwcheck.cli.targets import fold
from hwcheck.errors import UsageError
from hwcheck.places import state_home
from hwcheck.report.progress import Progress
from hwcheck.transports.target import LOCAL, Target

_TARGET_OPTIONS = (
    "inventory", "limit", "nodes", "root", "live_root", "tier", "off", "timeout", "total_timeout", "fanout", "ssh",
    "user", "connect_timeout", "known_hosts", "ssh_config", "ssh_option", "node_python", "become",
    "become_password_file", "vault_password_file", "vault_id", "profile", "site", "waivers", "only", "opt_in", "wave",
    "max_down", "max_domains", "drain", "undrain", "drain_timeout", "settle", "reboot_timeout", "no_reboot", "freeze",
    "idle_ignore",
)  # fmt: skip
"""Options of a run that a resumed one takes over."""
_KNOWN_HOSTS = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")


def kept_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options that a resumed run needs; no password is among them."""
    kept = {}
    for name in _TARGET_OPTIONS:
        value = getattr(arguments, name)
        if isinstance(value, Path):
            value = str(value.resolve())
        elif isinstance(value, list):
            value = [str(one.resolve()) if isinstance(one, Path) else _absolute(name, one) for one in value]
        kept[name] = _absolute(name, value)
    return kept


def _absolute(name: str, value: Any) -> Any:
    if name in ("inventory", "root", "live_root") and isinstance(value, str) and value and Path(value).exists():
        return str(Path(value).resolve())
    return value


def restored_options(kept: dict[str, Any]) -> dict[str, Any]:
    """Return kept options as the command line would give them."""
    told = dict(kept)
    for name in ("known_hosts", "site", "waivers"):
        value = told[name]
        told[name] = [Path(one) for one in value] if isinstance(value, list) else Path(value) if value else None
    for name in ("ssh_config", "become_password_file"):
        told[name] = Path(told[name]) if told[name] else None
    return told


def writer_of(arguments: argparse.Namespace, run: RunFolder | None, targets: list[Target]) -> Writer:
    """Return what writes to these nodes: this process where they are here, else Ansible."""
    if _are_here(arguments, targets):
        return Direct(arguments.root or arguments.live_root, live=not arguments.root, run=run)
    words = [word for file in arguments.vault_password_file for word in ("--vault-password-file", file)]
    words += [word for id in arguments.vault_id for word in ("--vault-id", id)]
    words += ["--user", arguments.user] if arguments.user else []
    hosts = {} if arguments.inventory else {target.name: _variables(target) for target in targets}
    passwords = {target.become.password for target in targets if target.become and target.become.password}
    password = passwords.pop() if len(passwords) == 1 else None
    return Play(
        tuple(arguments.inventory), hosts, tuple(words), arguments.fanout, password, ansible_settings(arguments)
    )


def ansible_settings(arguments: argparse.Namespace) -> dict[str, str]:
    """Say to Ansible what reading took from the command line; what the inventory says goes before it."""
    words = ["-F", str(arguments.ssh_config)] if arguments.ssh_config else []
    if arguments.known_hosts:
        files = [f'"{path}"' for path in (*arguments.known_hosts, *_KNOWN_HOSTS)]
        words += ["-o", f"UserKnownHostsFile={' '.join(files)}"]
    words += [word for option in arguments.ssh_option if arguments.inventory for word in ("-o", option)]
    settings = {"ANSIBLE_SSH_EXTRA_ARGS": shlex.join(words)} if words else {}
    return {**settings, **({"ANSIBLE_PYTHON_INTERPRETER": arguments.node_python} if arguments.node_python else {})}


def _are_here(arguments: argparse.Namespace, targets: list[Target]) -> bool:
    return bool(arguments.root or arguments.live_root) or all(target.connection == LOCAL for target in targets)


def demand_writer(arguments: argparse.Namespace, targets: list[Target]) -> None:
    """
    Make sure that nodes can be written to, before somebody consents or a run begins.

    Raises:
        UsageError: Ansible is not installed.
    """
    lacks = "" if _are_here(arguments, targets) else missing()
    if lacks:
        raise UsageError(f"{lacks}; nothing was changed")


def _variables(target: Target) -> dict[str, Any]:
    """Say to Ansible how a node of the command line is reached."""
    options = " ".join(f"-o {shlex.quote(f'{name}={value}')}" for name, value in target.options)
    told = {
        "ansible_host": target.host,
        "ansible_port": target.port or None,
        "ansible_user": target.user or None,
        "ansible_ssh_private_key_file": target.key_files[0] if target.key_files else None,
        "ansible_python_interpreter": target.python or "/usr/bin/python3",
        "ansible_connection": "local" if target.connection == LOCAL else None,
        "ansible_ssh_common_args": options or None,
        "ansible_become_password": target.become.password if target.become else None,
        "ansible_password": target.password,
    }
    return {name: value for name, value in told.items() if value is not None}


def audit(text: str) -> None:
    """Leave a line in the system's log, where there is one."""
    syslog.openlog("hwcheck", facility=syslog.LOG_AUTH)
    syslog.syslog(syslog.LOG_NOTICE, f"{getpass.getuser()}: {text}"[:900])


def holder() -> str:
    """Say who we are, for whoever finds a node leased."""
    return f"{getpass.getuser()}@{socket.gethostname()} (pid {os.getpid()})"


def home() -> Path:
    """Return the folder of all runs."""
    return runs_home(state_home())


@contextmanager
def watch(total: int, *, quiet: bool) -> Iterator[Event]:
    """Show on standard error how many nodes have been written to."""
    with Progress(total, fold, quiet=quiet) as progress:

        def on_event(node: str, what: str) -> None:
            if what != "begun":
                progress.count(node, failing=what == "failed", unreachable=what == "unreachable")

        yield on_event
