"""The devices of a simulated node: GPUs, PCI functions, network adapters, drives. See :mod:`hwcheck.lab.machine`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

ENDPOINT, ROOT_PORT, UPSTREAM, DOWNSTREAM = 0, 4, 5, 6
REDIRECTING = 0x1D
"""ACS control: SrcValid, ReqRedir, CmpltRedir, UpstreamFwd: what a hypervisor host sets."""
PRIORITIES = 8


@dataclass
class Gpu:
    """
    One GPU.

    Attributes:
        index, address: of nvidia-smi; the PCI function of the same address holds the link.
        state: attribute of the lab's NVML → value (:mod:`hwcheck.lab.nvml.attributes`), less what the link says.
    """

    index: int
    address: str
    state: dict[str, Any]

    @property
    def bus_id(self) -> str:
        """Address as NVML spells it: ``00000000:18:00.0``."""
        return "0000" + self.address.upper()


@dataclass
class Function:
    """
    One PCI function; speeds are codes (5 is 32 GT/s), sizes bytes.

    Attributes:
        above: address of the port it hangs on; "" for a root port.
        kind: class code, six digits.
        ids, subsystem: ``10de:2335``.
        numa: NUMA node by the firmware, -1 for none.
        acs: ACS control register; None without the capability.
        aspm, aspm_possible: bits 1 (L0s) and 2 (L1) of the link.
        errors: AER status of uncorrectable errors.
        counted: AER counters of correctable errors since boot.
        lost: reads answer with ones.
    """

    address: str
    kind: str
    ids: str
    above: str = ""
    subsystem: str = "0000:0000"
    driver: str = ""
    port: int = ENDPOINT
    numa: int = 0
    width: int = 16
    width_max: int = 16
    speed: int = 5
    speed_max: int = 5
    aspm: int = 0
    aspm_possible: int = 2
    read_request: int = 4096
    payload: int = 256
    relaxed: bool = True
    acs: int | None = None
    errors: int = 0
    counted: dict[str, int] = field(default_factory=dict)
    group_type: str = ""
    lost: bool = False


@dataclass
class Nic:
    """
    One RDMA device with one port and its network interface.

    Attributes:
        layer: ``InfiniBand`` or ``Ethernet``.
        rate: Gb/s of a port that is up; ``lanes`` as sysfs says it: ``4X NDR``.
        counters: name → value of those that are not 0, also hardware counters.
        irqs: interrupt → CPU that it goes to.
        trust, pfc, ecn, traffic_class, default_tos: RoCE settings; the same for the host form's tools.
    """

    name: str
    address: str
    netdev: str
    guid: int
    layer: str = "InfiniBand"
    hca: str = "MT4129"
    psid: str = "MT_0000000838"
    firmware: str = "28.43.2566"
    state: str = "4: ACTIVE"
    physical: str = "5: LinkUp"
    rate: int = 400
    lanes: str = "4X NDR"
    counters: dict[str, int] = field(default_factory=dict)
    irqs: dict[int, int] = field(default_factory=dict)
    mtu: int = 4092
    trust: str = "dscp"
    pfc: tuple[int, ...] = (3,)
    ecn: tuple[int, ...] = (3,)
    traffic_class: int = 106
    default_tos: int = 106

    @property
    def up(self) -> bool:
        """Whether the port carries traffic."""
        return self.state.startswith("4")

    @property
    def ethernet(self) -> bool:
        """Whether it speaks RoCE."""
        return self.layer == "Ethernet"


@dataclass
class Drive:
    """One NVMe drive."""

    name: str
    address: str
    state: str = "live"
