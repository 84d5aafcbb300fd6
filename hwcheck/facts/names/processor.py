"""CPU settings, pages, and the interrupts of the adapters. Counts and NUMA nodes are in host.py."""

from hwcheck.facts.registry import declare

declare(
    "node",
    """
    cpu.isolated        | str   |     | CPUs taken from the scheduler by isolcpus; empty for none
    cpu.nohz_full       | str   |     | CPUs without a timer tick; empty for none
    cpu.smt             | str   |     | on, off, forceoff, notsupported, notimplemented
    cpu.microcode       | str   |     | microcode revision of the first CPU
    cpu.frequency.driver | str  |     | frequency driver: intel_pstate, amd-pstate-epp, acpi-cpufreq, cppc_cpufreq; guests often have none
    cpu.frequency.limit | int   | MHz | highest frequency the first policy may take
    cpu.frequency.max   | int   | MHz | highest frequency of the hardware, first policy
    cpu.governor        | str   |     | frequency governor of all policies, several joined by comma; effective: with the drivers that leave frequency to the CPU, powersave and preference performance act like performance
    cpu.epp             | str   |     | energy performance preference of all policies, several joined by comma
    cpu.turbo           | bool  |     | frequencies above the nominal one are allowed
    cpu.idle.driver     | str   |     | idle driver: intel_idle, acpi_idle, haltpoll
    cpu.idle.states     | tuple |     | idle states of the first CPU: records of name, latency (us to wake up), enabled
    cpu.idle.latency    | int   | us  | longest time to wake up from an idle state that is enabled
    cpu.tuned_profile   | str   |     | profile that TuneD applies at boot
    memory.thp          | str   |     | transparent huge pages: always, madvise, never
    memory.thp_defrag   | str   |     | when a process waits for huge pages: always, defer, defer+madvise, madvise, never
    memory.page_size    | int   | KiB | page size of the running kernel: 4, or 64 on many Arm machines
    memory.huge_pages   | tuple |     | reserved huge pages: records of size (KiB), count, free
    """,  # noqa: E501 - one name a line, for search and for explain
)
declare(
    "nic",
    """
    rdma.device.irqs | dict | | where its interrupts go: record of total, near (on CPUs of its own NUMA node), far, cpus (the near ones)
    """,  # noqa: E501 - one name a line
)
