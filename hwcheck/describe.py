"""
What a node is, beside how it fares: boot, cohort, parts with their serials, versions, and how the parts hang together.

Certificates, the store and the report's pictures read it; no verdict rests on it. What the evidence does not tell is
left out, never made up.
"""

from __future__ import annotations

from typing import Any

from hwcheck.facts import NODE, Snapshot, Subject
from hwcheck.topology import topology

_GPU = {"index": "gpu.index", "uuid": "gpu.uuid", "serial": "gpu.serial", "name": "gpu.name", "vbios": "gpu.vbios"}
_NIC = {
    "model": "rdma.device.model", "address": "rdma.device.pci", "firmware": "rdma.device.fw",
    "psid": "rdma.device.psid", "guid": "rdma.device.guid",
}  # fmt: skip
_VERSIONS = {
    "driver": "driver.version", "driver module": "driver.module_version", "CUDA": "driver.cuda_version",
    "fabric manager": "driver.fabric_manager.version", "IMEX": "driver.imex.version", "kernel": "kernel.release",
    "BIOS": "firmware.bios",
}  # fmt: skip
_SERIALS = {"serial": "platform.serial", "board_serial": "platform.board_serial"}


def describe(snapshot: Snapshot, platform: str) -> dict[str, Any]:
    """
    Describe a node.

    Args:
        snapshot: its facts.
        platform: name of the profile that judged it.

    Returns:
        JSON: ``boot_id``, ``taken`` (seconds since 1970), ``cohort``, ``product``, ``serial`` and ``board_serial``
        where they are told, ``gpus`` and ``nics`` (records with ``id``), ``versions`` (name → text), ``sources`` (kind
        of output → ``read``, or why it was not told), ``topology`` (:func:`hwcheck.topology.topology`).
    """
    return {
        "boot_id": str(snapshot.value("evidence.boot_id") or ""),
        "taken": snapshot.value("evidence.taken"),
        "cohort": cohort(platform, snapshot),
        "product": str(snapshot.value("platform.product") or ""),
        **_told(snapshot, NODE, _SERIALS),
        "gpus": _parts(snapshot, "gpu", _GPU),
        "nics": _parts(snapshot, "nic", _NIC),
        "versions": _told(snapshot, NODE, _VERSIONS),
        "sources": _sources(snapshot),
        "topology": topology(snapshot),
    }


def cohort(platform: str, snapshot: Snapshot) -> str:
    """Say platform × driver and firmware × kernel: nodes of one cohort behave alike."""
    driver = snapshot.value("driver.version") or snapshot.value("driver.module_version") or "unknown"
    bios, kernel = snapshot.value("firmware.bios") or "unknown", snapshot.value("kernel.release") or "unknown"
    return f"{platform}, driver {driver}, BIOS {bios}, kernel {kernel}"


def _sources(snapshot: Snapshot) -> dict[str, str]:
    """Say of each source whether it was read to its end; one that broke off counts as not told."""
    told = {record["kind"]: "read" for record in snapshot.value("evidence.read") or ()}
    return {**told, **{gap.kind: str(gap.missing.reason) for gap in snapshot.gaps}}


def _parts(snapshot: Snapshot, kind: str, names: dict[str, str]) -> list[dict[str, Any]]:
    return [{"id": subject.id, **_told(snapshot, subject, names)} for subject in snapshot.subjects(kind)]


def _told(snapshot: Snapshot, subject: Subject, names: dict[str, str]) -> dict[str, Any]:
    values = {key: snapshot.value(name, subject) for key, name in names.items()}
    return {key: value for key, value in values.items() if value is not None}
