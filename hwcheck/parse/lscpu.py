"""
CPUs, sockets and NUMA nodes.

Source: ``lscpu`` of util-linux 2.23 to 2.41, flat or indented form, English labels. Other languages are not claimed.
Shape: ``cpu.*`` and ``numa.count`` of the node, ``numa.cpus`` per NUMA node.
Units: counts.
Missing: a NUMA node without CPUs is listed with nothing behind the colon: 0 CPUs, not unknown. On Grace Hopper and
Grace Blackwell these nodes are GPU memory.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import NODE, Subject, count
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_COUNTS = {
    "CPU(s)": "cpu.count",
    "Socket(s)": "cpu.sockets",
    "Core(s) per socket": "cpu.cores_per_socket",
    "Thread(s) per core": "cpu.threads_per_core",
    "NUMA node(s)": "numa.count",
}
_TEXTS = {
    "Architecture": "cpu.architecture",
    "Model name": "cpu.model",
}
_NODE = re.compile(r"^NUMA node(\d{1,4}) CPU\(s\)$")


@fmt(
    "lscpu",
    "lscpu",
    gives=("cpu.*", "numa.count", "numa.cpus", "platform.virtualization"),
    opens=r"Architecture:\s+\w+\s*$",
    continues=r"^\s*[A-Z][\w ()/.,+-]{0,60}:|^\s{20,}\S",
    command=r"(?:^|[\s/|;&])lscpu(?:\s|$)",
)
def lscpu(output: Output, facts: FactSink) -> None:
    """Read the labels that are known; every other line is left alone."""
    if not any(line.startswith("Architecture:") for line in output.lines):
        return  # another language, or a filtered list: a bare "CPU(s):" may be of something else
    for number, line in enumerate(output.lines, output.first_line):
        label, colon, value = line[:4000].strip().partition(":")
        value = value.strip()
        if not colon:
            continue
        node = _NODE.match(label)
        if node:
            facts.read(Subject("numa", node[1]), "numa.cpus", count_cpus, value, number)
        elif label in _COUNTS and value != "-":  # lscpu's own sign for "not known on this machine"
            facts.read(NODE, _COUNTS[label], count, value, number)
        elif label in _TEXTS and value and value != "-":
            facts.put(NODE, _TEXTS[label], value[:100], number)
        elif label == "Off-line CPU(s) list" and value:
            facts.read(NODE, "cpu.offline", list_of_cpus, value, number)
        elif label == "Hypervisor vendor" and value:
            facts.put(NODE, "platform.virtualization", value[:40].lower(), number)


def list_of_cpus(text: str) -> str:
    """
    Return a list of CPUs as it is, when it is one.

    Raises:
        ValueError: the text is no such list: garbled on its way.
    """
    count_cpus(text)
    return text


def count_cpus(text: str) -> int:
    """
    Count the CPUs of a list: ``0-71``, ``0,2,4``, numactl's ``0 1 2``; "" is none.

    Raises:
        ValueError: the text is no such list.
    """
    total = 0
    for part in re.split(r"[,\s]+", text.strip()):
        if not part:
            continue
        found = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", part)
        if not found or int(found[2] or found[1]) < int(found[1]):
            raise ValueError("no list of CPUs")
        total += int(found[2] or found[1]) - int(found[1]) + 1
    return total
