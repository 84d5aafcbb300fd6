"""
How the parts of a node hang together.

Which NUMA node, PCIe switch and root port each GPU and adapter is under, and which GPUs reach each other over NVLink.

Source: sysfs (``numa_node``, the path of a device), RDMA devices and interfaces with their PCI address, NVLink states,
and ``nvidia-smi topo -m`` where somebody has posted it.
"""

from __future__ import annotations

from typing import Any

from hwcheck.facts import NODE, Snapshot, Subject, pci_address

_PORT_KINDS = {"Root Port": "root", "Upstream Port": "up", "Downstream Port": "down"}
_DRIVE = "Non-Volatile memory controller"


def topology(snapshot: Snapshot) -> dict[str, Any]:
    """
    Return what the evidence tells; lists are empty where it tells nothing.

    Returns:
        JSON with four keys.

        ``numa``: records of ``id`` (number) and ``cpus``; nodes without CPUs (memory of a Grace GPU, CXL) are left out.

        ``ports``: the PCIe ports above a part, records of ``id`` (PCI address), ``kind`` (``root``, ``up``: the side of
        a switch towards the root, ``down``: a side towards devices, ``port``: not told) and ``parent`` ("" at the top).

        ``parts``: records of ``id`` (as findings name it), ``kind`` (``gpu``, ``nic``, ``netdev``: no RDMA device,
        ``nvswitch``, ``drive``), ``address`` (PCI, "" unknown), ``also`` (other names: interfaces of an adapter),
        ``numa`` (None unknown), ``parent`` (port, "" unknown), ``link`` ([lanes, most lanes, GT/s] or None) and, of a
        GPU, ``nvlinks`` ([up, all] or None).

        ``matrix``: of ``topo -m``, ``of`` (ids) and ``rows`` (words such as NV18 or PIX with a blank between, in the
        order of ``of``); None without it.
    """
    parts = [*_gpus(snapshot), *_adapters(snapshot), *_others(snapshot)]
    return {
        "numa": _numa_nodes(snapshot),
        "ports": _ports_above({part["parent"] for part in parts}, snapshot),
        "parts": parts,
        "matrix": _matrix(snapshot),
    }


def _numa_nodes(snapshot: Snapshot) -> list[dict[str, Any]]:
    counted = [(subject.id, snapshot.value("numa.cpus", subject)) for subject in snapshot.subjects("numa")]
    return [{"id": int(id), "cpus": cpus} for id, cpus in counted if cpus and id.isdecimal()]


def _part(snapshot: Snapshot, id: str, kind: str, address: str) -> dict[str, Any]:
    function = Subject("pci", address)
    numa = snapshot.value("pci.numa_node", function)
    lanes, most = snapshot.value("pci.link.width", function), snapshot.value("pci.link.width_max", function)
    return {
        "id": id,
        "kind": kind,
        "address": address,
        "also": [],
        "numa": numa if numa is not None and numa >= 0 else None,  # -1: the firmware gives none
        "parent": (snapshot.value("pci.upstream", function) or {}).get("address", ""),
        "link": [lanes, most, snapshot.value("pci.link.speed", function)] if lanes is not None else None,
    }


def _gpus(snapshot: Snapshot) -> list[dict[str, Any]]:
    found = []
    for subject in snapshot.subjects("gpu"):
        part = _part(snapshot, subject.id, "gpu", pci_address(subject.id) or "")
        near = snapshot.value("topo.numa_affinity", subject) or ""
        if part["numa"] is None and near.isdecimal():
            part["numa"] = int(near)
        links, up = snapshot.value("nvlink.links", subject), snapshot.value("nvlink.active_count", subject)
        if links:
            part["nvlinks"] = [sum(link["active"] for link in links), len(links)]
        else:
            part["nvlinks"] = None if up is None else [up, up]
        found.append(part)
    return found


def _adapters(snapshot: Snapshot) -> list[dict[str, Any]]:
    """Return RDMA devices, then interfaces of adapters that have none."""
    parts: dict[str, dict[str, Any]] = {}
    for subject in snapshot.subjects("nic"):
        address = snapshot.value("rdma.device.pci", subject) or pci_address(subject.id) or ""
        parts[address or subject.id] = _part(snapshot, subject.id, "nic", address)
    for subject in snapshot.subjects("netdev"):
        address = snapshot.value("net.bus", subject) or ""
        if address in parts:
            parts[address]["also"].append(subject.id)
        elif pci_address(address) and Subject("pci", address) in snapshot.facts:
            parts[address] = _part(snapshot, subject.id, "netdev", address)
    return list(parts.values())


def _others(snapshot: Snapshot) -> list[dict[str, Any]]:
    found = []
    for subject in snapshot.subjects("pci"):
        kind = snapshot.value("pci.class", subject)
        if kind == "Bridge" and snapshot.value("pci.device_id", subject, "").startswith("10de:"):
            found.append(_part(snapshot, subject.id, "nvswitch", subject.id))
        elif kind == _DRIVE:
            found.append(_part(snapshot, subject.id, "drive", subject.id))
    return found


def _ports_above(wanted: set[str], snapshot: Snapshot) -> list[dict[str, Any]]:
    """Return the ports that are wanted and those above them; of ports in a circle, each once."""
    known = {record["address"]: record for record in snapshot.value("pci.bridges") or ()}
    kept: dict[str, dict[str, Any]] = {}
    for address in sorted(wanted):
        while address in known and address not in kept:
            record = known[address]
            kind = _PORT_KINDS.get(record["port"], "port")
            kept[address] = {"id": address, "kind": kind, "parent": record["parent"]}
            address = record["parent"]  # noqa: PLW2901 - walks up
    return [kept[address] for address in sorted(kept)]


def _matrix(snapshot: Snapshot) -> dict[str, Any] | None:
    told = snapshot.value("topo.matrix", NODE)
    if told is None:
        return None
    by_index = {f"GPU{fact.value}": subject.id for subject, fact in snapshot.with_fact("gpu.index") if fact.present}
    names = [*told["gpus"], *told["nics"]]
    rows = [" ".join(told["cells"].get(row, {}).get(column, "?") for column in names) for row in names]
    return {"of": [by_index.get(name) or told["nics"].get(name, name) for name in names], "rows": rows}
