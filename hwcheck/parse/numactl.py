"""
NUMA nodes with their CPUs, memory and distances.

Source: ``numactl -H`` (``--hardware``) of numactl 2.0, and the short form in which people post it: CPU ranges, runs of
equal nodes folded into one line (``node 3..9 size: 0 MB (no cpus)``).
Shape: ``numa.cpus``, ``numa.size``, ``numa.free`` per NUMA node; ``numa.count``, ``numa.distances`` and ``numa.lines``
    (the lines that tell sizes) of the node.
Units: numactl's MB is MiB.
Missing: ``node 2 cpus:`` with nothing behind is 0 CPUs: GPU memory on Grace machines, CXL memory elsewhere.
"""

from __future__ import annotations

import re
from typing import Any

from hwcheck.evidence import Output
from hwcheck.facts import NODE, Subject
from hwcheck.parse.format import fmt
from hwcheck.parse.lscpu import count_cpus
from hwcheck.parse.sink import FactSink

_NODE = re.compile(r"^node\s+(\d{1,4})(?:\s?(?:\.\.|-)\s?(\d{1,4}))?\s+(cpus|size|free):\s*(.*)$")
_AVAILABLE = re.compile(r"^available:\s+(\d{1,4}) nodes? \(([\d,-]{1,200})\)")
_DISTANCE = re.compile(r"^\s*(\d{1,4}):((?:\s+\d{1,3}){1,1024})\s*$")
_MOST = 1024


@fmt(
    "numactl",
    "numactl -H",
    gives=("numa.*",),
    opens=r"available:\s+\d{1,4} nodes? \([\d,-]+\)",
    continues=r"^node\s|^\s*\d{1,4}:(?:\s+\d{1,3})+\s*$",
    command=r"(?:^|[\s/|;&])numactl\s+(?:-H|--hardware)",
)
def numactl(output: Output, facts: FactSink) -> None:
    """Read the nodes and the matrix; say so when fewer nodes are listed than announced."""
    announced, listed = 0, set()
    sizes: dict[str, dict[str, Any]] = {}
    rows: list[tuple[int, ...]] = []
    for number, line in enumerate((text[:8192].rstrip() for text in output.lines), output.first_line):
        available, distance, node = _AVAILABLE.match(line), _DISTANCE.match(line), _NODE.match(line)
        if available:
            announced = int(available[1])
            facts.put(NODE, "numa.count", announced, number)
        elif distance:
            rows.append(tuple(map(int, distance[2].split())))
        elif node:
            first, last = int(node[1]), int(node[2] or node[1])
            for index in range(first, min(last, _MOST) + 1):
                listed.add(index)
                _put(facts, Subject("numa", str(index)), node[3], node[4].strip(), number)
                if node[3] == "size":
                    sizes[str(index)] = {"line": number, "text": line[:200]}
    if sizes:
        facts.put(NODE, "numa.lines", sizes, output.first_line)
    if rows and all(len(row) == len(rows) for row in rows):
        facts.put(NODE, "numa.distances", tuple(rows), output.first_line)
    if len(listed) < announced:
        facts.cut_off(f"{announced} nodes announced, {len(listed)} listed", ("numa.cpus", "numa.size", "numa.free"))


def _put(facts: FactSink, node: Subject, what: str, value: str, line: int) -> None:
    if what == "cpus":
        facts.read(node, "numa.cpus", count_cpus, value, line)
        return
    found = re.match(r"(\d{1,12}) MB(\s+\(no cpus\))?$", value)
    if not found:
        facts.unparsable(node, f"numa.{what}", value, line)
        return
    facts.put(node, f"numa.{what}", int(found[1]), line)
    if found[2]:
        facts.put(node, "numa.cpus", 0, line)
