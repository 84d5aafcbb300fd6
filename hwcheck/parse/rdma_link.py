"""
``rdma link``: RDMA ports as the kernel's netlink interface tells them.

Source: ``rdma link show`` of iproute2; its man page.
Shape: one line a port: ``link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens6``; the subject is the port.
    InfiniBand ports carry ``subnet_prefix``, ``lid``, ``sm_lid``, ``lmc`` before the state.
Units: none.
Missing: no ``netdev`` at the end is a port without interface, and nothing is recorded.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import port
from hwcheck.parse import port_words as words
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_OPENS = r"\s*(?:\d{1,4}/\d{1,3}: )?link [\w.:-]{1,64}/\d{1,3} (?:subnet_prefix |state )"
_LINE = re.compile(r"^\s*(?:\d{1,4}/\d{1,3}: )?link ([\w.:-]{1,64})/(\d{1,3}) (.{0,400})$")
_READ = {
    "lid": ("rdma.port.lid", words.lid),
    "sm_lid": ("rdma.port.sm_lid", words.lid),
    "state": ("rdma.port.state", words.port_state),
    "physical_state": ("rdma.port.phys_state", words.physical_state),
    "netdev": ("rdma.port.netdev", words.short),
}


@fmt(
    "rdma.link",
    "rdma link",
    gives=("rdma.port.lid", "rdma.port.sm_lid", "rdma.port.state", "rdma.port.phys_state", "rdma.port.netdev"),
    opens=_OPENS,
    continues=_OPENS,
    command=r"(?:^|[\s/|;&])rdma\s+(?:-\w+\s+)*link(?:\s+(?:show|list))?\s*$",
)
def parse_rdma_link(output: Output, facts: FactSink) -> None:
    """Read the lines; each stands alone."""
    ports = words.Ports(facts)
    for index, text in enumerate(output.lines):
        match = _LINE.match(text)
        if match is None:
            continue
        subject = port(match[1], match[2])
        parts = match[3].split()
        for key, told in zip(parts[::2], parts[1::2], strict=False):
            if key in _READ:
                ports.put(subject, *_READ[key], told, output.first_line + index)
        if "subnet_prefix" in parts:  # printed for InfiniBand ports only
            ports.put(subject, "rdma.port.link_layer", words.link_layer, "InfiniBand", output.first_line + index)
    ports.close()
