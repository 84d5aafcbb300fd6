"""What no other area has: who holds the GPUs, and what hangs in a driver."""

import os
import time

from hwcheck.sources import read
from hwcheck.sources.source import Absent, Denied, Source

_BUDGET = 1.5  # seconds for all processes; a node with ten thousand of them is cut short, and says so
_PAUSE = 0.3
_KTHREAD = 0x00200000  # flag of the kernel's own threads, which hold no files
_DEVICES = ("/dev/nvidia", "/dev/infiniband/uverbs", "/dev/gdrdrv", "/dev/dri/renderD")


def _processes(context):
    """
    List the processes that hold a GPU or RDMA device, and those that hang (state D in two looks, without running).

    One line each: ``pid=2345 state=S ppid=1 uid=1000 age=86400 devices=/dev/nvidia0 wait=- comm=python3``.
    Names only: no command line, no environment.
    """
    root = context.root + "/proc/"
    try:
        pids = [name for name in os.listdir(root) if name.isdigit()]
    except OSError:
        raise Absent("/proc") from None
    end = time.monotonic() + _BUDGET
    threads = _kernel_threads(root)
    lines, hanging, hidden, left = [], [], 0, len(set(pids) - threads)
    for pid in sorted(set(pids) - threads, key=int):
        if time.monotonic() > end:
            break
        left -= 1
        stat = _stat(root + pid)
        if stat is None:
            continue
        devices = [] if stat[4] else _devices(root + pid)
        hidden += devices is None
        if stat[1] == "D":
            hanging.append((pid, stat, devices or []))
        elif devices:
            lines.append(_line(context, pid, stat, devices, "-"))
    lines += _still_hanging(context, hanging)
    if hidden:
        lines.append("!denied open files of %d processes" % hidden)
    if left:
        lines.append("!truncated %d processes were not looked at" % left)
    lines.append("processes=%d" % len(pids))  # last: without it the list was cut off
    return ("\n".join(lines) + "\n").encode("utf-8", "replace")


def _kernel_threads(root):
    """
    List the kernel's own threads, of which a big node has thousands: all that thread 2 has started, by one read.

    They are passed over; one that hangs is told by the kernel log. In a container number 2 is somebody else.
    """
    stat = _stat(root + "2")
    if not stat or not stat[4]:
        return set()
    try:
        return set(read.read(root + "2/task/2/children", 1 << 20).decode("ascii", "replace").split())
    except (Absent, Denied, OSError):
        return set()


def _stat(path):
    """Return name, state, parent, start (ticks) of a process, and if it is the kernel's own; None when it is gone."""
    try:
        # thousands of them: no more calls than needed
        fd = os.open(path + "/stat", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        text = os.read(fd, 4096).decode("utf-8", "replace")
    except OSError:
        return None
    finally:
        os.close(fd)
    comm, _, rest = text.partition("(")[2].rpartition(") ")
    fields = rest.split()
    if len(fields) < 20 or not fields[6].isdigit():
        return None
    return comm, fields[0], fields[1], fields[19], bool(int(fields[6]) & _KTHREAD)


def _devices(path):
    """List the devices of interest that a process holds; None when that may not be seen."""
    found = set()
    try:
        names = os.listdir(path + "/fd")
    except PermissionError:
        return None
    except OSError:
        return []
    for name in names[:4096]:
        try:
            target = os.readlink(path + "/fd/" + name)
        except OSError:
            continue
        if target.startswith(_DEVICES):
            found.add(target)
    return sorted(found)[:64]


def _switches(path):
    """Count how often a process has run; the same in two looks means that it did not run in between."""
    try:
        text = read.read(path + "/status", 8192).decode("ascii", "replace")
    except (Absent, Denied, OSError):
        return None
    return [line for line in text.split("\n") if "ctxt_switches" in line]


def _still_hanging(context, hanging):
    if not hanging:
        return []
    root = context.root + "/proc/"
    before = {pid: _switches(root + pid) for pid, _, _ in hanging[:256]}
    time.sleep(_PAUSE)
    lines = []
    for pid, stat, devices in hanging[:256]:
        now = _stat(root + pid)
        same = now is not None and now[1] == "D" and before[pid] and _switches(root + pid) == before[pid]
        if same:
            lines.append(_line(context, pid, stat, devices, _wait(root + pid)))
        elif devices:
            lines.append(_line(context, pid, now or stat, devices, "-"))
    return lines


def _wait(path):
    """Say in which functions a hanging process waits: the stack where root may see it, else the one name."""
    for name in ("/stack", "/wchan"):
        try:
            text = read.read(path + name, 4096).decode("ascii", "replace")
        except (Absent, Denied, OSError):
            continue
        rows = [row for row in text.split("\n") if row.strip() not in ("", "0")]
        words = [row.rpartition("] ")[2].partition("+")[0] for row in rows]
        if words:
            return ",".join(words[:8])
    return "?"


def _line(context, pid, stat, devices, wait):
    comm, state, parent, start, _ = stat
    name = "".join(char if char.isprintable() else "?" for char in comm)[:64]
    return "pid=%s state=%s ppid=%s uid=%s age=%s devices=%s wait=%s comm=%s" % (
        pid, state, parent, _owner(context.root + "/proc/" + pid), _age(context, start), ",".join(devices) or "-",
        wait.replace(" ", "_"), name,
    )  # fmt: skip


def _owner(path):
    try:
        return os.stat(path).st_uid
    except OSError:
        return "?"


def _age(context, start):
    try:
        up = float(read.read(context.root + "/proc/uptime", 64).split()[0])
        return int(up - int(start) / os.sysconf("SC_CLK_TCK"))
    except (Absent, Denied, OSError, ValueError, IndexError):
        return "?"


SOURCES = (Source("processes", "proc.holders", _processes, child=True, deadline=5.0, note="iron"),)
