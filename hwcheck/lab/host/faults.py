"""Faults that only the host form can have: of the connection, the power, and a driver that cannot be interrupted."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hwcheck.lab.host.lab import set_behaviour


@dataclass(frozen=True, slots=True)
class HostFault:
    """
    One fault.

    Attributes:
        says: one sentence, for `hwcheck lab faults`.
        path: attribute below the node's folder, or ``sshd``.
        action: ``read`` of an attribute, ``accept`` of sshd.
        does: see :mod:`hwcheck.lab.host.attributes` and :mod:`hwcheck.lab.host.node`.
    """

    says: str
    path: str
    action: str
    does: str


HOST_FAULTS = {
    "ssh-silent": HostFault("The node takes connections, and sshd says nothing.", "sshd", "accept", "silent"),
    "ssh-closes": HostFault("sshd closes each connection at once.", "sshd", "accept", "close"),
    "freezes": HostFault(
        "Half-way, a plain file of the kernel does not answer: the whole reading stands still.",
        "root/proc/sys/kernel/tainted",
        "read",
        "hang",
    ),
    "dies": HostFault("The node loses power while it is read.", "root/proc/sys/kernel/tainted", "read", "die"),
    "nvml-uninterruptible": HostFault(
        "NVML waits in the driver, in a sleep that no signal ends.", "nvml/driver_version", "read", "hang"
    ),
}


def put(node: Path, name: str) -> None:
    """Give a node's folder a fault; it counts from the node's next start on."""
    fault = HOST_FAULTS[name]
    set_behaviour(node, fault.path, **{fault.action: fault.does})


def take(node: Path, name: str) -> None:
    """Take a fault away, from the next start on."""
    fault = HOST_FAULTS[name]
    set_behaviour(node, fault.path, **{fault.action: ""})
