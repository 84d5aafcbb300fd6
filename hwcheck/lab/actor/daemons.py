"""
What the lab's daemons do when they start and stop, beside having a process.

Sources: nvidia-persistenced(1) and its option_table.h: persistence mode is on, unless it was told otherwise, and goes
with it. Fabric
Manager user guide: it starts only with the driver of its own version, and then trains the NVLink fabric, after which
each GPU registers. chrony.conf(5), ``makestep``: it steps the clock at its first updates.
"""

from __future__ import annotations

from collections.abc import Callable

from hwcheck.lab.actor import clock, interrupts
from hwcheck.lab.actor.place import Node

_COMPLETED = "3"


def _persistence(node: Node, command: str) -> str:
    if not node.exists("/sys/module/nvidia"):
        return "the NVIDIA kernel module is not loaded"
    modes = [word for word in command.split() if word in ("--persistence-mode", "--no-persistence-mode")]
    _set_persistence(node, "0" if modes[-1:] == ["--no-persistence-mode"] else "1")
    return ""


def _persistence_ends(node: Node) -> None:
    _set_persistence(node, "0")


def _set_persistence(node: Node, value: str) -> None:
    for gpu in node.gpus():
        if node.nvml(f"gpu{gpu}/persistence") != value and not node.nvml(f"gpu{gpu}/lost"):
            node.set_nvml(f"gpu{gpu}/persistence", value)


def _fabric(node: Node, _command: str) -> str:
    driver, mine = node.nvml("driver_version"), node.live("lab").get("fabric-manager", "")
    if not node.exists("/sys/module/nvidia"):
        return "the NVIDIA kernel module is not loaded"
    if mine != driver:
        return f"fabric manager version {mine} does not match driver version {driver}"
    for gpu in node.gpus():
        if node.nvml(f"gpu{gpu}/fabric_state") != _COMPLETED:
            for key, value in node.live("fabric").items():
                node.set_nvml(f"gpu{gpu}/{key}", value)
    return ""


def _imex(node: Node, _command: str) -> str:
    return "" if node.exists("/sys/module/nvidia") else "the NVIDIA kernel module is not loaded"


def _chrony(node: Node, _command: str) -> str:
    clock.start(node)
    return ""


def _balance(node: Node, _command: str) -> str:
    interrupts.balance(node)
    return ""


def _nothing(_node: Node) -> None:
    pass


_STARTS: dict[str, Callable[[Node, str], str]] = {
    "nvidia-persistenced.service": _persistence, "nvidia-fabricmanager.service": _fabric,
    "nvidia-imex.service": _imex, "chrony.service": _chrony, "chronyd.service": _chrony,
    "irqbalance.service": _balance,
}  # fmt: skip
_STOPS: dict[str, Callable[[Node], None]] = {"nvidia-persistenced.service": _persistence_ends}


def started(node: Node, unit: str, command: str) -> str:
    """Do what a daemon does at its start; returns why it fails, "" when it runs."""
    begin = _STARTS.get(unit)
    return begin(node, command) if begin is not None else ""


def stopped(node: Node, unit: str) -> None:
    """Do what becomes of its work when a daemon is gone."""
    _STOPS.get(unit, _nothing)(node)
