"""
PCI configuration space of a node's functions, and ``setpci``.

Sources: PCI Express Base Specification, capabilities 10h (Link Control at +10h, Device Control at +8) and 000Dh (ACS
control at +6); setpci(8) for the spelling ``CAP_EXP+8.w=5000:f000`` and its masks.
"""

from __future__ import annotations

import os

from hwcheck.lab.actor.place import Node, ToolError, say

DEVICES = "/sys/bus/pci/devices"
_WIDTHS = {"b": 1, "w": 2, "l": 4}
_STANDARD = {
    "CAP_PM": 0x01, "CAP_VPD": 0x03, "CAP_MSI": 0x05, "CAP_EXP": 0x10, "CAP_MSIX": 0x11,
}  # fmt: skip
_EXTENDED = {"ECAP_AER": 0x01, "ECAP_ACS": 0x0D}
_REGISTERS = {"VENDOR_ID": (0, 2), "DEVICE_ID": (2, 2), "COMMAND": (4, 2), "STATUS": (6, 2), "REVISION": (8, 1)}
LINK_CONTROL, DEVICE_CONTROL, ACS_CONTROL = ("CAP_EXP", 0x10), ("CAP_EXP", 8), ("ECAP_ACS", 6)


class Space:
    """
    Configuration space of one function.

    Args:
        node: of it.
        address: ``0000:18:00.0``.
    """

    def __init__(self, node: Node, address: str) -> None:
        self._path = os.path.realpath(f"{node.real(DEVICES)}/{address}/config")

    def read(self, at: int, width: int) -> int:
        """Return a register; all ones of a function that is gone."""
        with open(self._path, "rb") as file:
            file.seek(at)
            return int.from_bytes(file.read(width), "little")

    def write(self, at: int, width: int, value: int, mask: int = -1) -> None:
        """Write the bits of a mask."""
        kept = self.read(at, width)
        bits = (1 << 8 * width) - 1
        with open(self._path, "r+b") as file:
            file.seek(at)
            file.write(((kept & ~mask | value & mask) & bits).to_bytes(width, "little"))

    def find(self, name: str) -> int:
        """Return where a capability is; 0 for none."""
        at, seen = (self.read(0x34, 1), 0) if name in _STANDARD else (0x100, 0)
        while at and seen < 64:
            seen += 1
            if name in _STANDARD:
                if self.read(at, 1) == _STANDARD[name]:
                    return at
                at = self.read(at + 1, 1)
            else:
                head = self.read(at, 4)
                if head & 0xFFFF == _EXTENDED[name]:
                    return at
                at = head >> 20
        return 0

    def at(self, register: tuple[str, int]) -> int:
        """Return where a register of a capability is; 0 for none."""
        place = self.find(register[0])
        return place + register[1] if place else 0


def addresses(node: Node) -> list[str]:
    """Return the addresses of all functions."""
    return node.names(DEVICES)


def above(node: Node, address: str) -> str:
    """Return the port above a function; "" for none."""
    parts = node.link(f"{DEVICES}/{address}").split("/")
    return parts[-2] if len(parts) > 1 and parts[-2].count(":") == 2 else ""


def matches(node: Node, address: str, text: str) -> bool:
    """Tell whether a function is meant by ``0000:18:00.0`` or ``pci:VENDOR:DEVICE``, as kernel arguments have it."""
    if not text.startswith("pci:"):
        return address in (text, f"0000:{text}")
    wanted = [int(part or "0", 16) for part in text.split(":")[1:3]]
    space = Space(node, address)
    return all(not value or value == space.read(2 * place, 2) for place, value in enumerate(wanted))


def run(node: Node, _tool: str, words: list[str]) -> int:
    """Be ``setpci``: read and write registers of the functions that ``-s`` or ``-d`` chooses."""
    chosen, orders = addresses(node), []
    rest = iter(words)
    for word in rest:
        if word == "-s":
            where = next(rest, "")
            chosen = [one for one in chosen if one in (where, f"0000:{where}")]
        elif word == "-d":
            vendor, _, device = next(rest, "").partition(":")
            chosen = [one for one in chosen if matches(node, one, f"pci:{vendor}:{device}")]
        elif not word.startswith("-"):
            orders.append(word)
    if not chosen:
        raise ToolError('setpci: Warning: No devices selected for "setpci".')
    for address in chosen:
        for order in orders:
            _carry_out(Space(node, address), order)
    return 0


def _carry_out(space: Space, order: str) -> None:
    name, sign, values = order.partition("=")
    at, width = _register(space, name)
    if not sign:
        say(f"{space.read(at, width):0{2 * width}x}")
        return
    for number, text in enumerate(values.split(",")):
        value, _, mask = text.partition(":")
        space.write(at + number * width, width, int(value, 16), int(mask, 16) if mask else -1)


def _register(space: Space, name: str) -> tuple[int, int]:
    base, dot, letter = name.partition(".")
    known, _, offset = base.partition("+")
    if known.upper() in _REGISTERS:
        at, width = _REGISTERS[known.upper()]
    elif known.upper() in _STANDARD or known.upper() in _EXTENDED:
        at, width = space.find(known.upper()), 0
        if not at:
            raise ToolError(
                f"setpci: Instance #0 of Capability {known} not found - there are no capabilities with that id."
            )
    else:
        at, width = int(known, 16), 0
    width = _WIDTHS[letter.lower()] if dot else width
    if not width:
        raise ToolError("setpci: Missing width.")
    return at + (int(offset, 16) if offset else 0), width
