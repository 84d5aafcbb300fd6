"""
The fast look: digests of what a node's settings and parts read as, without understanding them.

Read are the quick sources whose text stands still on a healthy node that runs jobs; what moves by itself (temperatures,
traffic, processes, clocks) is left to the full check. A line too many costs a full check, a line too few would hide a
change for as long as a full check is trusted: so the table below says why something is left out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from hashlib import sha256

from hwcheck.sources import capture, read
from hwcheck.sources.catalogue import SOURCES
from hwcheck.sources.nvml_calls import LINK_FIELDS
from hwcheck.sources.services import WATCHED
from hwcheck.sources.source import QUICK, Absent, Context, Denied, Source

DEADLINE = 4.0
"""Seconds for all of it; a driver that hangs longer is the full check's to tell."""

LEFT_OUT = {
    "units": "asks systemctl; which units run is read off their cgroups here",
    "imex-domain": "asks a daemon",
    "chronyc-tracking": "asks a daemon, and offsets move",
    "adjtimex": "offsets move",
    "proc-meminfo": "moves",
    "proc-cpuinfo": "holds the frequency of the moment; counts and models are in sysfs-cpu",
    "space": "moves",
    "net-pause": "an ioctl for each interface; settings of RoCE are the full check's",
}
"""Quick source → why the fast look does without it."""

_MOVES = (
    "heat", "processes", "memory", "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetPerformanceState",
    "nvmlDeviceGetClockInfo", "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetPcieReplayCounter",
    "nvmlDeviceGetCurrPcieLinkGeneration", "NVML_FI_DEV_POWER_AVERAGE", "NVML_FI_DEV_PCIE_REPLAY_ROLLOVER_COUNTER",
    "NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP", "NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN",
    "NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN",
    *(row.split()[1] for row in LINK_FIELDS.strip().split("\n") if "_COUNT_" in row or "_ERROR_" in row),
)  # fmt: skip
_FOLLOWS = (
    "nvmlDeviceGetIndex", "nvmlDeviceGetMinorNumber", "nvmlDeviceGetName", "nvmlDeviceGetArchitecture",
    "nvmlDeviceGetBoardPartNumber", "nvmlDeviceGetModuleId", "nvmlDeviceGetPlatformInfo", "nvmlDeviceGetNumaNodeId",
    "nvmlDeviceGetMaxClockInfo", "nvmlDeviceGetMaxPcieLinkGeneration", "nvmlDeviceGetGpuMaxPcieLinkGeneration",
    "nvmlDeviceGetMaxPcieLinkWidth", "nvmlDeviceGetPowerManagementDefaultLimit",
    "nvmlDeviceGetPowerManagementLimitConstraints", "nvmlDeviceGetCurrPcieLinkWidth",
)  # fmt: skip
NOT_ASKED = (*_MOVES, *_FOLLOWS, "counters")
"""
What the fast look does without, as calls, fields and groups of NVML: they move with load, or follow from what is asked.

The UUID, the VBIOS and the files of PCI tell another GPU or link. Counters of memory errors are asked: they stand.
Counters of RDMA ports are not: each is a command to the card.
"""

KERNEL_WORDS = (
    b"NVRM", b"SXid", b"nvidia", b"mlx5_core", b"AER: ", b"PCIe Bus Error", b"Hardware Error", b"EDAC MC",
    b"Memory failure", b"throttled", b"panic", b"BUG", b"Oops: ", b"general protection", b"LOCKUP", b"lockup",
    b"blocked for more than", b"stall", b"ut of memory", b"read-only", b"readonly", b"XFS (", b"I/O error",
    b"critical medium", b"nvme", b"not responding", b"PCIe bandwidth", b"DPC: ", b"pciehp", b"EXT4-fs", b"BTRFS",
    b"Linux version",
)  # fmt: skip
"""A line of the kernel log that any rule of the full check could want holds one of these."""

_GROUP = "gate.digests"
_BROKEN = frozenset(("timeout", "failed", "truncated"))
_SLICE = "/sys/fs/cgroup/system.slice"


def _only(stands: Callable[[bytes], bool]) -> Callable[[bytes], bytes]:
    """Keep the lines that stand still."""
    return lambda body: b"\n".join(line for line in body.split(b"\n") if stands(line))


def _hanging(body: bytes) -> Iterator[bytes]:
    """Name the processes that hang; who else holds a GPU comes and goes with jobs."""
    for line in body.split(b"\n"):
        if b" state=D " in line:
            yield line.split(b" ", 1)[0]


_STANDING = {
    "kernel.log": _only(lambda line: any(word in line for word in KERNEL_WORDS)),
    "proc.kernel": _only(lambda line: b"/proc/uptime" not in line),
    "lsmod": lambda body: b"\n".join(sorted(line.split(b" ", 1)[0] for line in body.split(b"\n"))),
    "sysfs.infiniband": _only(lambda line: b"counters/" not in line),
    "sysfs.net": _only(lambda line: b"/statistics/" not in line),
    "proc.holders": lambda body: b"\n".join(_hanging(body)),
    "proc.mountinfo": _only(
        lambda line: not any(place in line for place in (b" /run/", b" /var/lib/", b" /proc/", b" /tmp"))
    ),
}
"""Kind → what of its text stands still: no counts of users, traffic, time, or mounts of containers."""


def look(root: str = "", deadline: float = DEADLINE) -> dict[str, str]:
    """
    Read the node.

    NVML and the files behind which a driver answers are read in two children; what hangs there costs the deadline.

    Args:
        root: prefix of all paths; "" on the node itself.
        deadline: seconds for all sources together.

    Returns:
        Id of each source → digest, or the word why there is no text (``absent``, ``denied``, ``timeout``, ``failed``).
    """
    read.confine(root)
    context = Context(root, live=True, off=NOT_ASKED, uid=os.geteuid())
    chosen = [source for source in SOURCES if source.tier == QUICK and source.id not in LEFT_OUT]
    nvml = [source for source in chosen if source.kind == "nvml"]
    drivers = [source for source in chosen if source.child and source not in nvml]
    files = [source for source in chosen if not source.child]
    groups = [
        Source("files of drivers", _GROUP, _together(drivers), child=True, deadline=deadline),
        Source("files", _GROUP, _together([*files, Source("running-units", "gate.units", _running)])),
    ]
    answers = os.memfd_create("hwcheck-gate", os.MFD_CLOEXEC)
    try:
        capture.run([*nvml, *groups], context, answers, deadline)
        size = os.lseek(answers, 0, os.SEEK_CUR)
        return dict(_digests(os.pread(answers, size, 0)))
    finally:
        os.close(answers)
        read.confine("")


def is_whole(digests: dict[str, str]) -> bool:
    """
    Tell whether a look can be compared with.

    Two looks that both broke off are no sign that nothing has changed: a driver that hangs reads the same each time.
    """
    return not _BROKEN.intersection(digests.values())


def _together(sources: list[Source]) -> Callable[[Context], bytes]:
    """Make one question of several, since a process for each costs more than most of them; answers with digests."""

    def ask(context: Context) -> bytes:
        rows = []
        for source in sources:
            try:
                rows.append(f"{source.id} {_digest(source.kind, source.ask(context))}\n")
            except Absent:
                rows.append(f"{source.id} absent\n")
            except Denied:
                rows.append(f"{source.id} denied\n")
            except OSError:
                rows.append(f"{source.id} failed\n")
        return "".join(rows).encode("ascii")

    return ask


def _digest(kind: str, body: bytes) -> str:
    return sha256(_STANDING[kind](body) if kind in _STANDING else body).hexdigest()[:32]


def _digests(stream: bytes) -> Iterator[tuple[str, str]]:
    """Take the frames of :mod:`hwcheck.sources.frames` apart."""
    at = 0
    while at < len(stream):
        end = stream.index(b"\n", at)
        header = stream[at:end].decode("ascii").split(" ")
        kind, status, length, command = header[1], header[2], int(header[4]), header[6]
        body = stream[end + 1 : end + 1 + length]
        at = end + 1 + length
        if kind == _GROUP and status == "ok":
            for row in body.decode("ascii").splitlines():
                id, _, digest = row.partition(" ")
                yield id, digest
        else:
            yield command, _digest(kind, body) if status == "ok" else status


def _running(context: Context) -> bytes:
    """List the watched units that have a cgroup, each with the first process in it: a service that died has none."""
    folder = context.root + _SLICE
    try:
        there = set(os.listdir(folder))
    except OSError:
        there = set()
    lines = []
    for unit in WATCHED:
        if unit + ".service" in there:
            try:
                first = read.read(f"{folder}/{unit}.service/cgroup.procs", 32).split(b"\n", 1)[0]
            except Exception:  # noqa: BLE001 - gone between two calls: as good as not there
                first = b""
            lines.append(unit.encode() + b" " + first)
    return b"\n".join(lines)
