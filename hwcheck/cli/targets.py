"""Which nodes, and how to get to them: the options that check and collect share, and the collection they make."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from hwcheck.cli.option_types import Named, count, seconds
from hwcheck.cli.passwords import become_of
from hwcheck.errors import UsageError
from hwcheck.transports.cancel import Cancel
from hwcheck.transports.conversation import Conversation
from hwcheck.transports.fan_out import FanOut, Limits
from hwcheck.transports.outcome import Outcome
from hwcheck.transports.request import Request
from hwcheck.transports.target import LOCAL, PARAMIKO, Target

SSH_KINDS = ("paramiko", "openssh")
_TIMEOUTS = {"quick": 60.0, "deep": 300.0}


def add_target_options(parser: Any) -> None:
    """Declare the options that say which nodes, and how to read them."""
    which = parser.add_argument_group("nodes", "Without any of these: this machine.")
    which.add_argument("-i", "--inventory", metavar="INVENTORY", action=Named, default=[],
                       help="nodes of an Ansible inventory (may be repeated)")  # fmt: skip
    which.add_argument(
        "-l",
        "--limit",
        metavar="PATTERN",
        action=Named,
        default="",
        help="of the inventory, only these hosts or groups",
    )
    which.add_argument("-w", "--nodes", metavar="NODESET", action=Named, default="",
                       help="these nodes: gpu-[001-128]; with -i, only these of the inventory")  # fmt: skip
    which.add_argument(
        "--root",
        metavar="DIR",
        action=Named,
        default="",
        help="an image mounted at DIR: what the next boot would be like",
    )
    which.add_argument(
        "--live-root",
        metavar="DIR",
        action=Named,
        default="",
        help="the file system of a running node, mounted at DIR",
    )
    read = parser.add_argument_group("reading")
    read.add_argument("--tier", choices=tuple(_TIMEOUTS), default="quick", help="how much to read (default: quick)")
    read.add_argument(
        "--off", metavar="SOURCE", action="append", default=[], help="do not ask this source (may be repeated)"
    )
    read.add_argument("--timeout", metavar="S", type=seconds, default=0.0,
                      help="seconds for one node, connection included (default: 60; deep: 300)")  # fmt: skip
    read.add_argument("--total-timeout", metavar="S", type=seconds, default=0.0, help="seconds for all nodes")
    read.add_argument("--fanout", metavar="N", type=count, default=32, help="nodes at once (default: 32)")
    read.add_argument("-q", "--quiet", action="store_true", help="no progress on standard error")
    _add_ssh_options(parser.add_argument_group("connection"))


def _add_ssh_options(ssh: Any) -> None:
    ssh.add_argument("--ssh", choices=SSH_KINDS, default="paramiko",
                     help="SSH client: built in (paramiko), or OpenSSH with all of its ssh_config")  # fmt: skip
    ssh.add_argument("--user", metavar="NAME", default="", help="user to log in as")
    ssh.add_argument("--connect-timeout", metavar="S", type=seconds, default=10.0,
                     help="seconds for each step of getting in (default: 10)")  # fmt: skip
    ssh.add_argument("--known-hosts", metavar="FILE", type=Path, action="append", default=[], help="more host keys")
    ssh.add_argument(
        "--ssh-config", metavar="FILE", type=Path, help="in place of ~/.ssh/config and /etc/ssh/ssh_config"
    )
    ssh.add_argument(
        "--ssh-option", metavar="NAME=VALUE", action="append", default=[], help="as ssh -o (may be repeated)"
    )
    ssh.add_argument("--node-python", metavar="PATH", default="", help="Python on the nodes (default: python3)")
    ssh.add_argument("-b", "--become", action="store_true", help="read as root, by sudo")
    ssh.add_argument("-K", "--ask-become-pass", action="store_true", help="ask for sudo's password")
    ssh.add_argument("--become-password-file", metavar="FILE", type=Path, help="sudo's password; the file must be 0600")
    ssh.add_argument(
        "--vault-password-file", metavar="FILE", action="append", default=[], help="for the inventory's vaults"
    )
    ssh.add_argument("--vault-id", metavar="ID", action="append", default=[], help="for the inventory's vaults")


class Ssh(Protocol):
    """One of the two SSH back ends."""

    def collect(self, target: Target, request: Request, last: float, cancel: Cancel) -> Conversation:
        """Read one node."""

    def close(self) -> None:
        """End what stays open between nodes."""


class Collection:
    """
    The nodes that the command line names, and their outcomes as they come; a context manager that leaves nothing open.

    Args:
        arguments: of :func:`add_target_options`.
        only: sources to ask; () for all of the tier.

    Raises:
        UsageError: they do not fit together, or name what is not there.
    """

    def __init__(self, arguments: argparse.Namespace, only: tuple[str, ...] = ()) -> None:
        self.request = _request(arguments, only)
        self.targets = _targets(arguments)
        self.is_local = all(target.connection == LOCAL for target in self.targets)
        self._transport = None if self.is_local else _ssh(arguments)
        limits = Limits(arguments.fanout, _host_limit(arguments), arguments.total_timeout)
        self._fan = FanOut(self.targets, self.collect, self.request, limits)
        self._handlers: dict[int, Any] = {}

    def collect(self, target: Target, request: Request, last: float, cancel: Cancel) -> Conversation:
        """Ask one node, by the transport of the command line."""
        if target.connection == LOCAL:
            from hwcheck.transports import local  # noqa: PLC0415 - loaded only where it is used

            return local.collect(target, request, last, cancel)
        assert self._transport is not None  # noqa: S101 - made when any node is not local
        return self._transport.collect(target, request, last, cancel)

    def start(self) -> None:
        """Begin to read; other work may go on meanwhile."""
        self._fan.start()

    def __enter__(self) -> Self:
        """Make SIGTERM and SIGHUP end everything in order."""
        for number in (signal.SIGTERM, signal.SIGHUP):
            try:
                self._handlers[number] = signal.signal(number, _end)
            except ValueError:  # not the main thread: whoever runs us there ends us
                break
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all connections."""
        self._fan.stop()
        if self._transport is not None:
            self._transport.close()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def __iter__(self) -> Iterator[Outcome]:
        """Go through the outcomes as they come."""
        return iter(self._fan)

    def position(self, outcome: Outcome) -> int:
        """Return the place of a node in the inventory."""
        return self.targets.index(outcome.target)


def _end(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


def _request(arguments: argparse.Namespace, only: tuple[str, ...]) -> Request:
    off = tuple(name for names in arguments.off for name in names.split(",") if name)
    if off:
        from hwcheck.sources.catalogue import SOURCES  # noqa: PLC0415 - loaded only where it is used

        known = {source.id for source in SOURCES}
        for name in off:
            if name not in known:
                raise UsageError(f"no such source: {name}; there are {', '.join(sorted(known))}")
    if arguments.root and arguments.live_root:
        raise UsageError("--root and --live-root exclude each other")
    root = arguments.root or arguments.live_root
    if root and not Path(root).is_dir():
        raise UsageError(f"{root}: no such folder")
    limit = _host_limit(arguments)
    return Request(
        tier=arguments.tier,
        off=off,
        only=only,
        root=str(Path(root).resolve()) if root else "",
        live=not arguments.root,
        deadline=limit - min(5.0, limit / 4),  # the node ends first, and says what it could not read
    )


def _host_limit(arguments: argparse.Namespace) -> float:
    return arguments.timeout or _TIMEOUTS[arguments.tier]


def _targets(arguments: argparse.Namespace) -> list[Target]:
    remote = bool(arguments.inventory or arguments.nodes)
    if remote and (arguments.root or arguments.live_root):
        raise UsageError("--root and --live-root are for this machine, not for -i or -w")
    if arguments.limit and not arguments.inventory:
        raise UsageError("--limit needs an inventory (-i)")
    become = become_of(arguments)
    if not remote:
        return [Target("", connection=LOCAL, become=become)]
    from hwcheck.transports.variables import read_option, target_of  # noqa: PLC0415 - loaded only where it is used

    default = Target(
        "", user=arguments.user, python=arguments.node_python, become=become,
        options=tuple(map(read_option, arguments.ssh_option)),
    )  # fmt: skip
    for name, value in default.options:
        if not value:
            raise UsageError(f"--ssh-option {name}: no value")
    hosts = _hosts(arguments)
    targets = [target_of(name, variables, default) for name, variables in hosts.items()]
    for target in targets:
        if target.connection == PARAMIKO and arguments.ssh == "openssh":
            raise UsageError(f"host {target.name}: ansible_connection is paramiko, which --ssh openssh cannot honour")
    return targets


def _hosts(arguments: argparse.Namespace) -> dict[str, dict[str, Any]]:
    names: list[str] = []
    if arguments.nodes:
        from hwcheck.transports.nodesets import expand  # noqa: PLC0415 - loaded only where it is used

        names = expand(arguments.nodes)
    if not arguments.inventory:
        return {name: {} for name in names}
    from hwcheck.transports.inventory import Query, read_inventory  # noqa: PLC0415 - loaded only where it is used

    vault = [word for file in arguments.vault_password_file for word in ("--vault-password-file", file)]
    vault += [word for id in arguments.vault_id for word in ("--vault-id", id)]
    hosts = read_inventory(Query(tuple(arguments.inventory), arguments.limit, tuple(vault)))
    missing = [name for name in names if name not in hosts]
    if missing:
        raise UsageError(f"not in the inventory: {fold(missing)}")
    wanted = set(names)
    return {name: variables for name, variables in hosts.items() if name in wanted} if wanted else hosts


def fold(names: list[str]) -> str:
    """Write names as a node set."""
    from hwcheck.transports.nodesets import fold as fold_names  # noqa: PLC0415 - loaded only where it is used

    return fold_names(names)


def _ssh(arguments: argparse.Namespace) -> Ssh:
    known_hosts = tuple(arguments.known_hosts)
    for path in known_hosts:
        if not path.is_file():
            raise UsageError(f"--known-hosts {path}: no such file")
    if arguments.ssh_config is not None and not arguments.ssh_config.exists():
        raise UsageError(f"--ssh-config {arguments.ssh_config}: no such file")
    if arguments.ssh == "openssh":
        from hwcheck.transports.ssh_openssh import OpensshTransport  # noqa: PLC0415 - loaded only where it is used

        return OpensshTransport(arguments.connect_timeout, known_hosts, arguments.ssh_config)
    from hwcheck.transports.ssh_paramiko import ParamikoTransport  # noqa: PLC0415 - loaded only where it is used

    return ParamikoTransport(arguments.connect_timeout, known_hosts, arguments.ssh_config)
