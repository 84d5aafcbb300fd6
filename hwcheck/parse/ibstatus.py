"""
``ibstatus``: state and rate of every RDMA port, from sysfs.

Source: ``ibstatus`` of infiniband-diags (a shell script over /sys/class/infiniband); a public output of an A100 node.
Shape: one block a port; the subject is the port ``mlx5_0/1``. The type of the device is not told.
Units: ``rate`` is Gb/s with lanes and lane speed: ``200 Gb/sec (4X HDR)``.
Missing: ``default gid: unknown`` is normal on an Ethernet function. A block that ends before ``link_layer`` while an
    earlier one has it is cut off, and the value on the last line is not trusted.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import Subject, port
from hwcheck.parse import port_words as words
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_HEAD = re.compile(r"^\s*Infiniband device '([\w.:-]{1,64})' port (\d{1,3}) status:")
_VALUE = re.compile(r"^\s*(base lid|sm lid|state|phys state|rate|link_layer|default gid):[ \t]*(\S.*)?$")
_READ = {
    "base lid": ("rdma.port.lid", words.lid),
    "sm lid": ("rdma.port.sm_lid", words.lid),
    "state": ("rdma.port.state", words.port_state),
    "phys state": ("rdma.port.phys_state", words.physical_state),
    "link_layer": ("rdma.port.link_layer", words.link_layer),
}
_GIVES = (*(name for name, _ in _READ.values()), "rdma.port.rate", "rdma.port.width", "rdma.port.speed")


@fmt(
    "ibstatus",
    "ibstatus",
    gives=_GIVES,
    opens=r"Infiniband device '[\w.:-]{1,64}' port \d{1,3} status:",
    continues=r"\s*(?:Infiniband device '|(?:default gid|base lid|sm lid|state|phys state|rate|link_layer):|$)",
    command=r"(?:^|[\s/|;&])ibstatus(?:\s+[\w.:-]+)*\s*$",
)
def parse_ibstatus(output: Output, facts: FactSink) -> None:
    """Read the block of each port."""
    last = max((i for i, text in enumerate(output.lines) if text.strip()), default=-1)
    complete = _is_complete(output.lines)
    ports = words.Ports(facts)
    subject: Subject | None = None
    for index, text in enumerate(output.lines):
        line = output.first_line + index
        if match := _HEAD.match(text):
            subject = port(match[1], match[2])
        elif subject is not None and (match := _VALUE.match(text)):
            told = "" if index == last and not complete else match[2] or ""
            if match[1] == "rate":
                ports.put_rate(subject, told, line)
            elif match[1] in _READ:
                ports.put(subject, *_READ[match[1]], told, line)
    ports.close()
    if not complete:
        facts.cut_off("ibstatus ends in the middle of a port", _GIVES)


def _is_complete(lines: list[str]) -> bool:
    """Tell whether the last port has all lines that the first one has, and at least its rate."""
    ports: list[set[str]] = []
    for text in lines:
        if _HEAD.match(text):
            ports.append(set())
        elif ports and (match := _VALUE.match(text)):
            ports[-1].add(match[1])
    return not ports or (ports[-1] >= ports[0] and ("rate" in ports[-1] or "state" not in ports[-1]))
