"""The host form of a lab from outside: is it possible here, start it, talk to its keeper, end it."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hwcheck.lab.host import keeper, keys
from hwcheck.lab.host.attributes import LOG, TABLE
from hwcheck.lab.host.orders import SOCKET
from hwcheck.lab.host.root import furnish
from hwcheck.lab.host.syscalls import started

_PATIENCE = 60.0
_LEAVING = 5.0
_TAKEN = os.strerror(errno.EADDRINUSE)
_STATE = "lab.json"


class HostLabError(Exception):
    """The lab could not do what was asked; the text says what is missing or went wrong."""


def missing() -> list[str]:
    """Say what this machine lacks for the host form, in words that tell what to do; empty when it is possible."""
    found = []
    if sys.platform != "linux":
        return [f"Linux (this is {sys.platform})"]
    if os.geteuid() != 0:
        found.append("root: namespaces, mounts and an sshd that logs in root need it")
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        found.append("/dev/fuse, readable and writable (module fuse; in a container: --device /dev/fuse)")
    for program, package in (("/usr/sbin/sshd", "openssh-server"), ("/usr/bin/ssh-keygen", "openssh-client"),
                             ("/usr/bin/python3", "python3")):  # fmt: skip
        if not os.access(program, os.X_OK):
            found.append(f"{program} (Debian package {package})")
    if "\toverlay\n" not in Path("/proc/filesystems").read_text(encoding="ascii"):
        found.append("the overlay file system (module overlay)")
    if not found and _try_namespaces() != 0:
        found.append("the right to make namespaces and mounts (CAP_SYS_ADMIN; in a container: --privileged)")
    return found


def _try_namespaces() -> int:
    """Try what nodes need in a process of its own; returns its exit status."""
    tried = (
        "from hwcheck.lab.host import syscalls as s\n"
        "s.unshare(s.CLONE_NEWNS | s.CLONE_NEWPID | s.CLONE_NEWUTS | s.CLONE_NEWIPC)\n"
        "s.mount('', '/', flags=s.MS_REC | s.MS_PRIVATE)\ns.mount('t', '/tmp', 'tmpfs')\n"
    )
    words = [sys.executable, "-c", tried]
    done = subprocess.run(words, capture_output=True, check=False, timeout=30)  # noqa: S603 - our own
    return done.returncode


def address_of(number: int) -> str:
    """Return the loopback address of the node of a number, from 1."""
    return f"127.0.{1 + (number - 1) // 250}.{1 + (number - 1) % 250}"


class HostLab:
    """
    The running side of a lab; ``home/NAME`` holds a node's files before it is started (:mod:`hwcheck.lab.nodes`).

    Args:
        home: of the lab; the files of nodes stay when it ends.

    Attributes:
        folder: what is there only while nodes run: keys, inventory, the keeper's socket.
    """

    def __init__(self, home: Path) -> None:
        self.home = home.resolve()
        self.folder = self.home / keeper.FOLDER

    @property
    def inventory(self) -> Path:
        """The inventory of all nodes that were started."""
        return self.folder / keys.INVENTORY

    @property
    def port(self) -> int:
        """Port of all nodes; 0 before the first start."""
        return int(self._state()["port"])

    def up(self, names: list[str], groups: dict[str, list[str]] | None = None) -> dict[str, str]:
        """
        Start nodes, and the keeper before them when it does not run.

        Args:
            names: of nodes whose folders are there.
            groups: for the inventory.

        Returns:
            Name → what the keeper said of a node that could not be started; empty when all run.

        Raises:
            HostLabError: the machine lacks something, or the keeper did not start.
        """
        lacks = missing()
        if lacks:
            raise HostLabError("the host form needs " + "; ".join(lacks))
        if self._pid() is None:
            self.down()
            self._start_keeper()
        for name in names:
            node = self.home / name
            furnish(node, name)
            keys.configure_sshd(self.folder, node)
            (node / LOG).touch(0o600)
        known = self._state()
        addresses = known["nodes"] | _fresh(names, known["nodes"])
        wanted = {name: addresses[name] for name in names}
        of = known["groups"]
        merged = of | {group: [*dict.fromkeys((*of.get(group, ()), *new))] for group, new in (groups or {}).items()}
        failed: dict[str, str] = {}
        for port in [known["port"]] if known["port"] else _free_ports(list(addresses.values())):
            self._keep(addresses, port, merged)
            answers = self._order({"do": "start", "nodes": wanted, "port": port})
            failed = {name: said for name, said in answers.items() if not said.startswith("ok")}
            if known["port"] or not any(said.endswith(_TAKEN) for said in failed.values()):
                break
            self.stop(names)  # another lab was quicker; all nodes have one port
        return failed

    def stop(self, names: list[str]) -> None:
        """Cut the power of nodes; their files stay."""
        self._order({"do": "stop", "nodes": names})

    def restart(self, names: list[str]) -> dict[str, str]:
        """Stop nodes, also those that have lost power, and start them at the same addresses; returns as :meth:`up`."""
        self.stop(names)
        end = time.monotonic() + _LEAVING
        while True:
            failed = self.up(names)
            if not any(said.endswith(_TAKEN) for said in failed.values()) or time.monotonic() > end:
                return failed
            time.sleep(0.05)  # a node that is killed holds its port until the kernel has ended it
            names = list(failed)

    def reboot(self, names: list[str]) -> dict[str, str]:
        """
        Reboot nodes that run, as they do by themselves when somebody on them asks for it.

        Returns:
            As :meth:`up`; they run again when this returns.
        """
        answers = self._order({"do": "reboot", "nodes": names})
        return {name: said for name, said in answers.items() if not said.startswith("ok")}

    def forget(self, names: list[str]) -> None:
        """Stop nodes that will not come again, and take them out of the inventory."""
        self.stop(names)
        known = self._state()
        left = {name: address for name, address in known["nodes"].items() if name not in names}
        groups = {group: [name for name in of_it if name in left] for group, of_it in known["groups"].items()}
        self._keep(left, known["port"], {group: of_it for group, of_it in groups.items() if of_it})

    def hosted(self) -> dict[str, str]:
        """Return the nodes that were started, whether they run or have lost power: name → address."""
        return {} if self._pid() is None else dict(self._state()["nodes"])

    def reread_tables(self) -> None:
        """Have the keeper read the nodes' tables of attributes anew; new attributes need a restart of their node."""
        self._order({"do": "tables"})

    def running(self) -> dict[str, str]:
        """Return the nodes that run: name → address; empty when there is no keeper."""
        if self._pid() is None:
            return {}
        try:
            return self._order({"do": "list"})
        except HostLabError:
            if self._is_gone(_LEAVING):
                return {}
            raise

    def down(self) -> None:
        """End the keeper, and with it all nodes; also of one whose starter was killed, and of one killed itself."""
        pid = self._pid()
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            if not self._is_gone(_PATIENCE):
                raise HostLabError(f"the keeper of the lab (pid {pid}) does not end")
        shutil.rmtree(self.folder, ignore_errors=True)
        for trace in (*self.home.glob("*/ssh/sshd_config"), *self.home.glob(f"*/{LOG}")):
            shutil.rmtree(trace.parent) if trace.parent.name == "ssh" else trace.unlink()

    def _is_gone(self, seconds: float) -> bool:
        """Wait for the keeper to end."""
        end = time.monotonic() + seconds
        while self._pid() is not None:
            if time.monotonic() > end:
                return False
            time.sleep(0.01)
        return True

    def _pid(self) -> int | None:
        """Return the keeper's pid while it runs; another process of the same pid is not it."""
        try:
            pid, begun = (self.folder / keeper.PID).read_text(encoding="ascii").split()
        except (FileNotFoundError, ValueError):
            return None
        return int(pid) if started(int(pid)) == begun else None

    def _start_keeper(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        (self.folder / keeper.WORK).mkdir(exist_ok=True)
        try:
            keys.make_keys(self.folder)
        except OSError as error:
            raise HostLabError(f"{error.filename}: {error.strerror}") from error
        log = self.folder / "keeper.log"
        with log.open("wb") as errors, subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-m", "hwcheck.lab.host.keeper", str(self.folder)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, cwd="/", start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONOPTIMIZE": ""},
        ) as process:  # fmt: skip
            assert process.stdout is not None  # noqa: S101 - narrows the type
            said = process.stdout.readline()
        if said != b"ready\n":
            raise HostLabError("the lab's keeper did not start: " + log.read_text(errors="replace")[-500:])

    def _order(self, order: dict[str, Any]) -> dict[str, Any]:
        fd = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
                line.settimeout(_PATIENCE)
                line.connect(f"/proc/self/fd/{fd}/{SOCKET}")
                line.sendall(json.dumps(order).encode() + b"\n")
                with line.makefile("rb") as answer:
                    said: dict[str, Any] = json.loads(answer.readline() or b'{"error": "the keeper ended"}')
        except OSError as error:
            raise HostLabError(f"no answer from the lab's keeper: {error.strerror or error}") from error
        finally:
            os.close(fd)
        if "error" in said:
            raise HostLabError(str(said["error"]))
        return said

    def _state(self) -> dict[str, Any]:
        try:
            state: dict[str, Any] = json.loads((self.folder / _STATE).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {"nodes": {}, "port": 0, "groups": {}}
        return state

    def _keep(self, nodes: dict[str, str], port: int, groups: dict[str, list[str]]) -> None:
        text = json.dumps({"nodes": nodes, "port": port, "groups": groups})
        (self.folder / _STATE).write_text(text, encoding="utf-8")
        keys.write_inventory(self.folder, nodes, port, groups)


def _fresh(names: list[str], taken: dict[str, str]) -> dict[str, str]:
    """Give addresses to the names that have none."""
    numbers = iter(range(1, 60_000))
    used = set(taken.values())
    found = {}
    for name in names:
        if name not in taken:
            found[name] = next(address for number in numbers if (address := address_of(number)) not in used)
    return found


def _free_ports(addresses: list[str]) -> Iterator[int]:
    """Find ports that are free at all addresses: another lab may run on this machine."""
    for port in range(keeper.PORT, keeper.PORT + 200):
        try:
            for address in addresses:
                with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind((address, port))
                    probe.listen(1)
        except OSError:
            continue
        yield port
    raise HostLabError(f"no port from {keeper.PORT} on is free at {addresses[0]}")


def set_behaviour(node: Path, path: str, **actions: str) -> None:
    """Put behaviours of one attribute, or of ``sshd``, into a node's table; "" takes one away."""
    table: dict[str, dict[str, str]] = {}
    if (node / TABLE).exists():
        table = json.loads((node / TABLE).read_text(encoding="utf-8"))
    kept = {key: value for key, value in {**table.get(path, {}), **actions}.items() if value}
    table = {key: value for key, value in {**table, path: kept}.items() if value}
    fresh = node / f"{TABLE}.new"
    fresh.write_text(json.dumps(table, indent=1), encoding="utf-8")
    fresh.replace(node / TABLE)
