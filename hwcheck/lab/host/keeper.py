"""
The keeper of a lab: one process that serves the attributes of all nodes, starts nodes and takes orders on a socket.

Started as ``python -m hwcheck.lab.host.keeper FOLDER`` with a folder beside those of the nodes. It becomes the first
process of a new PID namespace: when it ends, by order or by SIGKILL, the kernel ends every node with it.

An order is one JSON object on one line, and so is the answer: ``{"do": "start", "nodes": {NAME: ADDRESS}, "port": N}``
→ ``{NAME: "ok" or why not}``; also ``stop``, ``reboot``, ``tables``, ``list`` and ``end``.
"""

from __future__ import annotations

import fcntl
import gc
import json
import os
import selectors
import signal
import socket
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hwcheck.lab.host import node, syscalls
from hwcheck.lab.host.attributes import Attribute, Node, attributes_of
from hwcheck.lab.host.fuse import FuseServer
from hwcheck.lab.host.orders import Order, answer, bind_near, read_line
from hwcheck.lab.host.rebooting import boot_files, close_all

PORT = 2200
FOLDER = ".host"
PID, LOCK, WORK = "keeper.pid", "keeper.lock", "work"
_LAST_WORDS = 0.3  # seconds from the wish to reboot to the cut


@dataclass
class _Running:
    """One node that runs."""

    name: str
    address: str
    pid: int
    attributes: Node


class Keeper:
    """
    The loop.

    Args:
        folder: of the lab.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._work = folder / WORK
        self._nodes: dict[str, _Running] = {}
        self._orders: list[Order] = []
        self._starts = 0
        self._selector = selectors.DefaultSelector()
        self._fuse = FuseServer(self._lose, self._reboot_soon)
        self._booting: dict[int, tuple[str, str]] = {}
        self._ports: dict[str, int] = {}
        self._due: list[tuple[float, str]] = []
        self._ended = False
        self._door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._network = syscalls.make_network()
        self._space = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)

    def open(self) -> None:
        """Mount the attributes and listen for orders."""
        syscalls.mount("lab", str(self._work), "tmpfs", syscalls.MS_NOSUID, "mode=700,size=256m")
        (self._work / "attributes").mkdir()
        self._fuse.mount(str(self._work / "attributes"))
        bind_near(self._door, self._folder)
        self._door.listen(16)
        self._selector.register(self._door, selectors.EVENT_READ, self._take)
        self._selector.register(self._fuse.fd, selectors.EVENT_READ, lambda _: self._fuse.serve())
        wake, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(waker)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: self._end())
        self._selector.register(wake, selectors.EVENT_READ, self._reap)
        gc.freeze()  # what is here now is shared with all nodes

    def serve(self) -> None:
        """Serve until told to end; the kernel then ends the nodes."""
        while not self._ended:
            wait = max(0.0, min(self._due)[0] - time.monotonic()) if self._due else None
            for key, _ in self._selector.select(wait):
                key.data(key.fileobj)
            for moment in [moment for moment in self._due if moment[0] <= time.monotonic()]:
                self._due.remove(moment)
                self._reboot(moment[1])

    def _end(self) -> None:
        self._ended = True

    def _reap(self, wake: int) -> None:
        os.read(wake, 4096)
        try:
            while pid := os.waitpid(-1, os.WNOHANG)[0]:
                for name in [name for name, running in self._nodes.items() if running.pid == pid]:
                    self._forget(name)
                if pid in self._booting:
                    self._booted(*self._booting.pop(pid))
        except ChildProcessError:
            pass

    def _lose(self, name: str) -> None:
        """Cut a node's power, then let go whoever waits for its attributes."""
        running = self._nodes.get(name)
        if running is not None:
            os.kill(running.pid, signal.SIGKILL)
            self._forget(name)

    def _forget(self, name: str) -> None:
        self._nodes.pop(name).attributes.close()
        self._fuse.drop(name)

    # ------------------------------------------------------------------------------------------------------ reboots

    def _reboot_soon(self, name: str) -> None:
        """Reboot a node once those who are logged in have been answered."""
        if name not in [node for _, node in self._due]:
            self._due.append((time.monotonic() + _LAST_WORDS, name))

    def _reboot(self, name: str) -> None:
        """Cut a node's power, and let another process make its files those of the next boot."""
        running = self._nodes.get(name)
        if running is None:
            return
        self._lose(name)
        pid = os.fork()
        if pid == 0:
            boot_files(self._folder.parent / name)
        self._booting[pid] = name, running.address

    def _stay_off(self, name: str) -> None:
        """Let a node not come back from a reboot."""
        self._due = [moment for moment in self._due if moment[1] != name]
        self._booting = {pid: who for pid, who in self._booting.items() if who[0] != name}

    def _booted(self, name: str, address: str) -> None:
        if name in self._nodes:
            return
        try:
            ready = self._launch(name, address, self._ports[name])
        except OSError as error:
            sys.stderr.write(f"{name} did not boot: {error}\n")
            return
        self._selector.register(ready, selectors.EVENT_READ, self._hearer(None, name))

    # ------------------------------------------------------------------------------------------------------- orders

    def _take(self, door: socket.socket) -> None:
        connection, _ = door.accept()
        connection.settimeout(5)
        try:
            order = json.loads(read_line(connection))
            self._carry_out(order, connection)
        except (OSError, ValueError, KeyError) as error:
            answer(connection, {"error": f"{type(error).__name__}: {error}"})

    def _carry_out(self, order: dict[str, Any], connection: socket.socket) -> None:
        match order["do"]:
            case "start":
                self._start(Order(connection, set(order["nodes"])), order["nodes"], order["port"])
            case "stop":
                for name in order["nodes"]:
                    self._lose(name)
                    self._stay_off(name)
                answer(connection, dict.fromkeys(order["nodes"], "ok"))
            case "reboot":
                for name in order["nodes"]:
                    self._reboot(name)
                waiting = set(order["nodes"]) & {name for name, _ in self._booting.values()}
                self._orders.append(Order(connection, waiting, dict.fromkeys(set(order["nodes"]) - waiting, "off")))
                self._finish(self._orders[-1])
            case "tables":
                for running in self._nodes.values():
                    running.attributes.read_table()
                answer(connection, {})
            case "list":
                known = {name: running.address for name, running in self._nodes.items()}
                answer(connection, known | dict(self._booting.values()))
            case "end":
                self._end()
                answer(connection, {})
            case other:
                raise ValueError(f"no such order: {other}")

    def _start(self, order: Order, nodes: dict[str, str], port: int) -> None:
        for name, address in nodes.items():
            if name in self._nodes:
                order.answers[name] = "runs already"
                order.waiting.discard(name)
                continue
            try:
                ready = self._launch(name, address, port)
            except OSError as error:
                order.answers[name] = f"{error.filename or address}: {error.strerror}"
                order.waiting.discard(name)
                continue
            self._selector.register(ready, selectors.EVENT_READ, self._hearer(order, name))
        self._finish(order)

    def _hearer(self, order: Order | None, name: str) -> Any:
        """Return what hears a node say that it runs; without an order all those that wait for its reboot are told."""

        def hear(ready: int) -> None:
            said = os.read(ready, 1000).decode("utf-8", "replace")
            self._selector.unregister(ready)
            os.close(ready)
            for one in [order] if order is not None else [one for one in self._orders if name in one.waiting]:
                one.answers[name] = said or "ended while starting"
                one.waiting.discard(name)
                self._finish(one)

        return hear

    def _finish(self, order: Order) -> None:
        if not order.waiting:
            answer(order.connection, order.answers)
            if order in self._orders:
                self._orders.remove(order)

    def _launch(self, name: str, address: str, port: int) -> int:
        """Fork a node; returns the pipe on which it says that it is ready."""
        folder = self._folder.parent / name
        self._ports[name] = port
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((address, port))
            listener.listen(128)
            attributes = Node(folder)
            served = {path: self._file(attribute) for path, attribute in attributes_of(attributes)}
            self._starts += 1
            place = self._work / f"root-{self._starts}"
            place.mkdir()
            ready, answer = os.pipe()
            syscalls.unshare(syscalls.CLONE_NEWPID)
            pid = os.fork()
            if pid == 0:
                self._become(folder, place, served, listener, answer)
            syscalls.enter(self._space, syscalls.CLONE_NEWPID)
        os.close(answer)
        self._nodes[name] = _Running(name, address, pid, attributes)
        return ready

    def _file(self, attribute: Attribute) -> Path:
        """Return what is shown where a node has the attribute."""
        if attribute.is_plain:
            return attribute.file
        return self._work / "attributes" / str(self._fuse.add(attribute))

    def _become(self, folder: Path, place: Path, served: dict[str, Path], listener: socket.socket, answer: int) -> None:
        """Be the node: close what is the keeper's. Never returns."""
        try:
            close_all({0, 1, 2, listener.fileno(), answer, self._network})
            node.run(folder, place, served, listener, answer, self._network)
        finally:
            os._exit(1)


def main() -> None:
    """Become the keeper of a lab; the process that was started ends as soon as the keeper is known by its pid file."""
    folder = Path(sys.argv[1])
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    go, went = os.pipe()
    syscalls.unshare(syscalls.CLONE_NEWPID | syscalls.CLONE_NEWNS)
    pid = os.fork()
    if pid == 0:
        os.close(went)
        if os.read(go, 1) != b"g":  # whoever started us is gone, and nobody could find us
            os._exit(1)
        os.close(go)
        os.setsid()
        syscalls.mount("", "/", flags=syscalls.MS_REC | syscalls.MS_PRIVATE)
        syscalls.mount("proc", "/proc", "proc", syscalls.MS_NOSUID | syscalls.MS_NODEV | syscalls.MS_NOEXEC)
        keeper = Keeper(folder)
        keeper.open()
        os.write(1, b"ready\n")
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 1)
        keeper.serve()
        os._exit(0)
    (folder / PID).write_text(f"{pid} {syscalls.started(pid)}\n", encoding="ascii")
    os.write(went, b"g")
    os._exit(0)


if __name__ == "__main__":
    main()
