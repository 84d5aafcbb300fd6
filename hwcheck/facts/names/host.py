"""The host around the GPUs: PCI functions, kernel, limits, CPUs and NUMA, services, driver set, IMEX, clocks."""

from hwcheck.facts.registry import declare

declare(
    "pci",
    """
    pci.name               | str   |      | vendor and device as lspci names them; without lspci vendor, class and ids
    pci.class              | str   |      | class in words: 3D controller, Infiniband controller, PCI bridge
    pci.device_id          | str   |      | vendor and device id, 10de:2335
    pci.driver             | str   |      | kernel driver in use
    pci.numa_node          | int   |      | NUMA node the firmware gives the function; -1 when it gives none
    pci.iommu_group        | int   |      | IOMMU group number; there is one only while an IOMMU is on
    pci.lost               | bool  |      | the function reads as all ones (rev ff): it no longer answers on the bus
    pci.link.speed         | float | GT/s | current link speed, LnkSta; many GPUs lower it when idle
    pci.link.speed_max     | float | GT/s | highest link speed of the function itself, LnkCap
    pci.link.width         | int   |      | current link width in lanes, LnkSta
    pci.link.width_max     | int   |      | highest link width of the function itself, LnkCap
    pci.aspm               | str   |      | ASPM states enabled in LnkCtl: none, L0s, L1, L0s L1
    pci.aspm.possible      | str   |      | ASPM states the link can do, LnkCap: none, L0s, L1, L0s L1
    pci.max_payload        | int   | B    | MaxPayload in DevCtl
    pci.max_read_request   | int   | B    | MaxReadReq in DevCtl
    pci.relaxed_ordering   | bool  |      | RlxdOrd in DevCtl
    pci.uncorrectable      | tuple |      | names of the uncorrectable error bits that are set in UESta until cleared
    """,
)
declare(
    "node",
    """
    pci.acs                | tuple |  | ACSCtl lines: records of device ("" in a bare grep), port, redirect, flags, line
    pci.denied             | str   |  | why PCI capabilities could not be read; lspci as a user shows no ACS and no link
    platform.lspci_names   | tuple |  | names of NVIDIA functions from lspci, in order
    platform.virtualization | str  |  | none, kvm, microsoft, ...: systemd-detect-virt, or the hypervisor in lscpu
    platform.product       | str   |  | DMI product name of the machine
    platform.wsl           | bool  |  | the tool ran in the Windows Subsystem for Linux
    platform.user          | str   |  | user that took the evidence
    kernel.modules         | tuple |  | names of loaded modules; complete only when kernel.modules.filter is empty
    kernel.nouveau         | str   |  | the nouveau module, where the list of modules shows it loaded
    kernel.modules.filter  | str   |  | pattern the list was filtered by; only names that match it can be said absent
    kernel.cmdline         | tuple |  | kernel arguments in order, repeated ones kept
    limits.memlock         | str   |  | locked memory limit of the shell or process; unlimited, or a number of KiB
    sysctl.values          | dict  |  | kernel parameters as printed, dotted name to text
    sysctl.numa_balancing  | int   |  | kernel.numa_balancing; automatic page migration between NUMA nodes
    sysctl.max_map_count   | int   |  | vm.max_map_count; memory mappings one process may have
    sysctl.min_free_kbytes | int   | KiB | vm.min_free_kbytes; memory kept free for atomic allocations
    cpu.architecture       | str   |  | x86_64, aarch64
    cpu.model              | str   |  | CPU model name
    cpu.count              | int   |  | logical CPUs
    cpu.offline            | str   |  | list of CPUs that are offline
    cpu.sockets            | int   |  | CPU sockets
    cpu.cores_per_socket   | int   |  | cores in a socket
    cpu.threads_per_core   | int   |  | hardware threads in a core
    numa.lines             | dict  |  | NUMA node to record of line, text: where its size stands
    numa.count             | int   |  | NUMA nodes the tool announces
    numa.distances         | tuple |  | NUMA distance matrix, rows in node order
    """,
)
declare(
    "numa",
    """
    numa.cpus | int |     | logical CPUs of the node; 0 for memory of a Grace GPU or of CXL
    numa.size | int | MiB | memory of the node
    numa.free | int | MiB | free memory of the node
    """,
)
declare(
    "unit",
    """
    service.active  | str |  | active, inactive, failed, activating, deactivating, reloading
    service.sub     | str |  | what stands in brackets behind it: running, exited, dead, Result: exit-code
    service.loaded  | str |  | loaded, not-found, masked, error
    service.enabled | str |  | enabled, disabled, static, masked
    """,
)
declare(
    "node",
    """
    driver.module_version         | str   | | version of the loaded nvidia kernel module
    driver.module_installed       | str   | | version of the nvidia module file that the next load takes (modinfo)
    driver.module_open            | bool  | | the loaded module is the open one
    driver.library_version        | str   | | version of the NVML library, as its mismatch message says
    driver.packages               | tuple | | installed driver-set packages: records of name, version (bare)
    driver.package_version        | str   | | version of the installed driver package
    driver.fabric_manager.version | str   | | version of nvidia-fabricmanager: package, program or its own message
    driver.fabric_manager.wanted  | str   | | driver version the fabric manager found when it refused to start
    driver.fabric_manager.idle    | str   | | message that the fabric manager finds no NVSwitch to manage
    driver.imex.version           | str   | | version of nvidia-imex: package or program
    driver.nvml_mismatch          | str   | | message that the NVML library and the kernel module differ
    driver.unreachable            | str   | | message that the tools cannot talk to the kernel driver
    driver.no_devices             | str   | | message that the driver shows no GPU
    driver.container_error        | str   | | message of nvidia-container-cli
    """,
)
declare("gpu", "gpu.handle_error | str | | why NVML gives no handle for this GPU: Unknown Error, GPU is lost")
declare(
    "node",
    """
    imex.state        | str   |  | state of this node's IMEX daemon in capitals: READY, NOT READY, UNAVAILABLE, ...
    imex.nodes        | tuple |  | nodes of the IMEX domain: records of index, address, state, version (may be "")
    imex.matrix       | tuple |  | connection letters from node to node, one row a node
    imex.domain_state | str   |  | UP, DEGRADED, DOWN
    imex.log_errors   | tuple |  | error lines of the IMEX log
    """,
)
declare(
    "node",
    """
    time.chrony.refid           | str   |     | reference id in hex; 00000000 none, 7F7F0101 the local clock
    time.chrony.stratum         | int   |     | distance to the reference clock; 0 means not synchronised
    time.chrony.leap            | str   |     | leap status: Normal, Insert second, Delete second, Not synchronised
    time.chrony.offset          | float | s   | system clock against NTP time; positive is fast
    time.chrony.rms_offset      | float | s   | long-term average of the offset
    time.chrony.root_delay      | float | s   | round trip to the reference clock
    time.chrony.root_dispersion | float | s   | error piled up on the way from the reference clock
    time.chrony.sources         | tuple |     | sources: records of mode, state, name, stratum, reach (decimal)
    time.chrony.activity        | dict  |     | source counts: online, offline, unknown
    time.chrony.error           | str   |     | chronyc could not talk to the daemon
    """,
)
declare(
    "clock",
    """
    time.ptp.state         | str   |    | last port state in the ptp4l log
    time.ptp.faults        | int   |    | times the port went to FAULTY in the log
    time.ptp.without_sync  | float | s  | time between leaving SLAVE and being SLAVE again
    time.ptp.cause         | str   |    | what the log says just before the fault: link down
    time.ptp.offset        | float | ns | last offset from the master, or its RMS over the last interval
    time.ptp.servo         | str   |    | last servo state: s0 unlocked, s1 step, s2 locked
    time.pmc.steps_removed | int   |    | hops to the grandmaster; 0 is the master itself
    time.pmc.offset        | float | ns | offset from the master, as this clock answered
    time.pmc.path_delay    | float | ns | mean path delay
    time.pmc.port_state    | str   |    | portState
    time.pmc.gm_present    | bool  |    | gmPresent of TIME_STATUS_NP
    """,
)
declare("node", "settings.held | tuple | | keys that hwcheck's own files hold: records of mechanism, key, check, line")
