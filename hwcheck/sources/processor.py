"""CPU: frequency, idle states, topology, NUMA nodes, pages, interrupts of the adapters."""

import os

from hwcheck.sources import read
from hwcheck.sources.source import Absent, Source

_CPU = "/sys/devices/system/cpu/"
_NODE = "/sys/devices/system/node/"
_ADAPTERS = "/sys/class/infiniband"
_MM = "/sys/kernel/mm/"
_MOST_IRQS, _MOST_POLICIES = 2048, 2048

_ONCE = (
    "present", "online", "offline", "isolated", "nohz_full", "smt/control", "smt/active", "cpufreq/boost",
    "intel_pstate/status", "intel_pstate/no_turbo", "amd_pstate/status", "cpuidle/current_driver",
    "cpuidle/current_governor", "cpu0/microcode/version", "cpu0/cpuidle/state*/name", "cpu0/cpuidle/state*/latency",
    "cpu0/cpuidle/state*/disable",
)  # fmt: skip
_OF_FIRST_POLICY = (
    "scaling_driver", "scaling_min_freq", "scaling_max_freq", "cpuinfo_max_freq", "scaling_available_governors",
)  # fmt: skip
_OF_EACH_POLICY = ("scaling_governor", "energy_performance_preference")


def _cpu(context):
    """
    Read what is once in the machine, and governor and preference of every frequency policy.

    With intel_pstate each of 256 CPUs is a policy of its own: driver and limits are read of the first one only.
    """
    root, patterns = context.root, [_CPU + name for name in _ONCE]
    policies = sorted(read.expand(root, _CPU + "cpufreq/policy*"), key=lambda path: (len(path), path))
    if policies:
        patterns += [policies[0] + "/" + name for name in _OF_FIRST_POLICY]
    patterns += ["%scpu%d/topology/%s" % (_CPU, cpu, name) for cpu in _one_a_package(root) for name in _TOPOLOGY]
    lines = [read.flat(context, patterns).decode("utf-8", "replace")]
    for name in _OF_EACH_POLICY:
        if policies and os.path.lexists(root + policies[0] + "/" + name):
            paths = [policy + "/" + name for policy in policies[:_MOST_POLICIES]]
            lines += [path + ": " + read.value(root + path) + "\n" for path in paths]
    return "".join(lines).encode("utf-8", "replace")


_TOPOLOGY = ("physical_package_id", "package_cpus_list", "core_siblings_list", "thread_siblings_list")


def _one_a_package(root):
    """Find one CPU of each socket: reading the topology of all of them costs ten times as much."""
    online = _cpus(root + _CPU + "online")
    seen, chosen = set(), []
    for cpu in online:
        if cpu not in seen and len(chosen) < 64:
            chosen.append(cpu)
            seen.add(cpu)
            for name in _TOPOLOGY[1:3]:  # kernels before 5.3 have the second one only
                seen.update(_cpus(root + _CPU + "cpu%d/topology/%s" % (cpu, name)))
    return chosen


def _cpus(path):
    """Read a list of CPUs, ``0-31,64-95``; empty when it is none."""
    found = []
    for part in read.value(path).split(","):
        first, _, last = part.strip().partition("-")
        if first.isdigit() and (last or first).isdigit() and int(last or first) < 8192:
            found.extend(range(int(first), int(last or first) + 1))
    return found


def _cpuinfo(context):
    """Read the first CPU's block of /proc/cpuinfo: the kernel prints page by page, and the others say the same."""
    text = read.read(context.root + "/proc/cpuinfo", 8192)
    return text.partition(b"\n\n")[0] + b"\n"


def _nodes(context):
    return read.sections(
        context,
        [_NODE + name for name in ("online", "has_cpu", "has_memory")]
        + [_NODE + "node*/" + name for name in ("cpulist", "distance", "meminfo")],
        65536,
    )


def _pages(context):
    """Read huge page settings, and the page size of the running kernel as ``getconf -a`` prints it."""
    text = read.flat(
        context,
        [_MM + "transparent_hugepage/enabled", _MM + "transparent_hugepage/defrag"]
        + [_MM + "hugepages/hugepages-*/" + name for name in ("nr_hugepages", "free_hugepages")],
    )
    if not context.root:
        text += b"PAGE_SIZE: %d\n" % os.sysconf("SC_PAGE_SIZE")
    return text


def _interrupts(context):
    """
    Read where the interrupts of each RDMA device go, and which CPUs are near it.

    The numbers come from the device's msi_irqs: /proc/interrupts has a column a CPU, megabytes on a large machine.
    """
    root, lines, asked = context.root, [], 0
    for device in read.expand(root, _ADAPTERS + "/*"):
        base = device + "/device"
        try:
            numbers = sorted(int(name) for name in os.listdir(root + base + "/msi_irqs") if name.isdigit())
        except OSError:
            continue
        lines.append(base + "/local_cpulist: " + read.value(root + base + "/local_cpulist"))
        numbers = numbers[: _MOST_IRQS - asked]
        lines.append(base + "/msi_irqs: " + " ".join(map(str, numbers)))
        for number in numbers:
            path = "/proc/irq/%d/effective_affinity_list" % number
            lines.append(path + ": " + read.value(root + path))
        asked += len(numbers)
    if not lines:
        raise Absent("interrupts of RDMA devices")
    return ("\n".join(lines) + "\n").encode("utf-8", "replace")


def _tuned(context):
    return read.sections(context, ("/etc/tuned/active_profile", "/etc/tuned/profile_mode"), 4096)


SOURCES = (
    Source("sysfs-cpu", "sysfs.cpu", _cpu, note="iron"),
    Source("proc-cpuinfo", "proc.cpuinfo", _cpuinfo, note="iron"),
    Source("sysfs-node", "sysfs.node", _nodes, note="iron"),
    Source("sysfs-mm", "sysfs.mm", _pages, note="iron"),
    Source("irq-affinity", "irq.affinity", _interrupts),
    Source("tuned", "tuned", _tuned),
)
