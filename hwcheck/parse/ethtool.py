"""
``ethtool``: settings, driver, pause frames and counters of a network interface.

Source: ``ethtool IF``, ``-i IF``, ``-a IF``, ``-S IF`` of ethtool 4 to 6; man page; counter names of the mlx5 driver.
Shape: one interface an output. Only ``Settings for`` and ``Pause parameters for`` name it; else the command does, and
    without one the PCI address that ``-i`` prints, or ``ethtool:LINE``.
Units: ``Speed: 400000Mb/s`` → Gb/s. Counters are since driver load.
Missing: ``Unknown!`` speed and duplex are those of an interface without link: absent.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import Reason, Subject, count, pci_address, quantity
from hwcheck.facts.names.rdma import NET_COUNTERS
from hwcheck.parse import port_words as words
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_NAME = re.compile(r"([\w.:@-]{1,32})\s*$")
_HEAD = re.compile(r"^\s*(?:Settings|Pause parameters) for ([\w.:@-]{1,32}):\s*$")
_PAIR = re.compile(r"^\s*([\w() -]{2,60}):[ \t]*(\S.*)?$")
_MODE = re.compile(r"\b(\d{2,7})base")
_FIRMWARE = re.compile(r"^(\S{1,32})(?: \((\w{1,32})\))?$")


def _netdev(output: Output) -> Subject:
    match = _NAME.search(output.command) if "ethtool" in output.command else None
    return Subject("netdev", match[1] if match else f"ethtool:{output.first_line}")


def _on(text: str) -> bool:
    if text not in ("on", "off", "yes", "no"):
        raise ValueError("neither on nor off")
    return text in ("on", "yes")


@fmt(
    "ethtool",
    "ethtool IF",
    gives=("net.link", "net.speed", "net.duplex"),
    opens=r"\s*Settings for [\w.:@-]{1,32}:\s*$",
    continues=r"\s+\S|Settings for |\s*$|netlink error:",
    command=r"(?:^|[\s/|;&])ethtool\s+[\w.:@]+\s*$",
)
def parse_ethtool(output: Output, facts: FactSink) -> None:
    """Read speed, duplex and link of one or more interfaces, and the fastest mode each supports."""
    netdev = _netdev(output)
    modes: list[float] = []
    for index, text in enumerate(output.lines):
        line = output.first_line + index
        if match := _HEAD.match(text):
            netdev, modes = Subject("netdev", match[1]), []
            continue
        match = _PAIR.match(text)
        listed = [int(mode) / 1000 for mode in _MODE.findall(text[:400])]
        if match is None:
            modes = modes and [max([*modes, *listed])]
            continue
        key, told = match[1].strip(), (match[2] or "").strip()
        if modes:  # the next key: the list is whole
            facts.put(netdev, "net.speed_max", max(modes), line - 1)
        modes = listed if key == "Supported link modes" else []
        name = {"Speed": "net.speed", "Duplex": "net.duplex", "Link detected": "net.link"}.get(key)
        if name is None:
            continue
        if told.startswith("Unknown!"):
            facts.missing(netdev, name, Reason.ABSENT, told[:40], line)
        elif name == "net.link":
            facts.read(netdev, name, lambda one: _on(one.split(" ")[0]), told, line)
        elif name == "net.speed":
            facts.read(netdev, name, lambda one: quantity(one, "Gb/s"), told, line)
        else:
            facts.read(netdev, name, words.short, told, line)


@fmt(
    "ethtool.i",
    "ethtool -i",
    gives=("net.driver", "net.firmware", "net.bus"),
    opens=r"driver: [\w.-]{1,32}\s*$",
    continues=r"(?:driver|version|firmware-version|expansion-rom-version|bus-info|supports-[\w-]{1,32}):|$",
    command=r"(?:^|[\s/|;&])ethtool\s+(?:-i|--driver)\s",
)
def parse_driver(output: Output, facts: FactSink) -> None:
    """Read driver, firmware (with the PSID that mlx5 puts behind it) and PCI address of one interface."""
    pairs: dict[str, tuple[str, int]] = {}
    for index, text in enumerate(output.lines):
        key, _, told = text.strip().partition(": ")
        pairs.setdefault(key, (told.strip(), output.first_line + index))
    netdev = _netdev(output)
    bus, line = pairs.get("bus-info", ("", 0))
    if not output.command and pci_address(bus):
        netdev = Subject("netdev", pci_address(bus) or bus)
    if bus:
        facts.read(netdev, "net.bus", lambda one: pci_address(one) or words.short(one), bus, line)
    if "driver" in pairs:
        facts.read(netdev, "net.driver", words.short, *pairs["driver"])
    firmware, line = pairs.get("firmware-version", ("", 0))
    match = _FIRMWARE.match(firmware)
    if match:
        facts.read(netdev, "net.firmware", words.short, match[1], line)
        if match[2]:
            facts.put(netdev, "net.psid", match[2], line)


@fmt(
    "ethtool.a",
    "ethtool -a",
    gives=("net.pause.rx", "net.pause.tx"),
    opens=r"Pause parameters for [\w.:@-]{1,32}:\s*$",
    continues=r"(?:Pause parameters for |Autonegotiate:|RX(?: negotiated)?:|TX(?: negotiated)?:|\s*$)",
    command=r"(?:^|[\s/|;&])ethtool\s+(?:-a|--show-pause)\s",
)
def parse_pause(output: Output, facts: FactSink) -> None:
    """Read whether global pause is on."""
    netdev = _netdev(output)
    for index, text in enumerate(output.lines):
        line = output.first_line + index
        if match := _HEAD.match(text):
            netdev = Subject("netdev", match[1])
        elif (match := _PAIR.match(text)) and match[1] in ("RX", "TX"):
            facts.read(netdev, f"net.pause.{match[1].lower()}", _on, (match[2] or "").strip(), line)


@fmt(
    "ethtool.S",
    "ethtool -S",
    gives=("net.counter.*",),
    opens=r"NIC statistics:\s*$",
    continues=r"\s+[\w\[\]():. -]{1,80}:\s|NIC statistics:|\s*$",
    command=r"(?:^|[\s/|;&])ethtool\s+(?:-S|--statistics)\s",
)
def parse_statistics(output: Output, facts: FactSink) -> None:
    """Read the counters that tell of a sick link; the per-queue ones are left."""
    netdev = _netdev(output)
    known = set(NET_COUNTERS)
    for index, text in enumerate(output.lines):
        key, _, told = text.strip().partition(":")
        if key in known:
            facts.read(netdev, f"net.counter.{key}", count, told, output.first_line + index)
