"""
The first process of a node: leaves the machine's namespaces, builds the node's root, and hands connections to sshd.

It listens on a socket that the keeper made in the machine's network: the node is reached at a loopback address of the
machine although it is in the lab's own network, where nodes reach each other and nothing else.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import time
from pathlib import Path

from hwcheck.lab.actor.place import NODE
from hwcheck.lab.host import syscalls
from hwcheck.lab.host.attributes import TABLE
from hwcheck.lab.host.root import RootBuilder

_SSHD_CONFIG = f"{NODE}/ssh/sshd_config"
_DROPPED = (16, 17, 22, 25, 27, 30, 34)
"""Capabilities over the machine that no node has: modules, raw I/O, boot, clock, devices, audit, kernel log."""
_TABLE = f"{NODE}/{TABLE}"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_QUIET = tuple((os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in range(3))
BOOTING = "booting"
"""File in a node's folder: its tree is that of a new boot, and its user space has not started yet."""


def run(folder: Path, place: Path, served: dict[str, Path], listener: socket.socket, ready: int, network: int) -> None:
    """
    Be the node until killed. Never returns.

    Args:
        folder: of the node.
        place: empty folder to build its root on.
        served: path on the node → file in the mount of attributes.
        listener: bound and listening.
        ready: pipe; ``ok``, or why it could not start, is written to it.
        network: namespace of the lab's network; -1 for none.
    """
    try:
        syscalls.die_with_parent()
        _leave(folder.name, network)
        RootBuilder(folder, place, served).build()
        syscalls.change_root(str(place))
        syscalls.drop_capabilities(_DROPPED)
        _boot()
        os.write(ready, b"ok" if network >= 0 else b"ok without network namespace")
    except OSError as error:
        os.write(ready, f"{error.filename or 'node'}: {error.strerror}".encode()[:500])
        os._exit(1)
    os.close(ready)
    _Door(listener).serve()


def _boot() -> None:
    """Let the user space of a node start, where its files are those of a new boot."""
    marker = Path(NODE, BOOTING)
    if marker.exists():
        marker.unlink()
        words = ["/usr/bin/python3", "-ISB", f"{NODE}/actor", "boot"]
        pid = os.posix_spawn(words[0], words, {"PATH": _PATH}, file_actions=_QUIET)
        os.waitpid(pid, 0)


def _leave(name: str, network: int) -> None:
    """Leave the machine's namespaces."""
    syscalls.unshare(syscalls.CLONE_NEWNS | syscalls.CLONE_NEWUTS | syscalls.CLONE_NEWIPC)
    syscalls.mount("", "/", flags=syscalls.MS_REC | syscalls.MS_PRIVATE)
    socket.sethostname(name)
    if network >= 0:
        syscalls.enter(network, syscalls.CLONE_NEWNET)
        os.close(network)


class _Door:
    """Takes connections: one sshd each, or what the node's faults make of them."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._kept: list[socket.socket] = []
        self._fall: tuple[float, int] | None = None

    def serve(self) -> None:
        """Serve for ever."""
        wake, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(waker)
        self._listener.settimeout(0)
        while True:
            wait = None if self._fall is None else max(0.0, self._fall[0] - time.monotonic())
            readable, _, _ = select.select([self._listener.fileno(), wake], [], [], wait)
            if wake in readable:
                os.read(wake, 4096)
                _reap()
            if self._listener.fileno() in readable:
                self._accept()
            if self._fall is not None and time.monotonic() >= self._fall[0]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(-1, self._fall[1])  # every process of this PID namespace but this one
                self._fall = None

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return
        fault, _, after = _fault().partition(" ")
        if fault == "silent":
            self._kept.append(connection)
            return
        if fault != "close":
            _spawn(connection)
        if fault in ("die", "freeze"):
            self._fall = time.monotonic() + float(after or 0), signal.SIGKILL if fault == "die" else signal.SIGSTOP
        connection.close()


def _fault() -> str:
    """Return what the node's table says of its sshd: ``silent``, ``close``, ``die SECONDS``, ``freeze SECONDS``, ""."""
    try:
        return str(json.loads(Path(_TABLE).read_text(encoding="utf-8")).get("sshd", {}).get("accept", ""))
    except (OSError, ValueError):
        return ""


def _spawn(connection: socket.socket) -> None:
    fd = connection.fileno()
    actions = [
        (os.POSIX_SPAWN_DUP2, fd, 0),
        (os.POSIX_SPAWN_DUP2, fd, 1),
        (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0),
    ]
    os.posix_spawn(
        "/usr/sbin/sshd", ["/usr/sbin/sshd", "-i", "-f", _SSHD_CONFIG, "-E", "/var/log/sshd.log"],
        {"PATH": _PATH}, file_actions=actions,
        setsigmask=(), setsigdef=(signal.SIGPIPE, signal.SIGCHLD),
    )  # fmt: skip


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
