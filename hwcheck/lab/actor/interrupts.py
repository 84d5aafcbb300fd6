"""
Where interrupts go: /proc/irq/N/smp_affinity_list, and irqbalance, which moves those of the adapters back.

A running irqbalance places every interrupt again within ten seconds unless it is banned (``--banirq``,
IRQBALANCE_ARGS in /etc/default/irqbalance). The lab does it at the next act of systemctl. ``live/irqs`` holds where it
puts them: ``140=0``. Sources: irqbalance(1); Documentation/core-api/irq/irq-affinity.rst.
"""

from __future__ import annotations

from hwcheck.lab.actor.place import Node

_DEFAULTS = ("/etc/default/irqbalance", "/etc/sysconfig/irqbalance")


def balance(node: Node) -> None:
    """Undo pins by hand where irqbalance runs."""
    if node.live("units/irqbalance.service").get("ActiveState") != "active":
        return
    placed = node.live("irqs")
    banned = _banned(node)
    for irq, cpus in placed.items():
        path = f"/proc/irq/{irq}/smp_affinity_list"
        if irq not in banned and node.text(path) not in (cpus, ""):
            node.put(path, cpus)


def _banned(node: Node) -> set[str]:
    text = " ".join(node.text(path) for path in _DEFAULTS) + node.live_text("loaded/irqbalance.service")
    words = text.replace("=", " ").replace('"', " ").replace("'", " ").split()
    return {words[at + 1] for at, word in enumerate(words[:-1]) if word in ("--banirq", "-i")}
