"""Where the interrupts of the adapters go."""

from __future__ import annotations

from dataclasses import replace

from hwcheck.checks.relation import Answer, Given, ok, relation, skip, warn
from hwcheck.findings import Remedy, Urgency, Write

_PIN = Remedy(
    "write",
    "Write CPUs of the adapter's own NUMA node into smp_affinity_list of its interrupts "
    "(set_irq_affinity_bynode.sh of the NIC vendor), again by udev after each driver load; a running irqbalance undoes "
    "it unless these interrupts are banned there.",
    role="numa_pinning",
    disturbs="nothing",
    worked_out="irq_affinity interrupts = the CPUs near the device, irqbalance off (only with opt-in)",
    by_hand="The list of near CPUs is too long for the evidence.",
)
_LONGEST = 200
"""Characters of a CPU list that the evidence keeps: one of this length may be cut."""


@relation("numa.irqs", needs=("rdma.device.irqs",), urgency=Urgency.NOTE, remedy=_PIN)
def interrupts_are_near(given: Given) -> Answer:
    """
    Interrupts of an RDMA device go to CPUs of its own NUMA node.

    What it checks: the effective CPUs of the device's interrupts against the CPUs near it. All of them elsewhere is
    wrong; some elsewhere is what the driver does by itself when it has more interrupts than there are CPUs near it, and
    is judged only where the site asks for a share.

    Why it matters: each completion on the wrong socket costs a trip over the socket link. NCCL polls and hardly
    notices; storage and TCP traffic do.

    How to fix: pin the interrupts, and keep irqbalance off them.

    Applies to: machines with more than one NUMA node. Interrupts that the kernel manages cannot be moved.

    Source: Linux documentation of IRQ affinity; NVIDIA's advice for mlx5 adapters.
    """
    irqs, share = given["rdma.device.irqs"], given.bound("numa.irqs_near")
    total, near = irqs["total"], irqs["near"]
    text = f"{near} of {total} interrupts go to near CPUs ({irqs['cpus']})"
    remedy = _PIN
    if len(irqs["cpus"]) < _LONGEST:
        remedy = replace(_PIN, by_hand="", writes=(
            Write("unit", "irqbalance.service", "disabled", opt_in=True, indirect=True),
            Write("irq_affinity", "interrupts", irqs["cpus"], opt_in=True),
        ))  # fmt: skip
    if near == 0:
        text = f"none of {total} interrupts goes to a near CPU ({irqs['cpus']})"
        return warn(text, observed=0, expected=total, remedy=remedy)
    if share is not None and near < total * share / 100:
        return warn(text, observed=near, expected=f"at least {share} %", remedy=remedy)
    if near < total and share is None:
        return skip(f"{text}; how they are spread is the site's decision", observed=near)
    return ok(text, observed=near)
