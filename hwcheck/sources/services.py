"""Services: units, limits of what starts jobs, versions of the driver set in user space, IMEX."""

import os

from hwcheck.sources import read
from hwcheck.sources.boot import UNITS
from hwcheck.sources.source import DEEP, Absent, Denied, Instead, Source

WATCHED = (
    "nvidia-fabricmanager", "nvidia-persistenced", "nvidia-imex", "nvidia-dcgm", "dcgm", "nvsm", "nvidia-powerd",
    "nvlsm", "slurmd", "munge", "chronyd", "chrony", "systemd-timesyncd", "ntpd", "ntpsec", "ptp4l", "phc2sys",
    "timemaster", "irqbalance", "tuned", "power-profiles-daemon", "openibd", "rdma-ndd", "opensm", "containerd",
    "docker", "crio", "kubelet", "ssh", "sshd", "unattended-upgrades",
)  # fmt: skip
PROPERTIES = (
    "Id", "LoadState", "ActiveState", "SubState", "UnitFileState", "MainPID", "NRestarts", "ExecMainStatus", "Result",
    "FragmentPath", "DropInPaths", "NeedDaemonReload", "LimitMEMLOCK", "LimitNOFILE", "NUMAPolicy", "NUMAMask",
    "CPUAffinity",
)  # fmt: skip
_SHOW = ("systemctl", "show", "--no-pager", "--property=" + ",".join(PROPERTIES), *(n + ".service" for n in WATCHED))
_SLICES = ("/sys/fs/cgroup/system.slice", "/sys/fs/cgroup/systemd/system.slice", "/sys/fs/cgroup/unified/system.slice")
_SET = (
    "nvidia", "libnvidia", "cuda-drivers", "linux-modules-nvidia", "linux-objects-nvidia", "nvlsm", "libnvsdm",
    "datacenter-gpu", "mlnx", "doca", "rdma-core", "libibverbs1", "ibverbs-providers", "mft", "mstflint", "gdrdrv",
    "libgdrapi", "linux-image", "linux-headers", "slurm", "libnccl2", "containerd", "unattended-upgrades",
)  # fmt: skip
_LETTERS = {"install": "i", "hold": "h", "deinstall": "r", "purge": "p", "unknown": "u"}


def _limits(context):
    """Read the limits of each service that starts jobs: its main process is the one of its cgroup that init started."""
    parts = []
    for unit in UNITS:
        for pid in _main(context.root, unit + ".service"):
            text = _or_nothing(context.root + "/proc/%d/limits" % pid)
            if text:
                parts.append(b"==> %s.service /proc/%d/limits <==\n%s" % (unit.encode(), pid, text))
    if not parts:
        raise Absent("a running service that starts jobs")
    return b"".join(parts)


def _main(root, unit):
    for folder in _SLICES:
        for word in _or_nothing("%s%s/%s/cgroup.procs" % (root, folder, unit)).split()[:64]:
            if word.isdigit():
                stat = _or_nothing("%s/proc/%d/stat" % (root, int(word))).rpartition(b") ")[2].split()
                if len(stat) > 1 and stat[1] == b"1":
                    return [int(word)]
    return []


def _or_nothing(path):
    try:
        return read.read(path, 65536)
    except (OSError, Absent, Denied):  # gone by now, or another user's
        return b""


def _libraries(context):
    """Say which files the driver's libraries lead to; their names hold the version."""
    names = ("libnvidia-ml.so.1", "libcuda.so.1", "libnvidia-nscq.so.?", "libnvidia-cfg.so.1", "libnvsdm.so.?")
    folders = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64")
    return read.links(context, [folder + "/" + name for folder in folders for name in names])


def _packages(context):
    """List the driver set's packages of dpkg as ``dpkg -l`` does; the letters are wish (h: held) and state."""
    lines = []
    for block in read.read(context.root + "/var/lib/dpkg/status", 32 << 20).split(b"\n\n"):
        if not block.startswith(b"Package: "):
            continue
        name = block[9 : block.find(b"\n")].decode("utf-8", "replace").strip()
        if not name.startswith(_SET):
            continue
        rows = block[:4096].decode("utf-8", "replace").split("\n")
        fields = dict(row.split(": ", 1) for row in rows if ": " in row)
        wish, _, state = (fields.get("Status", "unknown") + "  ").split(" ")[:3]
        letters = _LETTERS.get(wish, "u") + {"installed": "i", "config-files": "c"}.get(state, "n")
        lines.append("%s  %s %s %s\n" % (letters, name, fields.get("Version", "?"), fields.get("Architecture", "?")))
    return "".join(lines).encode("utf-8", "replace")


def _imex(context):
    """Ask the IMEX daemon for its domain, where it runs."""
    if not _main(context.root, "nvidia-imex.service"):
        raise Absent("a running nvidia-imex")
    return Instead("nvidia-imex-ctl", ("nvidia-imex-ctl", "-N"), "nvidia-imex runs")


def _imex_files(context):
    return read.sections(context, ("/etc/nvidia-imex/nodes_config.cfg", "/etc/nvidia-imex/config.cfg"))


def _imex_channels(context):
    """List the channel device files with their modes, as ``stat -c '%n %a'`` does."""
    lines = []
    for path in read.expand(context.root, "/dev/nvidia-caps-imex-channels/channel*")[:4096]:
        lines.append("%s %o\n" % (path, os.lstat(context.root + path).st_mode & 0o7777))
    if not lines:
        raise Absent("/dev/nvidia-caps-imex-channels")
    return "".join(lines).encode("utf-8", "replace")


SOURCES = (
    Source("units", "systemctl.show", argv=_SHOW, note="recorded"),
    Source("service-limits", "proc.limits", _limits),
    Source("driver-libraries", "driver.links", _libraries),
    Source("dpkg", "dpkg", _packages, note="iron"),
    Source("rpm", "rpm", argv=("rpm", "-qa"), tier=DEEP, deadline=30.0),
    Source("fabric-manager-version", "nv-fabricmanager.version", argv=("nv-fabricmanager", "--version"), tier=DEEP),
    Source("imex-version", "nvidia-imex.version", argv=("nvidia-imex", "--version"), tier=DEEP),
    Source("imex-domain", "nvidia-imex-ctl", _imex, child=True),
    Source("imex-files", "imex.files", _imex_files),
    Source("imex-channels", "imex.channels", _imex_channels),
)
