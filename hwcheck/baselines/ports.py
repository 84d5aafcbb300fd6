"""The ends of measurements between nodes: which ports a node has, whether they can be used, and what is near them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hwcheck.facts import Snapshot, Subject, pci_address

INFINIBAND, ROCE, HOST = "InfiniBand", "RoCE", "host"
_LAYERS = {"InfiniBand": INFINIBAND, "Ethernet": ROCE}


@dataclass(frozen=True, slots=True)
class Port:
    """
    One end of a measurement.

    Attributes:
        kind: ``InfiniBand``, ``RoCE``, or ``host``: the address by which the node is reached, for TCP.
        rail: where it is: PCI address and number of the port; ``host`` for the node's own address.
        device, number: ``mlx5_0`` and 1; "" and 0 for ``host``.
        interface: network interface of the port; "" unknown.
        address: PCI address; "" unknown.
        rate: Gb/s that it runs at; 0 where it does not tell.
        gid: index of the GID to use on RoCE; None for the tool's own choice.
        gpu: index of the nearest GPU in PCI order; None unknown.
        down: why it cannot be used; "" when it can.
    """

    kind: str
    rail: str
    device: str = ""
    number: int = 0
    interface: str = ""
    address: str = ""
    rate: float = 0.0
    gid: int | None = None
    gpu: int | None = None
    down: str = ""

    @property
    def name(self) -> str:
        """What it is called: ``mlx5_0/1``; "" for the node's own address."""
        return f"{self.device}/{self.number}" if self.device else ""

    @property
    def suffix(self) -> str:
        """What stands behind the node in the name of a measurement: ``/mlx5_0``."""
        if not self.device:
            return ""
        return f"/{self.device}" + (f":{self.number}" if self.number != 1 else "")


@dataclass(frozen=True, slots=True)
class Ends:
    """
    What of a node can be measured against others.

    Attributes:
        name: of the node.
        domain: what fails as a whole with it (a leaf switch, a rack); "" when nobody has said.
        ports: RDMA ports, and its own address.
    """

    name: str
    domain: str = ""
    ports: tuple[Port, ...] = field(default=())

    @property
    def has_rdma(self) -> bool:
        """Whether it has an RDMA port, active or not."""
        return any(port.kind != HOST for port in self.ports)


def ends_of(snapshot: Snapshot, name: str, domain: str = "") -> Ends:
    """
    List the ends of a node by its facts.

    Args:
        snapshot: of the quick tier.
        name: what the inventory calls it.
        domain: its failure domain.
    """
    ports = [_rdma_port(snapshot, subject) for subject in snapshot.subjects("port")]
    return Ends(name, domain, (*(port for port in ports if port is not None), Port(HOST, HOST)))


def _rdma_port(snapshot: Snapshot, subject: Subject) -> Port | None:
    device, _, number = subject.id.partition("/")
    kind = _LAYERS.get(snapshot.value("rdma.port.link_layer", subject) or "")
    if kind is None or not number.isdecimal():
        return None
    address = pci_address(snapshot.value("rdma.device.pci", Subject("nic", device)) or "") or ""
    state = snapshot.value("rdma.port.state", subject)
    down = "" if state == "Active" else f"its state is {state or 'unknown'}"
    return Port(
        kind, f"{address or device}/{number}", device, int(number),
        snapshot.value("rdma.port.netdev", subject) or "", address,
        0.0 if down else float(snapshot.value("rdma.port.rate", subject) or 0.0),
        _gid(snapshot.value("rdma.port.gids", subject) or ()) if kind == ROCE else None,
        _nearest_gpu(snapshot, address), down,
    )  # fmt: skip


def _gid(gids: tuple[dict[str, Any], ...]) -> int | None:
    """Choose a GID of RoCE v2: one with an IPv4 address before one with IPv6, as NCCL and others do."""
    second = [gid for gid in gids if gid.get("version") == "v2"]
    ranked = sorted(second, key=lambda gid: ("." not in (gid.get("ip") or ""), not gid.get("ip"), gid["index"]))
    return int(ranked[0]["index"]) if ranked else None


def _nearest_gpu(snapshot: Snapshot, address: str) -> int | None:
    """Return the place in PCI order of the GPU with the shortest way to an adapter."""
    mine = _way_up(snapshot, address)
    gpus = sorted(found for subject in snapshot.subjects("gpu") if (found := pci_address(subject.id)))
    if not address or not gpus:
        return None
    node = snapshot.value("pci.numa_node", Subject("pci", address))

    def far(gpu: str) -> tuple[bool, int, bool]:
        meets = [place for place, port in enumerate(_way_up(snapshot, gpu)) if port in mine]
        return not meets, meets[0] if meets else 0, snapshot.value("pci.numa_node", Subject("pci", gpu)) != node

    return gpus.index(min(gpus, key=far))


def _way_up(snapshot: Snapshot, address: str) -> list[str]:
    """List the PCIe ports above a device, nearest first."""
    way: list[str] = []
    while address and len(way) < 16:
        address = (snapshot.value("pci.upstream", Subject("pci", address)) or {}).get("address", "")
        if address in way:
            break
        way += [address] if address else []
    return way
