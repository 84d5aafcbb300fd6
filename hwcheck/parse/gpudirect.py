"""
The ways by which a network adapter reaches GPU memory: what the kernel shows of each.

Source: ``/sys/module/nvidia_peermem/version``; ``/sys/kernel/mm/memory_peers/NAME/version`` (old OFED); whether
``/proc/kallsyms`` has ``ib_register_peer_memory_client``; and congestion parameters of mlx5 in debugfs.
Shape: ``PATH: value`` a line, facts of the node; of the adapter for debugfs.
Units: none.
Missing: a module that is not loaded has no file: no fact. It is no fault by itself, dma-buf needs none.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import NODE, Subject, count
from hwcheck.parse.file_text import gap_of, rows
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_CLIENT = re.compile(r"^/sys/kernel/mm/memory_peers/(\w{1,40})/version$")
_SYMBOL = "/proc/kallsyms ib_register_peer_memory_client"
_CONGESTION = re.compile(r"^/sys/kernel/debug/mlx5/([0-9a-f:.]{7,16})/cc_params/(np_cnp_dscp|np_cnp_prio)$")


@fmt(
    "gpudirect",
    "modules of GPUDirect RDMA",
    gives=("gpudirect.*",),
    opens=r"/sys/module/(?:nvidia_peermem|nv_peer_mem)/version: |/sys/kernel/mm/memory_peers/|" + _SYMBOL,
    continues=r"/sys/module/(?:nvidia_peermem|nv_peer_mem)/|/sys/kernel/mm/memory_peers/|" + _SYMBOL,
)
def parse_gpudirect(output: Output, facts: FactSink) -> None:
    """Read the module, the registered clients, and the symbol."""
    clients: list[tuple[str, int]] = []
    for path, text, line in rows(output):
        client = _CLIENT.match(path)
        if gap_of(text) is not None:
            continue
        if path in ("/sys/module/nvidia_peermem/version", "/sys/module/nv_peer_mem/version"):
            facts.put(NODE, "gpudirect.peermem", text[:40], line)
        elif client:
            clients.append((client[1], line))
        elif path == _SYMBOL and text in ("yes", "no"):
            facts.put(NODE, "gpudirect.peer_client", text == "yes", line)
    if clients:
        facts.put(NODE, "gpudirect.clients", tuple(name for name, _ in clients), clients[0][1])


@fmt(
    "mlx5.cc_params",
    "congestion parameters of mlx5",
    gives=("roce.cnp_dscp", "roce.cnp_prio"),
    opens=r"/sys/kernel/debug/mlx5/\S{7,16}/cc_params/",
    continues=r"/sys/kernel/debug/mlx5/",
)
def parse_congestion(output: Output, facts: FactSink) -> None:
    """Read how congestion notifications are marked; the adapter is named by its PCI address."""
    for path, text, line in rows(output):
        match = _CONGESTION.match(path)
        if match and gap_of(text) is None:
            name = "roce.cnp_dscp" if match[2] == "np_cnp_dscp" else "roce.cnp_prio"
            facts.read(Subject("nic", match[1]), name, count, text, line)
