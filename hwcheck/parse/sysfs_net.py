"""
Network interfaces on PCI: state, speed, MTU, IPv4 networks, RoCE settings of DOCA / OFED.

Source: ``/sys/class/net`` (kernel ABI sysfs-class-net; ``qos/trust`` and ``ecn/`` of DOCA-OFED), ``/proc/net/route``.
Shape: ``PATH: value`` or ``PATH -> target`` a line; ``/proc/net/route: ROW``. Subject: the interface.
Units: ``speed`` is Mb/s there, Gb/s here.
Missing: a speed of -1 or ``!error EINVAL`` is an interface without link: absent. Files of the out-of-tree driver are
not there with the in-box one: no fact.
"""

from __future__ import annotations

import re
from typing import Any

from hwcheck.evidence import Output
from hwcheck.facts import Reason, Subject, count, pci_address
from hwcheck.parse.file_text import gap_of, links, rows
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_ROOT = "/sys/class/net/"
_NAME = r"[\w.:@-]{1,32}"
_IN_PATH = re.compile(r"(?:^|/)([0-9a-f]{4,8}:[0-9a-f]{2}:[0-1][0-9a-f]\.[0-7])(?=/)")
_WORD = re.compile(r"^[\w.-]{1,32}$")
_ROUTE = re.compile(rf"^({_NAME}) ([0-9A-F]{{8}}) ([0-9A-F]{{8}}) ([0-9A-F]{{4}}) \d+ \d+ \d+ ([0-9A-F]{{8}}) ")
_ETHERNET = "1"
_GIVES = ("net.state", "net.mtu", "net.driver", "net.bus", "net.subnets", "net.subnet_shared")


@fmt(
    "sysfs.net",
    "/sys/class/net",
    gives=_GIVES,
    opens=rf"{_ROOT}{_NAME}(?:/[\w/.-]+: | -> )",
    continues=rf"{_ROOT}{_NAME}(?:/[\w/.@-]+(?:: ?| -> )| -> )|/proc/net/route: ",
)
def parse_sysfs_net(output: Output, facts: FactSink) -> None:
    """Gather the files of each interface, then tell facts of each; networks at the end, for they are compared."""
    interfaces: dict[str, dict[str, tuple[str, int]]] = {}
    networks: dict[str, list[str]] = {}
    for path, text, line in (*links(output), *rows(output)):
        if path == "/proc/net/route":
            _network(text, networks)
        elif path.startswith(_ROOT):
            name, _, file = path.removeprefix(_ROOT).partition("/")
            if re.fullmatch(_NAME, name):
                interfaces.setdefault(name, {}).setdefault(file, (text, line))
    for name, files in interfaces.items():
        _interface(Subject("netdev", name), files, facts)
    if any(text.startswith("/proc/net/route: ") for text in output.lines[-4001:]):
        _networks(interfaces, networks, facts)


def _interface(netdev: Subject, files: dict[str, tuple[str, int]], facts: FactSink) -> None:
    target, line = files.get("", ("", 0))
    address = _IN_PATH.findall(target)
    if address:
        facts.put(netdev, "net.bus", pci_address(address[-1]) or address[-1], line)
    driver, line = files.get("device/driver", ("", 0))
    if _WORD.match(driver.rpartition("/")[2]):
        facts.put(netdev, "net.driver", driver.rpartition("/")[2], line)
    state, line = files.get("operstate", ("", 0))
    if _WORD.match(state):
        facts.put(netdev, "net.state", state, line)
    for file, name in (("mtu", "net.mtu"), ("carrier_changes", "net.carrier_changes")):
        if file in files and gap_of(files[file][0]) is None:
            facts.read(netdev, name, count, *files[file])
    speed = _speed(netdev, files, facts)
    device = next((file.rpartition("/")[2] for file in files if file.startswith("device/infiniband/")), "")
    if not device:
        return
    number, line = files.get("dev_port", ("", 0))
    if re.fullmatch(r"\d{1,2}", number):
        facts.put(netdev, "net.rdma_port", f"{device}/{int(number) + 1}", line)
    if files.get("type", ("", 0))[0] == _ETHERNET:
        _roce(netdev, files, speed, facts)


def _speed(netdev: Subject, files: dict[str, tuple[str, int]], facts: FactSink) -> float | None:
    text, line = files.get("speed", ("", 0))
    if not text or gap_of(text) is not None or text in ("-1", "4294967295"):
        if text:
            facts.missing(netdev, "net.speed", Reason.ABSENT, "no link", line)
        return None
    value = facts.read(netdev, "net.speed", lambda one: count(one) / 1000, text, line)
    return float(value) if value is not None else None


def _roce(netdev: Subject, files: dict[str, tuple[str, int]], speed: float | None, facts: FactSink) -> None:
    """Record trust and ECN as DOCA-OFED shows them, and the record that interfaces are compared by."""
    marks: dict[str, Any] = {}
    trust, line = files.get("qos/trust", ("", 0))
    if trust in ("pcp", "dscp", "both"):
        facts.put(netdev, "roce.trust", trust, line)
        marks["trust"] = trust
    elif trust and gap_of(trust) is None:
        facts.unparsable(netdev, "roce.trust", trust, line)
    for end in ("np", "rp"):
        flags = [files.get(f"ecn/roce_{end}/enable/{priority}", ("", 0)) for priority in range(8)]
        if all(flag in ("0", "1") for flag, _ in flags):
            value = tuple(flag == "1" for flag, _ in flags)
            facts.put(netdev, f"roce.ecn.{end}", value, flags[0][1])
            marks[end] = value
    state = files.get("operstate", ("", 0))[0]
    mtu, line = files.get("mtu", ("", 0))
    if state == "up" and speed is not None and re.fullmatch(r"\d{2,6}", mtu):
        facts.put(netdev, "roce.marks", {"speed": speed, "mtu": int(mtu), **marks}, line)


def _network(row: str, networks: dict[str, list[str]]) -> None:
    """Read one row of the routing table: a directly connected network has no gateway; addresses are little-endian."""
    match = _ROUTE.match(row[:300])
    if match is None or match[3] != "00000000" or not int(match[4], 16) & 1:
        return
    mask = bytes.fromhex(match[5])[::-1]
    length = sum(byte.bit_count() for byte in mask)
    address = bytes.fromhex(match[2])[::-1]
    if length >= 8 and address[:2] != b"\xa9\xfe":  # link-local addresses are on every interface
        networks.setdefault(match[1], []).append(".".join(map(str, address)) + f"/{length}")


def _networks(
    interfaces: dict[str, dict[str, tuple[str, int]]], networks: dict[str, list[str]], facts: FactSink
) -> None:
    """Record the networks of each interface, and whether RDMA interfaces share one."""
    with_rdma = {
        name for name, files in interfaces.items() if any(file.startswith("device/infiniband/") for file in files)
    }
    for name, files in interfaces.items():
        mine, line = networks.get(name, []), next(iter(files.values()))[1]
        facts.put(Subject("netdev", name), "net.subnets", tuple(mine), line)
        others = {one for other in with_rdma - {name} for one in networks.get(other, ())}
        shared = name in with_rdma and bool(others & set(mine))
        facts.put(Subject("netdev", name), "net.subnet_shared", shared, line)
