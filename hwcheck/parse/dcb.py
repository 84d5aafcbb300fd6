"""
``dcb``: PFC and the DSCP map of an interface, by the in-box tool.

Source: ``dcb pfc show dev IF`` and ``dcb -N app show dev IF`` of iproute2 5.11 and newer, one after the other under
headings ``==> COMMAND <==``; or one output behind its command.
Shape: ``prio-pfc 0:off ... 3:on ...``, ``dscp-prio 26:3 48:6``. Subject: the interface in the command.
Units: none.
Missing: ``Operation not supported`` is a driver without DCB: absent. DSCP names (``AF31``, without -N) are understood.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import Reason, Subject
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_HEAD = re.compile(r"^==> (dcb .{1,200}) <==$")
_DEVICE = re.compile(r"\bdev\s+([\w.:@-]{1,32})")
_PFC = re.compile(r"\bprio-pfc((?: +[0-7]:(?:on|off)){8})\b")
_DSCP = re.compile(r"^\s*dscp-prio((?: +(?:\d{1,2}|[A-Z]{2,3}\d{0,2}):[0-7])+)\s*$")
_NAMES = {
    "CS0": 0, "CS1": 8, "CS2": 16, "CS3": 24, "CS4": 32, "CS5": 40, "CS6": 48, "CS7": 56, "EF": 46, "AF11": 10,
    "AF12": 12, "AF13": 14, "AF21": 18, "AF22": 20, "AF23": 22, "AF31": 26, "AF32": 28, "AF33": 30, "AF41": 34,
    "AF42": 36, "AF43": 38,
}  # fmt: skip


@fmt(
    "dcb",
    "dcb",
    gives=("roce.pfc", "roce.dscp_map"),
    opens=r"==> dcb ",
    continues=r"==> dcb |pfc-cap |prio-pfc |dscp-prio |ethtype-prio |[\w-]+-prio |default-prio |Attribute read: |\s*$",
    command=r"(?:^|[\s/|;&])dcb\s",
)
def parse_dcb(output: Output, facts: FactSink) -> None:
    """Read PFC and DSCP map; which interface and which question, the heading or command tells."""
    command = output.command
    for line, text in enumerate(output.lines, output.first_line):
        head = _HEAD.match(text[:300])
        if head:
            command = head[1]
            continue
        named = _DEVICE.search(command[:400])
        if named is None:
            continue
        netdev = Subject("netdev", named[1])
        if pfc := _PFC.search(text[:400]):
            facts.put(netdev, "roce.pfc", tuple(flag.endswith(":on") for flag in pfc[1].split()), line)
        elif dscp := _DSCP.match(text[:2000]):
            facts.put(netdev, "roce.dscp_map", _map(dscp[1]), line)
        elif "not supported" in text:
            name = "roce.pfc" if " pfc " in command else "roce.dscp_map"
            facts.missing(netdev, name, Reason.ABSENT, "the driver has no DCB", line)


def _map(text: str) -> dict[str, int]:
    pairs = (pair.split(":") for pair in text.split())
    return {str(_NAMES.get(dscp, dscp)): int(priority) for dscp, priority in pairs}
