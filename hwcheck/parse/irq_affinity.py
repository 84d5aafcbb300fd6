"""
Where the interrupts of RDMA devices go.

Source: kernel ABI sysfs-bus-pci (msi_irqs, local_cpulist) and the procfs documentation of ``/proc/irq``; the node
    program, or ``grep . /sys/class/infiniband/*/device/local_cpulist /proc/irq/*/effective_affinity_list``.
Shape: ``rdma.device.irqs`` of each device.
Units: counts.
Missing: an interrupt that nobody asked for has no effective CPUs, or cannot be read: it is not counted.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import Reason, Subject
from hwcheck.parse.flattened import gap
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink
from hwcheck.parse.sysfs_cpu import cpus

_DEVICE = re.compile(r"^/sys/class/infiniband/([\w.-]{1,64})/device/(local_cpulist|msi_irqs)(?:/(\d{1,7}))?:\s*(.*)$")
_IRQ = re.compile(r"^/proc/irq/(\d{1,7})/effective_affinity_list:\s*(.{0,4000})$")


@fmt(
    "irq.affinity",
    "interrupts of RDMA devices",
    gives=("rdma.device.irqs",),
    opens=r"/sys/class/infiniband/[\w.-]{1,64}/device/(?:local_cpulist|msi_irqs)\b|/proc/irq/\d+/effective_affinity_list:",
    continues=r"^/sys/class/infiniband/[\w.-]{1,64}/device/|^/proc/irq/",
    rank=40,
)
def irq_affinity(output: Output, facts: FactSink) -> None:
    """Count, for each device, the interrupts that go to CPUs near it and those that go elsewhere."""
    near: dict[str, tuple[int, str]] = {}
    numbers: dict[str, list[str]] = {}
    goes: dict[str, set[int]] = {}
    for number, line in enumerate(output.lines, output.first_line):
        device, irq = _DEVICE.match(line[:20_000]), _IRQ.match(line[:4100].strip())
        if device and device[2] == "local_cpulist":
            near[device[1]] = number, device[4].strip()
        elif device:
            numbers.setdefault(device[1], []).extend([device[3]] if device[3] else device[4].split())
        elif irq:
            try:
                goes[irq[1]] = cpus(irq[2].strip())
            except ValueError:
                goes[irq[1]] = set()
    for name, (number, text) in near.items():
        own, nic = numbers.get(name, []), Subject("nic", name)
        lost = sum(irq not in goes for irq in own)
        if lost:
            text_lost = f"{lost} of {len(own)} interrupts are not told"
            facts.missing(nic, "rdma.device.irqs", Reason.UNPARSABLE, text_lost, number)
        else:
            _put(facts, nic, number, text, [goes[irq] for irq in own if goes[irq]])


def _put(facts: FactSink, nic: Subject, line: int, text: str, targets: list[set[int]]) -> None:
    reason = gap(text)
    if reason:
        facts.missing(nic, "rdma.device.irqs", reason, text[:60], line)
        return
    try:
        local = cpus(text)
    except ValueError:
        facts.unparsable(nic, "rdma.device.irqs", text, line)
        return
    if not targets or not local:
        facts.missing(nic, "rdma.device.irqs", Reason.ABSENT, "no interrupt in use, or no near CPU", line)
        return
    inside = sum(target <= local for target in targets)
    record = {"total": len(targets), "near": inside, "far": len(targets) - inside, "cpus": text[:200]}
    facts.put(nic, "rdma.device.irqs", record, line)
