"""CPUs and NUMA nodes."""

from __future__ import annotations

from hwcheck.checks.pcie import in_guest
from hwcheck.checks.relation import Answer, Every, Given, fail, ok, relation, skip, warn
from hwcheck.facts import Origin
from hwcheck.findings import Remedy, Urgency
from hwcheck.parse.lscpu import count_cpus


@relation(
    "numa.layout",
    needs=(Every("numa.cpus"),),
    uses=("numa.count", "cpu.sockets", "cpu.model", "platform.virtualization"),
    remedy=Remedy(
        "hands",
        "Switch NUMA on in the BIOS (node interleaving off) and remove numa=off from the kernel arguments.",
        disturbs="node",
    ),
)
def numa_layout(given: Given) -> Answer:
    """
    Each socket has a NUMA node with CPUs of its own.

    What it checks: nodes with CPUs against sockets. Nodes without CPUs are counted and no fault.

    Why it matters: with NUMA off a job cannot be placed beside its GPU and NIC.

    How to fix: BIOS and kernel arguments.

    Applies to: bare metal. On GH200 and GB200 the memory of each GPU is a node without CPUs (9 and 34 nodes): code that
    divides CPUs by nodes is wrong there.

    Source: GH200 and GB300 captures of lscpu and numactl; Linux NUMA documentation.
    """
    nodes = given["numa.cpus"]
    with_cpus = sum(1 for count in nodes.values() if count)
    sockets = given.maybe("cpu.sockets")
    if not with_cpus:
        return skip("no NUMA node with CPUs is listed")
    if sockets and with_cpus < sockets:
        if in_guest(given):
            return skip("a virtual machine has the NUMA nodes its host gives it")
        text = f"{sockets} sockets but only {with_cpus} NUMA node{'s' * (with_cpus > 1)} with CPUs"
        return warn(text, observed=with_cpus, expected=sockets)
    if sockets is None and with_cpus == 1:
        return skip("one NUMA node with CPUs; how many sockets there are is not known")
    empty = len(nodes) - with_cpus
    behind = f" and {empty} without (GPU memory, or none)" if empty else ""
    return ok(
        f"{with_cpus} NUMA node{'s' * (with_cpus > 1)} with {sum(nodes.values())} CPUs{behind}", observed=with_cpus
    )


@relation(
    "numa.memory",
    needs=(Every("numa.size"), Every("numa.cpus")),
    uses=("numa.lines",),
    remedy=Remedy(
        "hands",
        "Compare with dmidecode -t memory: look for a DIMM that is missing, disabled or in the wrong slot.",
        disturbs="node",
    ),
)
def numa_memory(given: Given) -> Answer:
    """
    Every NUMA node with CPUs has memory, and all have about the same.

    What it checks: the sizes of nodes with CPUs against the largest of them, within the profile's bound.

    Why it matters: a socket with a missing DIMM loses capacity and memory bandwidth; one without memory works remotely.

    How to fix: find the DIMM.

    Applies to: machines with more than one node with CPUs for the comparison.

    Source: two-socket captures; see the bound.
    """
    cpus, sizes = given["numa.cpus"], given["numa.size"]
    of_cpus = {node: size for node, size in sizes.items() if cpus.get(node)}
    if not of_cpus:
        return skip("no NUMA node with CPUs is listed")
    bare = [node.id for node, size in of_cpus.items() if size == 0]
    if bare:
        text = f"NUMA node {', '.join(bare)} has CPUs but no memory"
        return fail(text, observed=0, origin=_line_of(given, bare[0]))
    largest, spread = max(of_cpus.values()), given.bound("numa.memory_spread")
    if spread is None:
        return skip("no bound is known for the spread of memory over nodes")
    small = {node.id: size for node, size in of_cpus.items() if size < largest * (1 - spread / 100)}
    if small:
        told = ", ".join(f"{node} ({size} MiB)" for node, size in small.items())
        text = f"NUMA node {told} has less memory than the largest ({largest} MiB)"
        return warn(text, observed=min(small.values()), expected=largest, origin=_line_of(given, next(iter(small))))
    return ok(f"{len(of_cpus)} NUMA nodes with CPUs have {min(of_cpus.values())} MiB or more each")


def _line_of(given: Given, node: str) -> Origin | None:
    """Return the line that tells the size of one NUMA node."""
    base, told = given.origin("numa.size"), (given.maybe("numa.lines") or {}).get(node)
    return base and told and base._replace(line=told["line"], excerpt=told["text"])


@relation(
    "numa.device",
    needs=("pci.numa_node",),
    uses=("pci.name", "platform.virtualization", "numa.count"),
    remedy=Remedy("hands", "Ask for a BIOS whose ACPI tables give the slot a proximity domain.", disturbs="node"),
)
def numa_of_device(given: Given) -> Answer:
    """
    The firmware says which NUMA node a device belongs to.

    What it checks: the NUMA node of GPUs and adapters; -1 means that the firmware gives none, not node 0.

    Why it matters: schedulers and NCCL place processes by it.

    How to fix: a firmware update.

    Applies to: bare metal.

    Source: Linux sysfs documentation of numa_node.
    """
    node = given["pci.numa_node"]
    if node >= 0:
        return ok(f"NUMA node {node}", observed=node)
    if in_guest(given):
        return skip("a virtual machine has the NUMA nodes its host gives it")
    if given.maybe("numa.count") == 1:
        return skip("the machine has one NUMA node: nothing to tell")
    return warn(f"no NUMA node for {given.maybe('pci.name') or 'the device'} (-1)", observed=node)


@relation(
    "cpu.topology",
    needs=("cpu.count", "cpu.sockets", "cpu.cores_per_socket", "cpu.threads_per_core"),
    any_of=("cpu.count", "cpu.offline"),
    uses=("cpu.model",),
    urgency=Urgency.NOTE,
    remedy=Remedy(
        "act",
        "Bring the CPUs online (chcpu -e LIST, or write 1 to /sys/devices/system/cpu/cpuN/online) unless they are off "
        "on purpose; look for maxcpus=, nr_cpus= and isolcpus= in the kernel arguments, and for a machine check.",
        disturbs="nothing",
    ),
)
def cpu_topology(given: Given) -> Answer:
    """
    All CPUs of all sockets are there.

    What it checks: sockets, cores and threads multiply to the CPU count; no CPU is listed offline. Offline CPUs that
    are exactly the second threads of the cores (SMT off) are by intent.

    Why it matters: offline CPUs shift numbering and leave work to fewer cores.

    How to fix: bring them online, unless SMT was switched off on purpose.

    Applies to: every machine whose lscpu output is there.

    Source: util-linux lscpu.
    """
    sockets, cores, threads = (given[f"cpu.{name}"] for name in ("sockets", "cores_per_socket", "threads_per_core"))
    count, model = given["cpu.count"], given.maybe("cpu.model") or "CPU"
    offline = given.maybe("cpu.offline")
    if offline:
        many = count_cpus(offline)
        if threads == 1 and many == count:
            return skip(f"CPUs {offline} are offline, as many as are online: SMT is off by intent", observed=offline)
        text = f"{many} CPUs are offline ({offline}), {count} are online"
        return warn(text, observed=offline, expected="none offline", because="cpu.offline")
    if sockets * cores * threads != count:
        return skip(f"{sockets} x {cores} x {threads} does not make {count} CPUs: the count is not judged")
    return ok(f"{count} CPUs: {sockets} x {model}, {cores} cores each", observed=count)
