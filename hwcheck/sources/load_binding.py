"""Where a measurement runs: the CPUs and the memory of one NUMA node; and that it ends with the program."""

import os

_DEVICES, _NODES = "/sys/bus/pci/devices/", "/sys/devices/system/node/"
_SET_POLICY = {"x86_64": 238, "aarch64": 237}  # set_mempolicy(2); no other architecture has these GPUs
_BIND, _DEFAULT = 2, 0
_PR_SET_PDEATHSIG, _SIGKILL = 1, 9


def end_with_parent():
    """
    Have the kernel kill this process when its parent ends, whatever ended it.

    A program that measures must not go on when nobody waits for its figures; the setting outlives an exec.
    """
    import ctypes

    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it ended before the kernel knew
        os._exit(1)


def numa_node(context, address):
    """Return the NUMA node of a PCI device, or -1 where the platform does not say."""
    return _number(context.root + _DEVICES + address + "/numa_node")


def cpus_of(context, node):
    """Return the CPUs of a NUMA node."""
    return numbers(_text(context.root + _NODES + "node%d/cpulist" % node))


def nodes_with_cpus(context):
    """Return the NUMA nodes that have CPUs; memory of a GPU is a node without. A kernel without NUMA has node 0."""
    return numbers(_text(context.root + _NODES + "has_cpu")) or [0]


def bind(context, node):
    """
    Run on the CPUs of a NUMA node, and take memory there, from now on.

    Returns:
        What the conditions say: ``numa_node``, and ``numa_bound`` (True, or False where the kernel refused), or
        ``numa_unknown``: why it could not even be tried.
    """
    told = {"numa_node": node}
    if node < 0:
        return {"numa_unknown": "the platform tells no NUMA node of this device"}
    cpus = cpus_of(context, node)
    try:
        os.sched_setaffinity(0, cpus)
    except OSError as error:
        if online().isdisjoint(cpus):
            told["numa_unknown"] = "NUMA node %d has no CPU that is online" % node
        else:  # a cpuset of a job or container leaves them out
            told.update(numa_bound=False, numa_refused=error.strerror)
        return told
    told["numa_bound"] = set(os.sched_getaffinity(0)) <= set(cpus)
    refused = _memory_policy(_BIND, node)
    if refused:  # seccomp of a container; what is touched first by a bound thread is near it all the same
        told["numa_refused"] = refused
    return told


def release(before):
    """Give the CPUs and the memory policy back that this process had: a set of CPUs."""
    os.sched_setaffinity(0, before)
    _memory_policy(_DEFAULT, None)


def _memory_policy(mode, node):
    """Set where memory is taken from; returns why not, or ""."""
    import ctypes

    number = _SET_POLICY.get(os.uname().machine)
    if number is None:
        return "no memory policy is known for %s" % os.uname().machine
    libc = ctypes.CDLL(None, use_errno=True)
    mask = (ctypes.c_ulong * 16)()
    bits = 8 * ctypes.sizeof(ctypes.c_ulong)
    if node is not None:
        mask[node // bits] = 1 << node % bits
    where, size = (None, 0) if node is None else (mask, bits * 16)
    if libc.syscall(ctypes.c_long(number), mode, where, ctypes.c_ulong(size)):
        return "set_mempolicy: " + os.strerror(ctypes.get_errno())
    return ""


def numbers(text):
    """Read a list as sysfs writes it: ``0-2,7``."""
    found = []
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first.isdigit() and (last or first).isdigit():
            found.extend(range(int(first), min(int(last or first), int(first) + 65536) + 1))
    return found


def online():
    """Return the CPUs that the kernel counts time for."""
    lines = _text("/proc/stat").split("\n")
    return {int(row.split()[0][3:]) for row in lines if row[:3] == "cpu" and row[3:4].isdigit()}


def _text(path):
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read(1 << 20)
    except OSError:
        return ""


def _number(path):
    text = _text(path).strip()
    return int(text) if text.lstrip("-").isdigit() else -1
