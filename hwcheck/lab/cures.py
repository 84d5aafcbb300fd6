"""
Faults that something on the node itself has cured: neither what runs nor the boot loader's entries show them any more.

A fault that stays is in the node's model for good, since what was written can be taken back again. Whether it shows is
told by the places where the model with it differs from the model without: files of the kernel and of the boot loader,
values of NVML. It is cured when none of them is as the fault had it. A fault that shows in other files only (a limit, a
server of chrony) counts as there until it is mended: whether another file overrules it, those files do not tell.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from hwcheck.lab import tree
from hwcheck.lab.faults import WRITE, find
from hwcheck.lab.gpu_state import nvml_state
from hwcheck.lab.machine import Machine
from hwcheck.lab.nodes import Node
from hwcheck.lab.nvml.attributes import write_state
from hwcheck.lab.render import File, Link

_SHOWS = (*tree.VOLATILE, "/boot/")
_PROCESS = re.compile(r"/proc/\d+/")
"""Files of a process are another's after its restart, whatever its limits are."""


def cured(node: Node) -> list[str]:
    """Return the faults of a node that do not show any more, though it was not mended."""
    return [name for name in node.faults if find(name)[0].fix == WRITE and not _shows(node, name)]


def _shows(node: Node, name: str) -> bool:
    broken = node.machine()
    others = [fault for fault in node.faults if fault != name]
    healthy = Node(node.folder, node.platform, others, node.boot, node.os, node.tools).machine()
    with_it, without = tree.render(broken), tree.render(healthy)
    places = [path for path in {**without, **with_it} if with_it.get(path) != without.get(path)]
    shown = [path for path in places if path.startswith(_SHOWS) and not _PROCESS.match(path)]
    told = [_is_as_broken(node.root / path.strip("/"), with_it.get(path), without.get(path)) for path in shown]
    told += _nvml(node.folder / "nvml", broken, healthy)
    return any(told) or not told


def _nvml(state: Path, broken: Machine, healthy: Machine) -> list[bool]:
    """Tell of each value of NVML that the fault changes whether it is as the fault has it."""
    with tempfile.TemporaryDirectory(prefix="hwcheck-lab-") as folder:
        texts = []
        for name, machine in (("broken", broken), ("healthy", healthy)):
            base = Path(folder, name)
            write_state(base, nvml_state(machine))
            texts.append({str(path.relative_to(base)): path.read_bytes() for path in base.rglob("*") if path.is_file()})
    changed = [path for path, text in texts[0].items() if texts[1].get(path) != text]
    return [_read(state / path) == texts[0][path] for path in changed]


def _is_as_broken(place: Path, broken: File | Link | None, healthy: File | Link | None) -> bool:
    """Tell whether a file on disk has what only the broken one has; of one that is gone with the fault, if it is."""
    if broken is None:
        return not place.is_symlink() and not place.exists()
    if isinstance(broken, Link):
        return place.is_symlink() and str(place.readlink()) == broken.target
    now, was = _read(place), healthy.content if isinstance(healthy, File) else b""
    if len(now) == len(was) == len(broken.content):  # registers: others of the same file may have been set since
        return any(one == bad != good for one, bad, good in zip(now, broken.content, was, strict=True))
    only_broken = set(broken.content.splitlines()) - set(was.splitlines())
    return bool(only_broken & set(now.splitlines()))


def _read(place: Path) -> bytes:
    try:
        return place.read_bytes()
    except OSError:
        return b""
