"""
The model of a simulated node: what it is made of and in which state. Everything that a lab node shows derives from it.

A platform builds a healthy one, faults change it (:mod:`hwcheck.lab.faults`), and the tree, the tools on PATH and NVML
are printed from it, so that all sources agree. Units are in the names or said; addresses are those of Linux.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hwcheck.lab.devices import Drive, Function, Gpu, Nic


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
    """One systemd unit; ``pid`` 0 when it does not run, ``command`` of ExecStart where it matters."""

    active: str = "active"
    sub: str = "running"
    enabled: str = "enabled"
    loaded: str = "loaded"
    pid: int = 0
    memlock: int = 2**64 - 1
    result: str = "success"
    restarts: int = 0
    command: str = ""


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
        load_tools: tools that measure and are installed: ``nvbandwidth``, ``ib_write_bw`` ...
        memory: MiB of each NUMA node, CPU or not.
        numa_cpus: CPU list of each NUMA node.
        numa_distances: row of each NUMA node.
        edac: memory controller → (corrected, uncorrected).
        libraries: version that the driver's libraries in user space have.
        packages: package → version.
        files: path → text of more files.
        versions: of tools: ``fabric-manager``, ``imex``.
        os: ``ubuntu`` or ``rhel``.
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
    os: str = "ubuntu"
    huge_pages: int = 0
    transparent_pages: str = "always [madvise] never"
    nvml_faults: dict[str, str] = field(default_factory=dict)
    slow_tools: set[str] = field(default_factory=set)
    load_tools: tuple[str, ...] = ()
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
