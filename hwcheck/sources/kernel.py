"""Kernel: command line, parameters, log since boot, and what it says of itself."""

import os

from hwcheck.sources import boot, modules, read
from hwcheck.sources.hide import hide
from hwcheck.sources.source import Absent, Denied, Source

SYSCTLS = (
    "kernel.numa_balancing", "vm.max_map_count", "vm.min_free_kbytes", "vm.zone_reclaim_mode", "vm.swappiness",
    "vm.overcommit_memory", "vm.nr_hugepages", "net.core.somaxconn", "net.core.rmem_max", "net.core.wmem_max",
    "net.core.netdev_max_backlog", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_available_congestion_control", "net.ipv4.tcp_max_syn_backlog", "net.ipv4.ip_local_port_range",
    "net.ipv4.neigh.default.gc_thresh1", "net.ipv4.neigh.default.gc_thresh2", "net.ipv4.neigh.default.gc_thresh3",
    "fs.inotify.max_user_instances", "fs.inotify.max_user_watches", "fs.file-max", "kernel.threads-max",
    "kernel.pid_max", "kernel.dmesg_restrict", "kernel.hung_task_timeout_secs", "kernel.panic_on_oops",
    "kernel.softlockup_panic", "kernel.hung_task_panic",
)  # fmt: skip
PER_INTERFACE = ("arp_announce", "arp_ignore", "rp_filter")
_INTERFACES = 512
_LOG_CAP = 24 << 20


def _cmdline(context):
    return hide(read.read(context.root + "/proc/cmdline"))


def _sysctls(context):
    """Read each parameter as ``sysctl`` prints it; one that this kernel does not have is left out."""
    base = context.root + "/proc/sys/"
    keys = list(SYSCTLS)
    try:
        names = sorted(os.listdir(base + "net/ipv4/conf"))
    except OSError:
        names = []
    for name in names[:_INTERFACES]:
        if name.isprintable() and " " not in name:
            keys += ["net.ipv4.conf.%s.%s" % (name.replace(".", "/"), leaf) for leaf in PER_INTERFACE]
    lines = [line for line in map(_sysctl, [base] * len(keys), keys) if line]
    if not lines:
        raise Absent("/proc/sys")
    return ("\n".join(lines) + "\n").encode("utf-8", "replace")


def _sysctl(base, key):
    path = "/".join(part.replace("/", ".") for part in key.split("."))  # eth0/100 is the interface eth0.100
    try:
        text = read.read(base + path, 4096)
    except Absent:
        return ""
    except Denied:
        return "sysctl: permission denied on key '%s'" % key
    except OSError as error:
        return "sysctl: reading key '%s': %s" % (key, error.strerror)
    return key + " = " + text.decode("utf-8", "replace").strip().replace("\n", " ")


def _log(context):
    """
    Read the ring buffer as ``dmesg`` prints it, without spawning; ends where a read would wait.

    A read gives one record, ``priority,sequence,microseconds,flags;text``, with lines ``  KEY=value`` behind it.
    """
    path = context.root + "/dev/kmsg"
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise Absent("/dev/kmsg") from None
    except PermissionError:
        raise Denied("/dev/kmsg: kernel.dmesg_restrict, needs root") from None
    chunks, size = [], 0
    while size < _LOG_CAP:
        try:
            chunk = os.read(fd, 16384)
        except BlockingIOError:
            break
        except BrokenPipeError:
            continue  # overwritten while we read; the next read goes on with the oldest record that is left
        if not chunk:
            break
        chunks.append(chunk)
        size += len(chunk)
    os.close(fd)
    return b"\n".join(_record(line) for line in b"".join(chunks).split(b"\n") if line[:1] != b" ")


def _record(line):
    """Put the time in front as ``dmesg`` does; the boot's own line with the arguments may hold secrets."""
    head, mark, text = line.partition(b";")
    fields = head.split(b",")
    if not mark or len(fields) < 3 or not fields[2].isdigit():
        return line
    time = int(fields[2])
    if b"ommand line: " in text[:40]:
        text = hide(text)
    return b"[%5d.%06d] %s" % (time // 1000000, time % 1000000, text)


def _state(context):
    """Read what the kernel says of itself, and the traces of crashes with the time they were left."""
    text = read.flat(
        context,
        (
            "/proc/sys/kernel/osrelease", "/proc/sys/kernel/tainted", "/proc/sys/kernel/random/boot_id",
            "/proc/sys/kernel/hung_task_detect_count", "/proc/uptime",
        ),
    )  # fmt: skip
    lines = []
    for pattern in ("/sys/fs/pstore/*", "/var/lib/systemd/pstore/*", "/var/crash/*", "/var/spool/abrt/vmcore*"):
        for path in read.expand(context.root, pattern)[:64]:
            name = path.rsplit("/", 1)[-1]
            if not name.isprintable() or name.startswith((".", "kexec_cmd", "kdump_lock", "_")):
                continue
            try:
                lines.append("%s: left at %d\n" % (path, os.lstat(context.root + path).st_mtime))
            except OSError:
                continue
    lines.append("/sys/fs/pstore: %d traces of crashes\n" % len(lines))  # last: without it the list was cut off
    return text + "".join(lines).encode("utf-8", "replace")


SOURCES = (
    Source("proc-cmdline", "proc-cmdline", _cmdline, note="iron"),
    Source("kernel-log", "kernel.log", _log, child=True, note="iron"),
    Source("kernel-state", "proc.kernel", _state, note="iron"),
    Source("sysctl", "sysctl", _sysctls, note="iron"),
    *modules.SOURCES,
    *boot.SOURCES,
)
