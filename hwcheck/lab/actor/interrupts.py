"""
Where interrupts go: /proc/irq/N/smp_affinity_list, and irqbalance, which moves those of the adapters back.

A running irqbalance places every interrupt again within ten seconds unless it was started with a ban (``--banirq``,
``--banmod``; IRQBALANCE_ARGS in /etc/default/irqbalance). The lab does it at the next act of systemctl. ``live/irqs``
holds where it puts them: ``140=0``. Sources: irqbalance(1); Documentation/core-api/irq/irq-affinity.rst.
"""

from __future__ import annotations

from hwcheck.lab.actor.place import Node

_UNIT = "irqbalance.service"
_DRIVER = "mlx5_core"


def balance(node: Node) -> None:
    """Undo pins by hand where irqbalance runs."""
    state = node.live(f"units/{_UNIT}")
    if state.get("ActiveState") != "active":
        return
    words = node.text(f"/proc/{state['MainPID']}/cmdline").replace("\0", " ").replace("=", " ").split()
    banned = {words[at + 1] for at, word in enumerate(words[:-1]) if word in ("--banirq", "-i", "--banmod", "-m")}
    if _DRIVER in banned:
        return
    for irq, cpus in node.live("irqs").items():
        path = f"/proc/irq/{irq}/smp_affinity_list"
        if irq not in banned and node.text(path) not in (cpus, ""):
            node.put(path, cpus)
