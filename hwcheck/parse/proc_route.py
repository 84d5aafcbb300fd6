"""
Which network interfaces share a subnet: the routes to directly connected networks.

Source: /proc/net/route; main table of IPv4 only, addresses in hexadecimal as they lie in memory.
Shape: ``net.subnet_peers`` per interface: the others that reach the same network without a gateway.
Units: none.
Missing: an interface without an IPv4 address has no route, and no fact.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import Subject
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_ROW = re.compile(
    r"^([\w.:@-]{1,15})\s+([0-9A-F]{8})\s+(00000000)\s+([0-9A-F]{4})\s+\d+\s+\d+\s+\d+\s+([0-9A-F]{8})(?:\s|$)"
)
_ROWS = 4000


@fmt(
    "proc.route",
    "/proc/net/route",
    gives=("net.subnet_peers",),
    opens=r"Iface\s+Destination\s+Gateway\s+Flags\s+RefCnt",
    continues=r"^[\w.:@-]{1,15}\s+[0-9A-F]{8}\s+[0-9A-F]{8}\s",
)
def proc_route(output: Output, facts: FactSink) -> None:
    """Gather the interfaces of each connected network."""
    networks: dict[tuple[str, str], list[str]] = {}
    lines: dict[str, int] = {}
    for number, text in enumerate(output.lines[:_ROWS], output.first_line):
        row = _ROW.match(text[:200])
        if row and row[5] != "00000000" and not row[1].startswith("lo"):
            members = networks.setdefault((row[2], row[5]), [])
            if row[1] not in members:
                members.append(row[1])
            lines.setdefault(row[1], number)
    for name, line in lines.items():
        peers = {other for members in networks.values() if name in members for other in members if other != name}
        facts.put(Subject("netdev", name), "net.subnet_peers", tuple(sorted(peers)[:64]), line)
