"""Storage: NVMe drives and their health, mounts and what the next boot would mount, space, software RAID."""

import os

from hwcheck.sources import read
from hwcheck.sources.source import DEEP, Absent, Denied, Source

_DISK = frozenset(("ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "vfat", "bcachefs"))
_IN_MEMORY = frozenset(("/tmp", "/run", "/dev/shm"))  # noqa: S108 - asked for their space, nothing is put there
_NETWORK = frozenset((
    "nfs", "nfs4", "cifs", "smb3", "lustre", "gpfs", "ceph", "beegfs", "wekafs", "9p", "virtiofs", "fuse.sshfs",
    "fuse.glusterfs", "fuse.juicefs",
))  # fmt: skip
_OF_CONTAINERS = ("/var/lib/kubelet/", "/var/lib/docker/", "/var/lib/containers/", "/run/containerd/", "/snap/")
_MOST = 200


def _nvme(context):
    names = ("model", "serial", "firmware_rev", "state", "transport", "address", "numa_node")
    return read.flat(context, ["/sys/class/nvme/nvme*/" + name for name in names])


def _mounts(context):
    return read.read(context.root + "/proc/self/mountinfo", 4 << 20)


def _fstab(context):
    """Read /etc/fstab without the passwords that CIFS and Ceph mounts may hold there."""
    lines = []
    for line in read.read(context.root + "/etc/fstab", 65536).decode("utf-8", "replace").split("\n"):
        words = [",".join(_harmless(option) for option in word.split(",")) for word in line.split(" ")]
        lines.append(" ".join(words))
    return "\n".join(lines).encode("utf-8", "replace")


def _harmless(option):
    name, found, _ = option.partition("=")
    secret = found and any(word in name.lower() for word in ("pass", "secret", "token", "key"))
    return name + "=!removed" if secret else option


def _raid(context):
    return read.read(context.root + "/proc/mdstat", 65536)


def _space(context):
    """Ask every local file system; in a child, since a path may lead through a network mount that hangs."""
    return _table(context, lambda kind, where: kind in _DISK or where == "/" or where in _IN_MEMORY)


def _network_space(context):
    """Ask every network file system; the child hangs with the server, which is the answer."""
    return _table(context, lambda kind, _: kind in _NETWORK)


def _table(context, wanted):
    """Print blocks and inodes as ``df -P`` and ``df -Pi`` do; each file system once, however often it is mounted."""
    text = _mounts(context).decode("utf-8", "replace")
    blocks, inodes, seen = [], [], set()
    for line in text.split("\n"):
        left, _, right = line.partition(" - ")
        fields, behind = left.split(), right.split()
        if len(fields) < 6 or len(behind) < 2 or len(seen) >= 2 * _MOST:
            continue
        where, kind = fields[4], behind[0]
        if not wanted(kind, where) or where.startswith(_OF_CONTAINERS) or seen.intersection((fields[2], where)):
            continue
        seen.update((fields[2], where))
        try:
            state = os.statvfs(context.root + _plain(where))
        except OSError:
            continue
        unit, used = state.f_frsize or 1024, state.f_blocks - state.f_bfree
        sizes = [number * unit // 1024 for number in (state.f_blocks, used, state.f_bavail)]
        blocks.append(_row(behind[1], sizes, used, state.f_bavail, where))
        if state.f_files:
            used = state.f_files - state.f_ffree
            inodes.append(_row(behind[1], [state.f_files, used, state.f_ffree], used, state.f_ffree, where))
    if not blocks:
        raise Absent("file systems of this sort")
    text = "Filesystem 1024-blocks Used Available Capacity Mounted on\n" + "".join(blocks)
    return (text + "Filesystem Inodes IUsed IFree IUse% Mounted on\n" + "".join(inodes)).encode("utf-8", "replace")


def _row(device, numbers, used, left, where):
    share = "%d%%" % -(-100 * used // (used + left)) if used + left > 0 else "-"
    return "%s %s %s %s\n" % (device, " ".join(map(str, numbers)), share, where)


def _plain(path):
    """Undo the kernel's octal escapes of blanks and backslashes in a path."""
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        path = path.replace(code, char)
    return path


_ADMIN = 0xC0484E41
"""NVME_IOCTL_ADMIN_CMD: _IOWR('N', 0x41, 72 bytes)."""
_GET_LOG_PAGE, _HEALTH, _SIZE = 2, 2, 512


def _nvme_health(context):
    """Read the SMART / health log page of every drive: Get Log Page is a read; it needs root."""
    import array
    import fcntl
    import struct

    lines = []
    for path in read.expand(context.root, "/sys/class/nvme/nvme*"):
        device = "/dev/" + path.rpartition("/")[2]
        page = array.array("B", bytes(_SIZE))
        command = bytearray(struct.pack(
            "=BBHIIIQQIIIIIIIIII", _GET_LOG_PAGE, 0, 0, 0xFFFFFFFF, 0, 0, 0, page.buffer_info()[0], 0, _SIZE,
            (_SIZE // 4 - 1) << 16 | _HEALTH, 0, 0, 0, 0, 0, 3000, 0,
        ))  # fmt: skip
        try:
            fd = os.open(context.root + device, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                status = fcntl.ioctl(fd, _ADMIN, command, True)
            finally:
                os.close(fd)
        except FileNotFoundError:
            continue  # sysfs is the host's and /dev is not: a container
        except PermissionError:
            raise Denied(device + " needs root") from None
        except OSError as error:
            lines.append("%s health: !error %s\n" % (device, error.strerror))
            continue
        answer = "!error NVMe status %#x" % status if status else "hex:" + page.tobytes().hex()
        lines.append("%s health: %s\n" % (device, answer))
    if not lines:
        raise Absent("/dev/nvme*")
    return "".join(lines).encode()


SOURCES = (
    Source("sysfs-nvme", "sysfs.nvme", _nvme),
    Source("mountinfo", "proc.mountinfo", _mounts, note="iron"),
    Source("fstab", "fstab", _fstab, note="iron"),
    Source("mdstat", "proc.mdstat", _raid),
    Source("space", "df", _space, child=True, deadline=5.0, note="iron"),
    Source("space-network", "df", _network_space, tier=DEEP, child=True, deadline=10.0),
    Source("nvme-health", "nvme.health_page", _nvme_health, tier=DEEP, child=True, deadline=10.0),
)
