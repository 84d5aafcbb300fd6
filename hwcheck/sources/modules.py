"""Kernel modules: loaded, their versions, and the files that the next load takes, for every installed kernel."""

import os

from hwcheck.sources import read
from hwcheck.sources.source import DEEP, Absent, Denied, Source

LOADED = (
    "nvidia", "nvidia_uvm", "nvidia_drm", "nvidia_modeset", "nvidia_peermem", "nvidia_fs", "nv_peer_mem", "gdrdrv",
    "mlx5_core", "mlx5_ib", "ib_core", "ib_uverbs", "mlx_compat", "nvme", "knem", "efa", "gve", "nouveau",
)  # fmt: skip
FILES = ("nvidia", "nvidia-uvm", "nvidia-peermem", "nvidia-fs", "gdrdrv", "mlx5_core", "ib_core")
_KERNELS = 8
_FIELDS = (b"version=", b"srcversion=", b"license=", b"vermagic=")
_DECOMPRESSED = 512 << 20


def _versions(context):
    leaves = ("version", "srcversion", "initstate", "taint")
    return read.flat(context, ["/sys/module/%s/%s" % (name, leaf) for name in LOADED for leaf in leaves])


def _files(context):
    return _all_files(context, deep=False)


def _files_deep(context):
    return _all_files(context, deep=True)


def _all_files(context, deep):
    """
    Describe the module files under their headings, as ``modinfo`` prints the fields.

    Which file of a name is taken, ``modules.dep`` tells. Compressed ones are read in the deep tier only: a driver
    module unpacks to 100 MB.
    """
    running = read.value(context.root + "/proc/sys/kernel/osrelease") if context.live else ""
    parts = ["==> running <==\n%s\n" % running] if running and running[0] != "!" else []
    folders = read.expand(context.root, "/lib/modules/*")
    folders.sort(key=lambda path: (path.rsplit("/", 1)[-1] != running, -_age(context.root + path)))
    for folder in folders[:_KERNELS]:
        for path in _wanted(context.root, folder):
            if path.isprintable():
                fields = _described(context.root + path, deep)
                parts.append("==> %s <==\n%s" % (path, "".join(field + "\n" for field in fields)))
    if not any(part.startswith("==> /") for part in parts):
        raise Absent("module files of a driver")
    return "".join(parts).encode("utf-8", "replace")


def _age(path):
    try:
        return os.stat(read.inside(path)).st_mtime
    except (OSError, Absent):
        return 0


def _wanted(root, folder):
    """List the files that modules.dep names for the drivers we look at."""
    try:
        index = read.read(root + folder + "/modules.dep", 8 << 20)
    except (Absent, Denied, OSError):
        return
    for name in FILES:
        at = index.find(b"/" + name.encode() + b".ko")
        if at >= 0:
            start = index.rfind(b"\n", 0, at) + 1
            path = index[start : index.find(b":", at)].decode("utf-8", "replace")
            yield path if path.startswith("/") else folder + "/" + path


def _described(path, deep):
    try:
        if path.endswith(".ko"):
            return _plain(path)
        if not deep:
            return ["!compressed " + path.rpartition(".")[2]]
        return _modinfo(_unpacked(read.inside(path)))
    except Denied:
        return ["!denied"]
    except Absent:
        return ["!absent"]
    except (OSError, ValueError, EOFError, ImportError) as error:
        return ["!error %s" % (str(error).replace("\n", " ")[:100] or type(error).__name__)]


def _plain(path):
    """Read the few kilobytes that matter of a file of a hundred megabytes."""
    try:
        fd = os.open(read.inside(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise Absent(path) from None
    except PermissionError:
        raise Denied(path) from None
    try:
        return _fields(lambda offset, size: os.pread(fd, size, offset))
    finally:
        os.close(fd)


def _unpacked(path):
    kind = path.rpartition(".")[2]
    if kind == "xz":
        import lzma

        opened = lzma.open(path)
    elif kind == "gz":
        import gzip

        opened = gzip.open(path)
    else:
        raise ValueError("cannot unpack " + kind)
    with opened as file:
        return file.read(_DECOMPRESSED)


def _modinfo(data):
    return _fields(lambda offset, size: data[offset : offset + size])


def _fields(at):
    """Find the section .modinfo of an ELF file (64 bit, little endian) and return its fields of interest."""
    head = at(0, 64)
    if head[:6] != b"\x7fELF\x02\x01":
        raise ValueError("no ELF file of 64 bit")
    number = int.from_bytes
    table, entry = number(head[40:48], "little"), number(head[58:60], "little")
    count, names = number(head[60:62], "little"), number(head[62:64], "little")
    headers = at(table, entry * count)
    rows = [headers[entry * i : entry * (i + 1)] for i in range(count)]
    if names >= len(rows) or len(rows[-1]) < 64:
        raise ValueError("cut off")
    where = [(number(row[24:32], "little"), number(row[32:40], "little"), number(row[:4], "little")) for row in rows]
    strings = at(where[names][0], min(where[names][1], 1 << 20))
    for offset, size, name in where:
        if strings[name : name + 9] == b".modinfo\0":
            info = at(offset, min(size, 1 << 20)).split(b"\0")
            found = [field for field in info if field.startswith(_FIELDS)]
            return [field.decode("utf-8", "replace").replace("=", ": ", 1).replace("\n", " ") for field in found]
    raise ValueError("no section .modinfo")


def _dkms(context):
    return read.links(context, ["/var/lib/dkms/%s/kernel-*" % name for name in ("nvidia*", "gdrdrv", "mlnx*", "doca*")])


def _driver_version(context):
    return read.read(context.root + "/proc/driver/nvidia/version")


def _driver_parameters(context):
    return read.read(context.root + "/proc/driver/nvidia/params")


def _loaded(context):
    return read.read(context.root + "/proc/modules")


SOURCES = (
    Source("nvidia-version", "nvidia-version", _driver_version, child=True, deadline=5.0, note="recorded"),
    Source("nvidia-params", "nvidia.params", _driver_parameters, child=True, deadline=5.0, note="recorded"),
    Source("proc-modules", "lsmod", _loaded, note="recorded"),
    Source("module-versions", "sysfs.module", _versions, note="lab"),
    Source("module-files", "module.files", _files),
    Source("module-files-deep", "module.files", _files_deep, tier=DEEP, child=True, deadline=30.0),
    Source("dkms", "dkms.links", _dkms),
)
