"""What machine this is: DMI, virtualisation, firmware, operating system."""

import os

from hwcheck.sources import read
from hwcheck.sources.source import Absent, Denied, Source

_DMI = (
    "sys_vendor", "product_name", "product_version", "product_serial", "board_vendor", "board_name", "board_version",
    "board_serial", "bios_vendor", "bios_version", "bios_date", "bios_release", "chassis_type",
)  # fmt: skip
_SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
_THERE = ("/dev/ipmi0", "/dev/mem", "/sys/firmware/efi", "/sys/firmware/acpi", "/.dockerenv", "/run/.containerenv")


def _machine(context):
    """Flatten what identifies the machine; presence of a file or folder is written as ``present``."""
    patterns = ["/sys/class/dmi/id/" + name for name in _DMI]
    patterns += ["/sys/hypervisor/type", "/sys/firmware/devicetree/base/hypervisor/compatible", _SECURE_BOOT]
    try:
        text = read.flat(context, patterns, binary=(_SECURE_BOOT.rsplit("/", 1)[-1],))
    except Absent:
        text = b""
    lines = ["%s: present\n" % path for path in _THERE if os.path.exists(context.root + path)]
    flag = _hypervisor_flag(context)
    if flag:
        lines.append("/proc/cpuinfo hypervisor: %s\n" % flag)
    if not text and not lines:
        raise Absent("/sys/class/dmi/id")
    return text + "".join(lines).encode()


def _hypervisor_flag(context):
    """Say whether the first CPU has the flag; "" on an architecture without flags. Reads one CPU's block at most."""
    try:
        block = read.read(context.root + "/proc/cpuinfo", 8192).partition(b"\n\n")[0]
    except (Absent, Denied, OSError):
        return ""
    for line in block.split(b"\n"):
        if line.startswith(b"flags"):
            return "yes" if b"hypervisor" in line.split() else "no"
    return ""


def _os_release(context):
    try:
        return read.read(context.root + "/etc/os-release", 16384)
    except Absent:
        return read.read(context.root + "/usr/lib/os-release", 16384)


def _zone(context):
    """Say to which zone file /etc/localtime leads; without one the zone is UTC."""
    return read.links(context, ("/etc/localtime",))


SOURCES = (
    Source("machine", "sysfs.machine", _machine, note="iron"),
    Source("os-release", "os-release", _os_release, note="iron"),
    Source("time-zone", "localtime.link", _zone, note="iron"),
)
