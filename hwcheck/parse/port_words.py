"""
What ibstat, ibstatus, ibv_devinfo, rdma and sysfs say about a port, in one spelling each.

``Active``, ``4: ACTIVE``, ``PORT_ACTIVE (4)`` are one state; ``LinkUp``, ``5: LinkUp``, ``LINK_UP (5)`` another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from hwcheck.facts import NODE, Subject, number
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
        """Record one value of a device; see :meth:`FactSink.read`."""
        value = self._facts.read(nic, name, read, text, line)
        if isinstance(value, str):
            self._told.setdefault(nic, {})[name] = value
            self._lines.setdefault(nic, line)

    def close(self) -> None:
        """Record the model of each device, and of all devices how many of a model have which firmware."""
        builds: dict[str, tuple[str, str]] = {}
        for nic, told in self._told.items():
            kind, firmware = told.get("rdma.device.hca_type"), told.get("rdma.device.fw")
            if kind is None:
                continue
            model = f"{kind} {told.get('rdma.device.psid', '')}".strip()
            self._facts.put(nic, "rdma.device.model", model, self._lines[nic])
            if firmware is not None:
                builds[nic.id] = model, firmware
        if not builds:
            return
        peers = self._facts.seen(NODE, "rdma.device.peers") or {}
        builds = {**peers.get("builds", {}), **builds}
        self._facts.put(NODE, "rdma.device.peers", {"builds": builds, "models": _by_kind(builds.values())})


_COMPARED = ("hca_type", "state", "link_layer", "rate", "netdev", "netdev_up")
Counts = dict[str, dict[Any, int]]


class Ports:
    """
    Ports while an output is read: records each value, and at the end what a port's peers are compared by.

    Args:
        facts: where the values go.
    """

    def __init__(self, facts: FactSink) -> None:
        self._facts = facts
        self._told: dict[Subject, dict[str, Any]] = {}

    def put(self, subject: Subject, name: str, read: Callable[[str], Any], text: str, line: int) -> None:
        """Record one value of a port; see :meth:`FactSink.read`."""
        self.note(subject, name, self._facts.read(subject, name, read, text, line))

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
                self.note(subject, name, told)

    def note(self, subject: Subject, name: str, value: Any) -> None:
        """Keep a value for the record of the port."""
        key = name.rpartition(".")[2]
        if value is not None and key in _COMPARED:
            self._told.setdefault(subject, {})[key] = value

    def close(self) -> None:
        """
        Record the ports of the node side by side, and count them.

        Counted here, once for an output, so that the checks of a node with a thousand ports need not compare each port
        with each.
        """
        if not self._told:
            return
        ports = dict((self._facts.seen(NODE, "rdma.port.peers") or {}).get("ports", {}))
        for subject, told in self._told.items():
            ports[subject.id] = {**ports.get(subject.id, {}), **told}
        self._facts.put(NODE, "rdma.port.peers", {"ports": ports, **_census(ports)})


def _census(ports: dict[str, dict[str, Any]]) -> dict[str, Counts]:
    """
    Count ports by what they are compared by; a bond is no port of its own kind and is left out.

    Returns:
        ``states``: device type → Down or Up → ports; ``layers``: the same by link layer; ``rates``: device type and
        link layer → rate of Active ports → ports; ``netdevs``: kind of interface → Down or Up → interfaces.
    """
    states, rates = [], []
    layers, netdevs = [], []
    for name, one in ports.items():
        kind, state = one.get("hca_type"), one.get("state")
        if not is_rail(name):
            continue
        if state is not None:
            word = "Down" if state == "Down" else "Up"
            layers.append((str(one.get("link_layer", "")), word))
            if kind is not None:
                states.append((kind, word))
        if kind is not None and state == "Active" and "rate" in one:
            rates.append((f"{kind} {one.get('link_layer', '')}", one["rate"]))
        if "netdev_up" in one:
            netdevs.append((netdev_kind(one.get("netdev", "")), "Up" if one["netdev_up"] else "Down"))
    return {
        "states": _by_kind(states), "layers": _by_kind(layers), "rates": _by_kind(rates), "netdevs": _by_kind(netdevs),
    }  # fmt: skip


def _by_kind(pairs: Iterable[tuple[str, Any]]) -> Counts:
    counts: Counts = {}
    for kind, value in pairs:
        of_kind = counts.setdefault(kind, {})
        of_kind[value] = of_kind.get(value, 0) + 1
    return counts


def is_rail(port_id: str) -> bool:
    """Tell whether a port can be a rail of its own: a bond is one of two, for the front-end network."""
    return "bond" not in port_id


def netdev_kind(netdev: str) -> str:
    """Tell an IPoIB interface, which RDMA does without, from an Ethernet one, which RoCE needs."""
    return "IPoIB" if netdev.startswith("ib") else "Ethernet"


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
