"""What the next boot will read: boot loader, parameter and module drop-ins, limits, unit files."""

import os

from hwcheck.sources import read
from hwcheck.sources.hide import hide
from hwcheck.sources.source import Absent, Denied, Source

LOADER = (
    "/boot/grub/grubenv", "/boot/grub2/grubenv", "/boot/efi/EFI/*/grubenv",
    "/boot/loader/loader.conf", "/boot/efi/loader/loader.conf", "/efi/loader/loader.conf",
    "/boot/loader/entries/*.conf", "/boot/efi/loader/entries/*.conf", "/efi/loader/entries/*.conf",
    "/etc/default/grub", "/etc/default/grub.d/*.cfg", "/etc/kernel/cmdline",
    "/boot/grub/grub.cfg", "/boot/grub2/grub.cfg", "/boot/efi/EFI/*/grub.cfg",
)  # fmt: skip
_LOADER_FOLDERS = ("/boot", "/boot/grub", "/boot/grub2", "/boot/efi", "/boot/loader", "/boot/loader/entries")
FOLDERS = ("/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib")
OWN = (
    "/etc/sysctl.d/90-hwcheck.conf", "/etc/tmpfiles.d/90-hwcheck.conf", "/etc/modprobe.d/90-hwcheck.conf",
    "/etc/modules-load.d/90-hwcheck.conf", "/etc/security/limits.d/90-hwcheck.conf",
    "/etc/udev/rules.d/90-hwcheck.rules", "/etc/default/grub.d/90-hwcheck.cfg", "/etc/kernel/90-hwcheck.conf",
    "/etc/chrony*/90-hwcheck.*", "/etc/chrony/*/90-hwcheck.*", "/etc/systemd/system/*.d/90-hwcheck.conf",
    "/etc/systemd/system/hwcheck-*.d/settings.conf",
)  # fmt: skip
UNITS = ("slurmd", "containerd", "docker", "crio", "kubelet", "k3s", "pbs", "nvidia-persistenced")
_UNIT_FOLDERS = (
    "/etc/systemd/system.control", "/run/systemd/system.control", "/etc/systemd/system", "/run/systemd/system",
    "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system",
)  # fmt: skip


def _section(context, path):
    """Return one file under its heading; a link to /dev/null, which masks a file of that name, as an empty one."""
    try:
        if read.link(context.root + path) == "/dev/null":
            return _headed(path, b"")
    except OSError:
        pass
    try:
        body = read.read(context.root + path)
        return _headed(path, b"!error no text\n" if b"\0" in body else hide(body))
    except Denied:
        return _headed(path, b"!denied\n")
    except Absent:
        return b""
    except OSError as error:
        return _headed(path, ("!error %s\n" % error.strerror).encode())


def _headed(path, body):
    name = path.encode("utf-8", "replace").replace(b"\n", b"?")
    return b"==> " + name + b" <==\n" + body + (b"" if not body or body.endswith(b"\n") else b"\n")


def _sections(context, patterns):
    text = b"".join(_section(context, path) for pattern in patterns for path in read.expand(context.root, pattern))
    if not text:
        raise Absent(", ".join(patterns[:3]))
    return text


def _loader(context):
    text = _sections_or_nothing(context, LOADER)
    for folder in _LOADER_FOLDERS:
        if read.is_folder(context.root + folder) and not os.access(
            read.inside(context.root + folder), os.R_OK | os.X_OK
        ):
            text += _headed(folder, b"!denied\n")  # a user must not take what is hidden for what is not there
    kernels = [path for path in read.expand(context.root, "/boot/vmlinu[xz]-*") if path.isprintable()]
    text += _headed("kernels", "".join(path + "\n" for path in kernels).encode("utf-8", "replace")) if kernels else b""
    if not text:
        raise Absent("boot loader configuration")
    return text


def _sections_or_nothing(context, patterns):
    try:
        return _sections(context, patterns)
    except Absent:
        return b""


def _sysctls(context):
    return _sections(context, [folder + "/sysctl.d/*.conf" for folder in FOLDERS] + ["/etc/sysctl.conf"])


def _modules(context):
    kinds = ("modprobe.d", "modules-load.d")
    patterns = ["%s/%s/*.conf" % (folder, kind) for kind in kinds for folder in FOLDERS]
    return _sections(context, [*patterns, "/etc/modules"])


def _limits(context):
    return _sections(context, ["/etc/security/limits.conf", "/etc/security/limits.d/*.conf"])


def _units(context):
    """Read unit files and drop-ins of what starts jobs, and the manager's defaults; the first folder wins by name."""
    managers = ["/etc/systemd/system.conf"] + ["%s/systemd/system.conf.d/*.conf" % folder for folder in FOLDERS]
    names = [unit + ".service" for unit in UNITS]
    units = ["%s/%s%s" % (folder, n, tail) for n in names for tail in ("", ".d/*.conf") for folder in _UNIT_FOLDERS]
    units += [folder + "/service.d/*.conf" for folder in _UNIT_FOLDERS]
    return _sections(context, managers + units)


def _own(context):
    """Read the files that hwcheck itself keeps on a node; a plan finds in them what no check wants any more."""
    paths = [path for pattern in OWN for path in read.expand(context.root, pattern)]
    found = [section for section in (_section(context, path) for path in paths) if section]
    if not found:
        raise Absent("files of hwcheck")
    return b"".join(b"==> own " + section[4:] for section in found)  # what they hold counts once, by other sources


SOURCES = (
    Source("boot-loader", "boot.loader", _loader, note="lab"),
    Source("sysctl-dropins", "sysctl.dropins", _sysctls, note="iron"),
    Source("module-dropins", "modprobe.dropins", _modules, note="iron"),
    Source("limits-files", "limits.files", _limits, note="iron"),
    Source("unit-files", "systemd.files", _units, note="iron"),
    Source("own-files", "hwcheck.files", _own),
)
