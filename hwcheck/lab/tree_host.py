"""CPU, memory, processes, storage, time and identity of a lab node, as files of /proc, /sys and /etc."""

from __future__ import annotations

from hwcheck.lab.machine import Machine, Process
from hwcheck.lab.render import Planter

_CPU = "/sys/devices/system/cpu"
_NODE = "/sys/devices/system/node"
_IDLE = {
    "intel_idle": (("POLL", 0), ("C1", 1), ("C1E", 2), ("C6", 290)),
    "acpi_idle": (("LPI-0", 0), ("LPI-1", 8)),
}
_TICKS = 100
_RELEASES = {
    "ubuntu": 'NAME="Ubuntu"\nID=ubuntu\nVERSION_ID="24.04"\nPRETTY_NAME="Ubuntu 24.04.2 LTS (hwcheck lab)"\n',
    "rhel": 'NAME="Red Hat Enterprise Linux"\nID="rhel"\nID_LIKE="fedora"\nVERSION_ID="9.6"\n'
    'PRETTY_NAME="Red Hat Enterprise Linux 9.6 (Plow) (hwcheck lab)"\n',
}


def plant(machine: Machine, files: Planter) -> None:
    """Add all of it."""
    for part in (_identity, _cpu, _nodes, _memory, _storage, _clock):
        part(machine, files)
    for process in machine.processes:
        _process(process, files)


def _identity(machine: Machine, files: Planter) -> None:
    for name, text in (
        ("sys_vendor", "hwcheck lab"), ("product_name", machine.product), ("product_version", "1"),
        ("product_serial", f"LAB-{machine.name}"), ("board_vendor", "hwcheck lab"), ("board_name", machine.platform),
        ("bios_vendor", "hwcheck lab"), ("bios_version", "2.04"), ("bios_date", "06/01/2026"), ("chassis_type", "23"),
    ):  # fmt: skip
        files.put(f"/sys/class/dmi/id/{name}", text)
    files.put("/etc/hostname", machine.name)
    files.put("/etc/os-release", _RELEASES[machine.os])
    files.link("/etc/localtime", "/usr/share/zoneinfo/Etc/UTC")
    processor = machine.processor
    if machine.arch == "x86_64":
        text = (
            f"processor\t: 0\nvendor_id\t: {processor.vendor}\ncpu family\t: 6\nmodel\t\t: 143\n"
            f"model name\t: {processor.model}\n"
            f"microcode\t: {processor.microcode}\nflags\t\t: fpu vme de pse tsc "
            "msr pae mce constant_tsc nonstop_tsc avx512f\n"
        )
    else:
        text = (
            "processor\t: 0\nBogoMIPS\t: 2000.00\nFeatures\t: fp asimd sve2\nCPU implementer\t: 0x41\n"
            "CPU architecture: 8\nCPU part\t: 0xd4f\n"
        )
    files.put("/proc/cpuinfo", text + "\n")


def _cpu(machine: Machine, files: Planter) -> None:
    processor = machine.processor
    last = processor.count - 1
    files.put(f"{_CPU}/present", f"0-{last}")
    files.put(f"{_CPU}/online", f"0-{last}" if not processor.offline else _without(processor.count, processor.offline))
    files.put(f"{_CPU}/offline", ",".join(map(str, processor.offline)) or "\n")
    files.put(f"{_CPU}/isolated", "\n")
    files.put(f"{_CPU}/smt/control", "on" if processor.threads > 1 else "notsupported")
    files.put(f"{_CPU}/smt/active", int(processor.threads > 1))
    intel = processor.driver == "intel_pstate"
    if intel:
        files.put(f"{_CPU}/intel_pstate/status", "active")
        files.put(f"{_CPU}/intel_pstate/no_turbo", 0)
        files.put(f"{_CPU}/cpu0/microcode/version", processor.microcode)
    idle = "intel_idle" if intel else "acpi_idle"
    files.put(f"{_CPU}/cpuidle/current_driver", idle)
    files.put(f"{_CPU}/cpuidle/current_governor", "menu")
    for number, (name, latency) in enumerate(_IDLE[idle]):
        for leaf, value in (("name", name), ("latency", latency), ("disable", 0)):
            files.put(f"{_CPU}/cpu0/cpuidle/state{number}/{leaf}", value)
    files.link(f"{_CPU}/cpu0/cpufreq", "../cpufreq/policy0")
    _time_spent(machine, files)
    for cpu in range(processor.count):
        _policy(machine, cpu, files)
        socket = cpu % (processor.sockets * processor.cores) // processor.cores
        here = f"{_CPU}/cpu{cpu}/topology"
        siblings = [
            cpu % (processor.sockets * processor.cores) + n * processor.sockets * processor.cores
            for n in range(processor.threads)
        ]
        files.put(f"{here}/physical_package_id", socket)
        files.put(f"{here}/package_cpus_list", processor.cpus_of(socket))
        files.put(f"{here}/core_siblings_list", processor.cpus_of(socket))
        files.put(f"{here}/thread_siblings_list", ",".join(map(str, siblings)))


def _time_spent(machine: Machine, files: Planter) -> None:
    """Plant what the CPUs did since boot: nearly nothing; and the load of the last minutes, by who runs now."""
    processor = machine.processor
    one = f"{machine.uptime // 5} 0 {machine.uptime // 10} {machine.uptime * 99} 40 0 12 0 0 0"
    rows = [f"cpu{cpu} {one}" for cpu in range(processor.count) if cpu not in processor.offline]
    total = " ".join(str(int(word) * len(rows)) for word in one.split())
    running = sum(process.state == "R" for process in machine.processes)
    tail = f"intr 0\nctxt 91234567\nbtime 1780000000\nprocesses 90210\nprocs_running {running + 1}\nprocs_blocked 0"
    files.put("/proc/stat", "\n".join([f"cpu  {total}", *rows, tail]))
    files.put("/proc/loadavg", f"{running:.2f} {running:.2f} {running:.2f} {running + 1}/1893 90210")


def _without(count: int, missing: tuple[int, ...]) -> str:
    """Return a CPU list of all but some: ``0-3,6-127``."""
    runs: list[list[int]] = []
    for cpu in range(count):
        if cpu in missing:
            continue
        if runs and runs[-1][1] == cpu - 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(f"{first}-{last}" if last > first else str(first) for first, last in runs)


def _policy(machine: Machine, cpu: int, files: Planter) -> None:
    processor = machine.processor
    here = f"{_CPU}/cpufreq/policy{cpu}"
    files.put(f"{here}/scaling_governor", processor.governor)
    files.put(f"{here}/scaling_available_governors", "performance powersave")
    if processor.preference:
        # Only the first eight follow the governor as the kernel does; the others are plain files, see actor/attribute.
        files.put(f"{here}/energy_performance_preference", processor.preference if cpu < 8 else "performance")
    if cpu == 0:
        for name, text in (
            ("scaling_driver", processor.driver), ("scaling_min_freq", 800000), ("scaling_max_freq", 3800000),
            ("cpuinfo_max_freq", 3800000),
        ):  # fmt: skip
            files.put(f"{here}/{name}", text)


def _nodes(machine: Machine, files: Planter) -> None:
    last = len(machine.memory) - 1
    with_cpus = [number for number, cpus in enumerate(machine.numa_cpus) if cpus]
    with_memory = [number for number, size in enumerate(machine.memory) if size]
    files.put(f"{_NODE}/online", f"0-{last}")
    files.put(f"{_NODE}/has_cpu", f"0-{with_cpus[-1]}")
    files.put(f"{_NODE}/has_memory", ",".join(map(str, with_memory)))
    for number, size in enumerate(machine.memory):
        here = f"{_NODE}/node{number}"
        files.put(f"{here}/cpulist", machine.numa_cpus[number] or "\n")
        files.put(f"{here}/distance", machine.numa_distances[number])
        total = size * 1024
        rows = (("MemTotal", total), ("MemFree", total * 19 // 20), ("MemUsed", total - total * 19 // 20))
        files.put(f"{here}/meminfo", "".join(f"Node {number} {name}: {value:>13} kB\n" for name, value in rows))


def _memory(machine: Machine, files: Planter) -> None:
    total = sum(machine.memory) * 1024
    rows = (
        ("MemTotal", total), ("MemFree", total * 18 // 20), ("MemAvailable", total * 19 // 20), ("SwapTotal", 0),
        ("SwapFree", 0), ("HardwareCorrupted", machine.corrupted), ("Hugepagesize", 2048),
    )  # fmt: skip
    files.put("/proc/meminfo", "".join(f"{name + ':':<16}{value:>12} kB\n" for name, value in rows))
    for number, (corrected, uncorrected) in enumerate(machine.edac):
        here = f"/sys/devices/system/edac/mc/mc{number}"
        for leaf, value in (
            ("mc_name", "lab memory controller"), ("size_mb", machine.memory[number]),
            ("seconds_since_reset", machine.uptime), ("ce_count", corrected), ("ue_count", uncorrected),
        ):  # fmt: skip
            files.put(f"{here}/{leaf}", value)
    files.put("/sys/kernel/mm/transparent_hugepage/enabled", machine.transparent_pages)
    files.put("/sys/kernel/mm/transparent_hugepage/defrag", "always defer defer+madvise [madvise] never")
    for leaf in ("nr_hugepages", "free_hugepages"):
        files.put(f"/sys/kernel/mm/hugepages/hugepages-2048kB/{leaf}", machine.huge_pages)


def _storage(machine: Machine, files: Planter) -> None:
    for number, drive in enumerate(machine.drives):
        above = machine.path_of(drive.address)
        here = f"/sys/{above}/nvme/{drive.name}"
        for queue in range(2):  # interrupts of queues are the kernel's own: nobody moves them
            irq = 100 + 2 * number + queue
            files.put(f"/sys/{above}/msi_irqs/{irq}", "msix")
            files.put(f"/proc/irq/{irq}/smp_affinity_list", queue)
            files.link(f"/proc/irq/{irq}/effective_affinity_list", "smp_affinity_list")
        files.link(f"/sys/class/nvme/{drive.name}", f"../../{above}/nvme/{drive.name}")
        for leaf, value in (
            ("model", "SAMSUNG MZQL23T8HCLS-00A07"), ("serial", f"S64H{machine.boot_id[:0]}LAB0001"),
            ("firmware_rev", "GDC5902Q"), ("state", drive.state), ("transport", "pcie"), ("address", drive.address),
            ("numa_node", machine.functions[drive.address].numa),
        ):  # fmt: skip
            files.put(f"{here}/{leaf}", value)
    rows = ["22 28 0:20 / /proc rw,relatime shared:13 - proc proc rw"]
    planned = ["# the lab's"]
    for number, mount in enumerate(machine.mounts):
        rows.append(
            f"{28 + number} 1 259:{number + 2} / {mount.where} {mount.options} shared:{number + 1} - "
            f"{mount.kind} {mount.device} {mount.super_options}"
        )
        if mount.planned:
            planned.append(f"{mount.device} {mount.where} {mount.kind} defaults 0 {1 if mount.where == '/' else 2}")
    files.put("/proc/self/mountinfo", "\n".join(rows))
    files.put("/etc/fstab", "\n".join(planned))
    files.put("/proc/mdstat", "Personalities : \nunused devices: <none>\n")


def _clock(machine: Machine, files: Planter) -> None:
    clock = machine.clock
    files.put("/sys/devices/system/clocksource/clocksource0/current_clocksource", clock.source)
    known = "tsc hpet acpi_pm" if machine.arch == "x86_64" else clock.source
    files.put("/sys/devices/system/clocksource/clocksource0/available_clocksource", known)
    servers = "".join(f"server {server} iburst\n" for server in clock.servers)
    common = "driftfile /var/lib/chrony/chrony.drift\nrtcsync\nmakestep 1 3\n"
    if machine.os == "rhel":
        files.put("/etc/chrony.conf", f"{servers}sourcedir /run/chrony-dhcp\n{common}")
    else:
        folders = "confdir /etc/chrony/conf.d\nsourcedir /run/chrony-dhcp\nsourcedir /etc/chrony/sources.d\n"
        files.put("/etc/chrony/chrony.conf", f"{folders}{servers}{common}")
    for number, nic in enumerate(machine.nics):
        files.put(f"/sys/class/ptp/ptp{number}/clock_name", "mlx5_ptp")
        files.put(f"/sys/class/ptp/ptp{number}/max_adjustment", 50_000_000)
        files.put(f"/sys/class/ptp/ptp{number}/n_vclocks", 0)
        del nic


def _process(process: Process, files: Planter) -> None:
    here = f"/proc/{process.pid}"
    fields = (
        f"{process.pid} ({process.name}) {process.state} {process.parent} "
        + "0 " * 17
        + f"{process.started} "
        + "0 " * 30
    )
    files.put(f"{here}/stat", fields)
    files.put(f"{here}/comm", process.name)
    files.put(f"{here}/cmdline", process.name.encode() + b"\0")
    files.put(
        f"{here}/status", f"Name:\t{process.name}\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n"
    )
    files.folder(f"{here}/fd")
    for number, device in enumerate(process.devices):
        files.link(f"{here}/fd/{number + 3}", device)
    if process.stack:
        files.put(f"{here}/stack", "".join(f"[<0>] {name}+0x1c/0x90\n" for name in process.stack))
        files.put(f"{here}/wchan", process.stack[0].encode())
