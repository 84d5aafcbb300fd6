"""
``ibdev2netdev``: which network interface belongs to which RDMA port.

Source: the ``ibdev2netdev`` script of OFED / DOCA, plain and ``-v``; public outputs.
Shape: one line a port: ``mlx5_0 port 1 ==> ens4f0 (Up)``. Subjects: the port, and the interface for the way back.
Units: none.
Missing: ``==>`` without an interface is a port without one (in another network namespace): absent.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import Reason, Subject, port
from hwcheck.parse import port_words as words
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_LINE = re.compile(
    r"^\s*(?:[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d\s+)?([\w.:-]{1,64})\s.{0,300}?port (\d{1,3}) .{0,40}?"
    r"==> ?(.{0,80})$"
)
_PLAIN = re.compile(r"^\s*([\w.:-]{1,64}) port (\d{1,3}) ==> ?(.{0,80})$")
_TARGET = re.compile(r"^([\w.:@-]{1,32}) \((Up|Down)\)\s*$")
_OPENS = r"\s*(?:[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d\s+)?[\w.:-]{1,64}\s.{0,300}?port \d{1,3} .{0,40}?==>"


@fmt(
    "ibdev2netdev",
    "ibdev2netdev",
    gives=("rdma.port.netdev", "rdma.port.netdev_up", "net.rdma_port"),
    opens=_OPENS,
    continues=_OPENS,
    command=r"(?:^|[\s/|;&])ibdev2netdev\b",
)
def parse_ibdev2netdev(output: Output, facts: FactSink) -> None:
    """Read the lines; each stands alone."""
    ports = words.Ports(facts)
    for index, text in enumerate(output.lines):
        line = output.first_line + index
        match = _PLAIN.match(text) or _LINE.match(text)
        if match is None:
            continue
        subject = port(match[1], match[2])
        if not match[3].strip():
            facts.missing(subject, "rdma.port.netdev", Reason.ABSENT, "no interface", line)
        elif target := _TARGET.match(match[3].strip()):
            facts.put(subject, "rdma.port.netdev", target[1], line)
            facts.put(subject, "rdma.port.netdev_up", target[2] == "Up", line)
            facts.put(Subject("netdev", target[1]), "net.rdma_port", subject.id, line)
            ports.note(subject, "rdma.port.netdev", target[1])
            ports.note(subject, "rdma.port.netdev_up", target[2] == "Up")
        else:
            facts.unparsable(subject, "rdma.port.netdev", match[3], line)
            facts.unparsable(subject, "rdma.port.netdev_up", match[3], line)
    ports.close()
