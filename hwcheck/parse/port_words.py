"""
What ibstat, ibstatus, ibv_devinfo, rdma and sysfs say about a port, in one spelling each.

``Active``, ``4: ACTIVE``, ``PORT_ACTIVE (4)`` are one state; ``LinkUp``, ``5: LinkUp``, ``LINK_UP (5)`` another.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from hwcheck.facts import Missing, Reason, Subject, number
from hwcheck.parse.sink import FactSink

_STATES = {
    "down": "Down", "init": "Init", "initialize": "Init", "initializing": "Init", "armed": "Armed",
    "active": "Active", "activedefer": "ActiveDefer",
}  # fmt: skip
_PHYSICAL = {
    "sleep": "Sleep", "polling": "Polling", "disabled": "Disabled", "portconfigurationtraining": "Training",
    "training": "Training", "linkup": "LinkUp", "linkerrorrecovery": "LinkErrorRecovery", "phytest": "PhyTest",
}  # fmt: skip
_LAYERS = {"infiniband": "InfiniBand", "ib": "InfiniBand", "ethernet": "Ethernet"}
_AROUND = re.compile(r"^\d{1,3}:\s*|^port_|\s*\(\d{1,3}\)$", re.IGNORECASE)
_RATE = re.compile(r"^(\d{1,5}(?:\.\d{1,3})?)(?:\s+Gb/sec(?:\s+\((\d{1,2}X)(?:\s+([A-Z]{3}\d{0,2}))?\))?)?$")
_HEX = re.compile(r"^0x[0-9a-fA-F]{1,8}$")


def _word(text: str, known: dict[str, str]) -> str:
    bare = _AROUND.sub("", text.strip())
    bare = _AROUND.sub("", bare).replace("_", "").replace(" ", "").lower()
    if bare not in known:
        raise ValueError(f"unknown word: {text[:40]!r}")
    return known[bare]


def port_state(text: str) -> str:
    """
    Spell a logical port state as the registry has it.

    Raises:
        ValueError: not a state of the InfiniBand specification.
    """
    return _word(text, _STATES)


def physical_state(text: str) -> str:
    """
    Spell a physical port state as the registry has it.

    Raises:
        ValueError: not a state of the InfiniBand specification.
    """
    return _word(text, _PHYSICAL)


def link_layer(text: str) -> str:
    """
    Spell a link layer as the registry has it.

    Raises:
        ValueError: neither InfiniBand nor Ethernet.
    """
    return _word(text, _LAYERS)


def lid(text: str) -> int:
    """
    Read a LID, decimal or hexadecimal.

    Raises:
        ValueError: no LID.
    """
    text = text.strip()
    value = int(text, 16) if _HEX.match(text) else number(text)
    if not isinstance(value, int) or not 0 <= value <= 0xFFFFFFFF:
        raise ValueError(f"no LID: {text[:40]!r}")
    return value


def count(text: str) -> int:
    """
    Read a counter.

    Raises:
        ValueError: no whole number that fits 64 bits.
    """
    value = number(text)
    if not isinstance(value, int) or not 0 <= value < 1 << 64:
        raise ValueError(f"no counter: {text[:40]!r}")
    return value


def rate(text: str) -> tuple[float, str, str]:
    """
    Read ``400`` or ``400 Gb/sec (4X NDR)``: rate in Gb/s, width, lane speed ("" where not said).

    Raises:
        ValueError: neither form, as where the line is cut off.
    """
    match = _RATE.match(text.strip())
    if match is None:
        raise ValueError(f"no rate: {text[:40]!r}")
    return number(match[1]), match[2] or "", match[3] or ""


def put_read(facts: FactSink, subject: Subject, name: str, read: Callable[[str], Any], text: str, line: int) -> Any:
    """
    Record what ``read`` makes of the text; ``N/A`` is absent, what it does not understand is unparsable.

    Returns:
        The value, or None where there is none.
    """
    if text.strip().upper() in ("N/A", "[N/A]", "--"):
        facts.put(subject, name, Missing(Reason.ABSENT, text.strip()), line)
        return None
    try:
        value = read(text)
    except ValueError:
        facts.unparsable(subject, name, text, line)
        return None
    facts.put(subject, name, value, line)
    return value


class Devices:
    """
    Devices while an output is read: records at the end what a device's peers are compared by.

    Args:
        facts: where the values go.
    """

    def __init__(self, facts: FactSink) -> None:
        self._facts = facts
        self._told: dict[Subject, dict[str, str]] = {}
        self._lines: dict[Subject, int] = {}

    def put(self, nic: Subject, name: str, read: Callable[[str], Any], text: str, line: int) -> None:
        """Record one value of a device; see :func:`put_read`."""
        value = put_read(self._facts, nic, name, read, text, line)
        if isinstance(value, str):
            self._told.setdefault(nic, {})[name] = value
            self._lines.setdefault(nic, line)

    def close(self) -> None:
        """Record the model of each device, with its firmware."""
        for nic, told in self._told.items():
            kind, firmware = told.get("rdma.device.hca_type"), told.get("rdma.device.fw")
            if kind is None:
                continue
            model = f"{kind} {told.get('rdma.device.psid', '')}".strip()
            self._facts.put(nic, "rdma.device.model", model, self._lines[nic])
            if firmware is not None:
                self._facts.put(nic, "rdma.device.build", {"model": model, "fw": firmware}, self._lines[nic])


class Ports:
    """
    Ports while an output is read: records each value, and at the end what a port's peers are compared by.

    Args:
        facts: where the values go.
    """

    def __init__(self, facts: FactSink) -> None:
        self._facts = facts
        self._links: dict[Subject, dict[str, Any]] = {}
        self._lines: dict[Subject, int] = {}

    def put(self, subject: Subject, name: str, read: Callable[[str], Any], text: str, line: int) -> None:
        """Record one value of a port; see :func:`put_read`."""
        self.note(subject, name, put_read(self._facts, subject, name, read, text, line), line)

    def put_rate(self, subject: Subject, text: str, line: int) -> None:
        """Record rate, and width and lane speed where the text has them."""
        try:
            value, width, speed = rate(text)
        except ValueError:
            self._facts.unparsable(subject, "rdma.port.rate", text, line)
            return
        for name, told in (("rdma.port.rate", value), ("rdma.port.width", width), ("rdma.port.speed", speed)):
            if told:
                self._facts.put(subject, name, told, line)
                self.note(subject, name, told, line)

    def note(self, subject: Subject, name: str, value: Any, line: int) -> None:
        """Keep a value for the record of the port."""
        if value is not None:
            self._links.setdefault(subject, {})[name.rpartition(".")[2]] = value
            self._lines.setdefault(subject, line)

    def close(self) -> None:
        """Record for each port of a known type what its peers are compared by."""
        for subject, told in self._links.items():
            if "hca_type" in told and "state" in told:
                link = {key: told[key] for key in ("hca_type", "state")}
                self._facts.put(subject, "rdma.port.link", link, self._lines[subject])
                if "rate" in told:  # a record of its own: a source without rates must not hide those of another
                    pace = {**link, "link_layer": told.get("link_layer"), "rate": told["rate"]}
                    self._facts.put(subject, "rdma.port.pace", pace, self._lines[subject])


def hca_type(text: str) -> str:
    """
    Spell a device type as ibstat does: ``MT4129``; ``4129`` (vendor_part_id) is the same.

    Raises:
        ValueError: too long or no single word.
    """
    text = text.strip()
    if text.isascii() and text.isdigit() and len(text) <= 6:
        return f"MT{text}"
    return short(text)


def short(text: str) -> str:
    """
    Take one word of at most 64 printable characters: a version, a PSID, an interface.

    Raises:
        ValueError: anything else.
    """
    text = text.strip()
    if not text or len(text) > 64 or " " in text or not text.isprintable():
        raise ValueError(f"not one word: {text[:40]!r}")
    return text
