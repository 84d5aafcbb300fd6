"""
The model of a simulated node: what it is made of and in which state. Everything that a lab node shows derives from it.

A platform builds a healthy one, faults change it (:mod:`hwcheck.lab.faults`), and the tree, the tools on PATH and NVML
are printed from it, so that all sources agree. Units are in the names or said; addresses are those of Linux.
"""

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
class Processor:
    """Sockets, cores, threads and how they are driven."""

    vendor: str
    model: str
    sockets: int
    cores: int
    threads: int
    governor: str = "performance"
    preference: str = "performance"
    driver: str = "intel_pstate"
    idle_off_above: int = 0
    offline: tuple[int, ...] = ()
    microcode: str = "0x2b000603"

    @property
    def count(self) -> int:
        """Logical CPUs; the second threads follow after all first ones."""
        return self.sockets * self.cores * self.threads

    def cpus_of(self, socket: int) -> str:
        """Return the CPU list of a socket: ``0-31,64-95``."""
        step = self.sockets * self.cores
        first = [socket * self.cores + thread * step for thread in range(self.threads)]
        return ",".join(f"{start}-{start + self.cores - 1}" for start in first)


@dataclass
class Service:
    """One systemd unit; ``pid`` 0 when it does not run."""

    active: str = "active"
    sub: str = "running"
    enabled: str = "enabled"
    loaded: str = "loaded"
    pid: int = 0
    memlock: int = 2**64 - 1
    result: str = "success"
    restarts: int = 0


@dataclass
class Process:
    """One process that holds a device, or hangs."""

    pid: int
    name: str
    state: str = "S"
    parent: int = 1
    devices: tuple[str, ...] = ()
    stack: tuple[str, ...] = ()
    started: int = 100_000
    limits: int | None = None


@dataclass
class Clock:
    """What chrony says, and what the kernel ticks by."""

    offset: float = 0.000012
    leap: str = "Normal"
    stratum: int = 3
    reference: str = "0A000101"
    servers: tuple[str, ...] = ("ntp1.lab.internal", "ntp2.lab.internal")
    source: str = "tsc"
    running: bool = True
    ptp_offset: int | None = None
    ptp_state: str = "SLAVE"


@dataclass
class Kernel:
    """
    Kernel, its arguments and parameters now and at the next boot.

    Attributes:
        arguments: of this boot; ``next_arguments`` what grub.cfg has.
        sysctls: parameter → value now.
        drop_ins: path → text of files under sysctl.d.
        modules: loaded module → version, "" for one of the kernel itself.
        module_files: module → version of its file for this kernel.
        log: (seconds since boot, text).
        taint: mask of /proc/sys/kernel/tainted.
    """

    release: str
    arguments: str
    next_arguments: str
    sysctls: dict[str, str]
    drop_ins: dict[str, str]
    modules: dict[str, str]
    module_files: dict[str, str]
    log: list[tuple[float, str]]
    taint: int = 12288
    hung: int = 0
    aspm_policy: str = "[default] performance powersave powersupersave"
    firmware_keeps_aspm: bool = False
    iommu: str = "identity"


@dataclass
class Drive:
    """One NVMe drive."""

    name: str
    address: str
    state: str = "live"


@dataclass
class Mount:
    """One mount; options of the mount point and of the file system."""

    where: str
    kind: str
    device: str
    options: str = "rw,relatime"
    super_options: str = "rw"
    planned: bool = True


@dataclass
class Imex:
    """The IMEX domain as this node sees it: address → (state, version)."""

    nodes: dict[str, tuple[str, str]] = field(default_factory=dict)
    channels: int = 1

    @property
    def whole(self) -> bool:
        """Whether every node is ready."""
        return all(state == "READY" for state, _ in self.nodes.values())


@dataclass
class Machine:
    """
    A node.

    Attributes:
        nvml_faults: file below the NVML state folder → text; what write_state has no attribute for.
        slow_tools: tools on PATH that never return.
        memory: MiB of each NUMA node, CPU or not.
        numa_cpus: CPU list of each NUMA node.
        numa_distances: row of each NUMA node.
        edac: memory controller → (corrected, uncorrected).
        libraries: version that the driver's libraries in user space have.
        packages: package → version.
        files: path → text of more files.
        versions: of tools: ``fabric-manager``, ``imex``.
    """

    name: str
    platform: str
    product: str
    arch: str
    boot_id: str
    uptime: int
    driver: str
    cuda: str
    gpus: list[Gpu]
    functions: dict[str, Function]
    nics: list[Nic]
    processor: Processor
    memory: list[int]
    numa_cpus: list[str]
    numa_distances: list[str]
    kernel: Kernel
    services: dict[str, Service]
    processes: list[Process]
    clock: Clock
    drives: list[Drive]
    mounts: list[Mount]
    imex: Imex | None
    edac: list[tuple[int, int]]
    libraries: str
    packages: dict[str, str]
    versions: dict[str, str]
    limits: dict[str, str] = field(default_factory=dict)
    unit_drop_ins: dict[str, str] = field(default_factory=dict)
    corrupted: int = 0
    transparent_pages: str = "always [madvise] never"
    nvml_faults: dict[str, str] = field(default_factory=dict)
    slow_tools: set[str] = field(default_factory=set)
    files: dict[str, str] = field(default_factory=dict)

    def nic_of(self, gpu: Gpu) -> Nic:
        """Return the adapter next to a GPU."""
        return self.nics[gpu.index % len(self.nics)]

    def say(self, text: str, at: float | None = None) -> None:
        """Add a line to the kernel's log."""
        last = self.kernel.log[-1][0] if self.kernel.log else 0.0
        self.kernel.log.append((last + 61.5 if at is None else at, text))

    def path_of(self, address: str) -> str:
        """Return the path of a function below /sys: ``devices/pci0000:15/0000:15:01.0/...``."""
        function = self.functions[address]
        if not function.above:
            return f"devices/pci{address[:7]}/{address}"
        return f"{self.path_of(function.above)}/{address}"
