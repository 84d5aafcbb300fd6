"""
Main memory as the kernel counts it.

Source: ``/proc/meminfo``.
Shape: ``memory.total``, ``memory.available``, ``memory.swap``, ``memory.corrupted`` of the node.
Units: kB in the file is KiB; MiB in the facts, KiB for what is out of use.
Missing: kernels without memory failure handling have no HardwareCorrupted line.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import NODE
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_LINE = re.compile(r"^(\w{3,30}):\s+(\d{1,15}) kB\s*$")
_MIB = {"MemTotal": "memory.total", "MemAvailable": "memory.available", "SwapTotal": "memory.swap"}


@fmt(
    "proc.meminfo",
    "/proc/meminfo",
    gives=(*_MIB.values(), "memory.corrupted"),
    opens=r"MemTotal:\s+\d{1,15} kB\s*$",
    continues=r"^[A-Za-z_0-9()]{2,40}:\s+\d{1,20}(?: kB)?\s*$",
    command=r"\bcat\s+/proc/meminfo\b",
)
def meminfo(output: Output, facts: FactSink) -> None:
    """Read the few lines that say something of the hardware or its use."""
    for number, line in enumerate(output.lines, output.first_line):
        found = _LINE.match(line[:100])
        if found and found[1] in _MIB:
            facts.put(NODE, _MIB[found[1]], int(found[2]) // 1024, number)
        elif found and found[1] == "HardwareCorrupted":
            facts.put(NODE, "memory.corrupted", int(found[2]), number)
