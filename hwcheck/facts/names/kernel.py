"""Kernel, its modules and what the next boot will read; services and their limits; the machine and its processes."""

from hwcheck.facts.registry import declare

declare(
    "node",
    """
    kernel.release          | str   |   | release of the running kernel; next boot: of the kernel that the boot loader starts by default
    kernel.kernels          | tuple |   | releases that the boot loader has entries for
    kernel.loader           | str   |   | how the next kernel is chosen: grub.cfg, BLS entries of GRUB, systemd-boot
    kernel.cmdline.wanted   | tuple |   | arguments that /etc/default/grub asks for; they count only once grub.cfg is written anew
    kernel.arg.init_on_alloc | str  |   | init_on_alloc= of the command line, default where it is not given
    kernel.arg.numa_balancing | str |   | numa_balancing= of the command line, default where it is not given
    kernel.arg.iommu        | str   |   | pt, on, off, ... as iommu=, iommu.passthrough=, intel_iommu= and amd_iommu= ask for it; default without
    kernel.arg.hugepages    | str   |   | hugepagesz= and hugepages= of the command line in order, default without
    kernel.arg.isolcpus     | str   |   | isolcpus= of the command line, default without
    kernel.arg.pcie_aspm    | str   |   | pcie_aspm= and pcie_aspm.policy= of the command line, default without
    kernel.arg.pci          | str   |   | all pci= of the command line, default without
    kernel.taint            | int   |   | /proc/sys/kernel/tainted, a sum of bits
    kernel.boot_id          | str   |   | random id of this boot
    kernel.hung_tasks       | int   |   | tasks found hanging since boot, from kernel 6.15 on
    kernel.crashes          | tuple |   | traces of kernel crashes: records of path, time (seconds since 1970), age (s, at the time of reading; None when not known)
    kernel.module.versions  | dict  |   | loaded modules: name to record of version, srcversion, taint ("" where it has none)
    kernel.module.files     | dict  |   | kernel release to module name to record of path, version, license, vermagic; gap says why nothing was read
    kernel.module.options   | dict  |   | module to tuple of its option lines in modprobe.d, in order
    kernel.module.blacklist | tuple |   | modules that modprobe.d keeps from loading
    kernel.modules.boot     | tuple |   | modules that modules-load.d loads at boot
    kernel.dkms             | tuple |   | modules that DKMS has built: records of module, version, kernel
    driver.parameters       | dict  |   | parameters that the loaded nvidia module runs with, name to text
    driver.libraries        | tuple |   | driver libraries that programs get: records of name, version, path
    driver.packages_held    | tuple |   | names of driver packages on hold
    limits.login_memlock    | str   |   | locked memory that limits.d gives every user at login; unlimited, or a number of KiB
    imex.config_nodes       | tuple |   | addresses in /etc/nvidia-imex/nodes_config.cfg, in order
    imex.config_hash        | str   |   | hash of that list; must be equal on all nodes of a domain
    imex.channels           | tuple |   | IMEX channel devices: records of path, mode (octal text)
    process.holders         | tuple |   | processes that hold GPU or RDMA devices: records of pid, name, user (uid), age (s), parent (pid), devices
    process.hung            | tuple |   | processes that did not run between two looks in state D: records as above and wait (functions)
    platform.vendor         | str   |   | DMI vendor of the machine
    platform.serial         | str   |   | DMI serial number of the machine; only root may read it
    platform.board_serial   | str   |   | DMI serial number of the main board; only root may read it
    platform.board          | str   |   | DMI vendor and name of the main board
    platform.os             | str   |   | operating system and version, ID and VERSION_ID of os-release: ubuntu 22.04
    platform.bmc            | bool  |   | there is an IPMI device of a BMC
    platform.efi            | bool  |   | started by EFI
    platform.secure_boot    | bool  |   | EFI secure boot is on
    platform.container      | bool  |   | read inside a container
    firmware.bios           | str   |   | version of the system firmware
    firmware.bios_date      | str   |   | date of the system firmware, as DMI prints it
    time.zone               | str   |   | time zone by name
    """,  # noqa: E501 - one name a line, for search and for explain
)
declare(
    "unit",
    """
    service.pid            | int  | | main process; 0 when there is none
    service.restarts       | int  | | times systemd restarted it by itself since it was started
    service.result         | str  | | how it ended last: success, exit-code, signal, timeout, oom-kill
    service.reload_needed  | bool | | its files are newer than what systemd has read
    service.launcher       | str  | | what it starts: scheduler (jobs in its own limits) or container (limits of the container count)
    service.memlock        | str  | | locked memory limit of its main process, inherited by what it starts; unlimited, or a number of KiB
    service.limit_memlock  | str  | | LimitMEMLOCK that systemd has read: what the service gets when it is started again
    service.nofile         | str  | | limit of open files of its main process
    service.numa_policy    | str  | | NUMAPolicy of the unit and its mask; default without
    service.cpu_affinity   | str  | | CPUAffinity of the unit; "" without
    """,  # noqa: E501 - as above
)
