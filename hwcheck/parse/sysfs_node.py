"""
NUMA nodes from ``/sys/devices/system/node``.

Source: kernel ABI sysfs-devices-node; the node program, or ``tail -n +1 /sys/devices/system/node/node*/...``.
Shape: as ``numactl -H``: ``numa.cpus``, ``numa.size``, ``numa.free`` per node, ``numa.count``, ``numa.distances``.
Units: kB in meminfo is KiB; sizes in MiB.
Missing: an empty cpulist is 0 CPUs: GPU memory on Grace machines, CXL memory elsewhere.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import NODE, Subject
from hwcheck.parse.flattened import files, gap
from hwcheck.parse.format import fmt
from hwcheck.parse.lscpu import count_cpus
from hwcheck.parse.sink import FactSink

_FILE = re.compile(r"^/sys/devices/system/node/node(\d{1,4})/(cpulist|distance|meminfo)$")
_MEMORY = re.compile(r"^Node \d{1,4} (MemTotal|MemFree):\s+(\d{1,15}) kB$")
_NAMES = {"MemTotal": "numa.size", "MemFree": "numa.free", "cpulist": "numa.cpus", "meminfo": "numa.size"}


@fmt(
    "sysfs.node",
    "/sys/devices/system/node",
    gives=("numa.*",),
    opens=r"==> /sys/devices/system/node/[\w/]{1,60} <==\s*$",
    continues=r"^==> /sys/devices/system/node/|^Node \d|^[\d ,-]*$",
)
def sysfs_node(output: Output, facts: FactSink) -> None:
    """Read the three files of each node, and the list of nodes."""
    distances: dict[int, tuple[int, ...]] = {}
    for path, first, lines in files(output):
        text = lines[0].strip() if lines else ""
        found = _FILE.match(path)
        if path == "/sys/devices/system/node/online" and text and not gap(text):
            facts.read(NODE, "numa.count", count_cpus, text, first)
        if not found:
            continue
        node, what, reason = Subject("numa", found[1]), found[2], gap(text)
        if reason:
            if what in _NAMES:
                facts.missing(node, _NAMES[what], reason, text[:60], first)
        elif what == "cpulist":
            facts.read(node, "numa.cpus", count_cpus, text, first)
        elif what == "meminfo":
            _memory(facts, node, first, lines)
        elif re.fullmatch(r"\d{1,3}(?: +\d{1,3}){0,1023}", text):
            distances[int(found[1])] = tuple(map(int, text.split()))
    rows = tuple(distances[node] for node in sorted(distances))
    if rows and all(len(row) == len(rows) for row in rows):
        facts.put(NODE, "numa.distances", rows, output.first_line)


def _memory(facts: FactSink, node: Subject, first: int, lines: list[str]) -> None:
    for number, line in enumerate(lines[:20], first):
        found = _MEMORY.match(line.strip())
        if found:
            facts.put(node, _NAMES[found[1]], int(found[2]) // 1024, number)
