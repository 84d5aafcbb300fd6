"""PCI functions as the kernel's own files show them: both ends of a link, who may control ASPM, IOMMU modes."""

from hwcheck.facts.registry import declare

declare(
    "pci",
    """
    pci.subsystem_id     | str   |     | subsystem vendor and device id, 10de:18be
    pci.local_cpus       | str   |     | list of the CPUs next to the function, 0-47,96-143
    pci.iommu_mode       | str   |     | what the IOMMU does for the function's group: identity, DMA, DMA-FQ, blocked
    pci.asleep           | bool  |     | the function is runtime-suspended; its registers were not read, not to wake it
    pci.power_control    | str   |     | runtime power management: on (never sleeps) or auto
    pci.sriov_vfs        | int   |     | virtual functions that are switched on
    pci.bar.unset        | tuple |     | numbers of memory windows (BAR 0 to 5) that have no address
    pci.bar.largest      | int   | MiB | size of the largest memory window; on a GPU the one that maps its memory
    pci.clock_pm         | bool  |     | clock power management enabled in LnkCtl
    pci.aer              | dict  |     | errors since boot, no zeros: correctable, nonfatal, fatal: name to count
    pci.upstream         | dict  |     | port above: address, port, width_max, speed_max, max_payload (0 unknown), aspm, aer
    """,  # noqa: E501 - one name a line, for search and for explain
)
declare(
    "node",
    """
    pci.bridges          | tuple | | ports above devices: records of address, port, parent, speed, speed_max, width, width_max
    pci.aspm.policy      | str   | | the kernel's ASPM policy; permitted: any, or default where it may not touch links
    pci.aspm.refused     | str   | | why the kernel may not touch ASPM: FADT, or link attributes hidden; "" when it may
    iommu.modes          | tuple | | modes of the IOMMU groups of GPUs, adapters and drives; () when no IOMMU is on
    """,  # noqa: E501 - as above
)
