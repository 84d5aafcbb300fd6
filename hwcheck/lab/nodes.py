"""
Lab nodes on disk: made, broken, mended, rebooted, taken away. Nothing outside their folder is touched.

A node is a folder: ``root/`` (its files), ``bin/`` (its tools), ``actor/`` and ``live/`` (what stands behind them),
``lib/`` (its libnvidia-ml and libcuda, where there is a compiler), ``nvml/`` (their state) and ``state.json``. Whoever
serves nodes in another form (own mounts, own sshd) starts from the same folders: :func:`load` gives the node,
:meth:`Node.machine` its model, :func:`hwcheck.lab.tree.render` its files.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hwcheck.errors import UsageError
from hwcheck.lab import live, persistent, tools, tree
from hwcheck.lab.actor.boot import boot
from hwcheck.lab.actor.place import Node as Place
from hwcheck.lab.faults import UnknownFaultError, find, inject
from hwcheck.lab.machine import Machine
from hwcheck.lab.platforms import PLATFORMS
from hwcheck.lab.platforms import build as build_machine

STATE = "state.json"
LIBRARIES = ".library"
BEGUN = ".begun-"
FORMAT = "hwcheck.lab/1"
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?")


@dataclass
class Node:
    """
    One lab node.

    Attributes:
        folder: where it is; its name is the node's.
        platform: one of :data:`hwcheck.lab.platforms.PLATFORMS`.
        faults: as they were named.
        boot: how often it was rebooted.
        os: ``ubuntu`` or ``rhel``.
        tools: load tools that are installed, of :data:`hwcheck.lab.actor.main.LOAD_TOOLS`.
    """

    folder: Path
    platform: str
    faults: list[str] = field(default_factory=list)
    boot: int = 0
    os: str = "ubuntu"
    tools: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Host name."""
        return self.folder.name

    @property
    def root(self) -> Path:
        """What ``--live-root`` takes."""
        return self.folder / "root"

    def environment(self) -> dict[str, str]:
        """Return PATH, library path and preloads with which the node's tools, NVML, CUDA and CPUs are found."""
        return tools.environment(self.folder)

    def machine(self) -> Machine:
        """Return its model, with its faults."""
        machine = build_machine(self.platform, self.name, self.boot, self.os)
        machine.load_tools = self.tools
        inject(machine, self.faults)
        return machine

    def save(self) -> None:
        """Write what is known of it."""
        known = {
            "format": FORMAT, "platform": self.platform, "faults": self.faults, "boot": self.boot,
            "os": self.os, "tools": self.tools, "boot_id": self.machine().boot_id,
        }  # fmt: skip
        fresh = self.folder / f"{STATE}.new"  # a kill half-way leaves the old one: down must find the node
        fresh.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
        fresh.replace(self.folder / STATE)


def default_home() -> Path:
    """Return the folder of the user's lab: ``$XDG_STATE_HOME/hwcheck/lab``."""
    base = os.environ.get("XDG_STATE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".local/state") / "hwcheck/lab"


def up(
    home: Path, name: str, platform: str, faults: list[str], system: str = "ubuntu", load_tools: tuple[str, ...] = ()
) -> tuple[Node, str]:
    """
    Make a node.

    Args:
        home: of the lab.
        name: host name.
        platform: one of :data:`hwcheck.lab.platforms.PLATFORMS`.
        faults: as on the command line.
        system: one of :data:`hwcheck.lab.platforms.SYSTEMS`.
        load_tools: of :data:`hwcheck.lab.actor.main.LOAD_TOOLS`.

    Returns:
        The node, and why its GPUs are shown by nvidia-smi only; "" when it has a library.

    Raises:
        UsageError: the name is taken or none, no such platform or fault, or the folder cannot be written.
    """
    node = Node(home / name, platform, list(faults), os=system, tools=load_tools)
    machine = refuse(home, node)
    try:
        _reserve(home, node)
        lacks = tools.give_library(home / LIBRARIES, node.folder)
        live.install(home / LIBRARIES, node.folder)
        tree.write(node.root, tree.render(machine))
        tools.write(node.folder, machine)
    except OSError as error:
        why = f"the lab cannot be written to {home}: {error.strerror}"
        raise UsageError(f"{why}; --dir names another folder") from error
    return node, lacks


def refuse(home: Path, node: Node) -> Machine:
    """
    Say why a node cannot be made; returns its model.

    Raises:
        UsageError: the name is taken or none, no such platform or fault.
    """
    if not _NAME.fullmatch(node.name) or node.folder.parent != home:
        name = str(node.folder.relative_to(home))
        raise UsageError(f"no host name: {name!r}; small letters, digits and dashes, at most 42")
    if node.platform not in PLATFORMS:
        raise UsageError(f"the lab has no platform {node.platform}; it has {', '.join(PLATFORMS)}")
    _refuse_taken(home, node)
    return _broken(node)


def _refuse_taken(home: Path, node: Node) -> None:
    if not node.folder.exists():
        return
    if any(other.name == node.name for other in nodes(home)):
        raise UsageError(
            f"{node.name} is there already; hwcheck lab down {node.name} takes it away, --name PREFIX names another"
        )
    raise UsageError(f"{node.folder} is there and no lab node; remove it, or --name PREFIX gives another name")


def _reserve(home: Path, node: Node) -> None:
    """Make the folder with its state in one step: whoever is killed leaves one that down finds, or none of the name."""
    home.mkdir(parents=True, exist_ok=True)
    begun = replace(node, folder=Path(tempfile.mkdtemp(prefix=BEGUN, dir=home)))  # 0700
    begun.save()
    try:
        begun.folder.rename(node.folder)
    except OSError:
        shutil.rmtree(begun.folder)
        _refuse_taken(home, node)  # another lab up was quicker
        raise
    node.save()  # now with the boot id of its name


def _broken(node: Node) -> Machine:
    try:
        return node.machine()
    except UnknownFaultError as error:
        raise UsageError(str(error)) from error


def load(home: Path, name: str) -> Node:
    """
    Find a node that this lab can work with.

    Raises:
        UsageError: there is none of that name, or another version of the lab has made it.
    """
    node = named(home, name)
    try:
        known = node.platform in PLATFORMS and all(find(fault, node.platform) for fault in node.faults)
    except UnknownFaultError:
        known = False
    if not known:
        raise UsageError(f"another version of the lab has made {name}: hwcheck lab down {name}, then up again")
    return node


def named(home: Path, name: str) -> Node:
    """
    Find a node, whoever has made it.

    Raises:
        UsageError: there is none of that name.
    """
    for node in nodes(home):
        if node.name == name:
            return node
    there = ", ".join(node.name for node in nodes(home))
    raise UsageError(f"no lab node {name}; {f'there are {there}' if there else 'hwcheck lab up makes one'}")


def nodes(home: Path) -> Iterator[Node]:
    """Return all nodes, by name; what is no node of the lab is passed over."""
    for path in sorted(home.glob(f"[!.]*/{STATE}")):
        try:
            known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            if known["format"] == FORMAT:
                yield Node(
                    path.parent, known["platform"], list(known["faults"]), int(known["boot"]),
                    known.get("os", "ubuntu"), tuple(known.get("tools", ())),
                )  # fmt: skip
        except (OSError, ValueError, KeyError, TypeError):
            continue


def down(home: Path, node: Node) -> None:
    """Take a node away, and with the last one everything that the lab has put there."""
    shutil.rmtree(node.folder)
    if not any(nodes(home)):
        for begun in home.glob(f"{BEGUN}*"):
            shutil.rmtree(begun, ignore_errors=True)
        shutil.rmtree(home / LIBRARIES, ignore_errors=True)
        if home.is_dir() and not any(home.iterdir()):
            home.rmdir()


def refuse_faults(node: Node, names: list[str]) -> None:
    """
    Say why a node cannot have these faults, before it has the first of them.

    Raises:
        UsageError: no such fault there, or it is there already.
    """
    for name in names:
        if name in node.faults:
            raise UsageError(f"{node.name} has {name} already")
    _broken(replace(node, faults=[*node.faults, *names]))


def break_node(node: Node, name: str) -> list[str]:
    """
    Add a fault to a running node; only what the fault changes is written.

    Returns:
        Paths below the root that changed.

    Raises:
        UsageError: no such fault there, or it is there already.
    """
    refuse_faults(node, [name])
    before = node.machine()
    changed = replace(node, faults=[*node.faults, name])
    machine = _broken(changed)
    unread = live.stale(node.folder)
    paths = tree.update(node.root, tree.render(before), tree.render(machine))
    tools.write(node.folder, machine, before, unread)
    node.faults = changed.faults
    node.save()
    return paths


def mend(node: Node) -> list[str]:
    """Make a node healthy again, files and all; what was written to it is lost. Returns the faults that it had."""
    had, node.faults = node.faults, []
    machine = node.machine()
    tree.restore(node.root, tree.render(machine))
    tools.write(node.folder, machine)
    node.save()
    return had


def reboot(node: Node, *, user_space: bool = True) -> list[str]:
    """
    Boot a node: what is volatile is gone, what stands in its files takes effect.

    Args:
        node: in tree form, or not running.
        user_space: False where the node starts its own after this, in host form.

    Returns:
        The faults that the reboot cured.
    """
    stay = [name for name in node.faults if find(name)[0].stays]
    cured = [name for name in node.faults if name not in stay]
    node.faults, node.boot = stay, node.boot + 1
    machine = node.machine()
    persistent.apply(machine, node.folder)
    tree.renew_volatile(node.root, tree.render(machine))
    tools.write(node.folder, machine)
    node.save()
    if user_space:
        boot(Place(str(node.folder)))
    return cured
