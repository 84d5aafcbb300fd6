"""
PCI: configuration space and attributes of GPUs, NVSwitches, network adapters, NVMe drives and the ports above them.

A server has hundreds of functions; one ``uevent`` file tells the class of each, and only those that matter are read on.
Of the configuration space come the first 256 bytes and two extended capabilities (errors, access control), found by
walking their list: reading all 4096 bytes is a thousand slow register reads a function.

What is asleep is not woken, what no longer answers is asked once. A user gets 64 bytes from the kernel, without any
capability; the text then shows just these, and the attributes of the link that a user may read.
"""

import os

from hwcheck.sources import read
from hwcheck.sources.source import Absent, Source

_ROOT = "/sys/bus/pci/devices/"
_ATTRIBUTES = (
    "numa_node", "local_cpulist", "current_link_speed", "current_link_width", "max_link_speed", "max_link_width",
    "aer_dev_correctable", "aer_dev_nonfatal", "aer_dev_fatal", "power/control", "d3cold_allowed", "resource",
    "sriov_numvfs", "link/l0s_aspm", "link/l1_aspm", "link/clkpm", "link/l1_1_aspm", "link/l1_2_aspm",
)  # fmt: skip
_OF_PORTS = ("aer_dev_correctable", "aer_dev_nonfatal", "aer_dev_fatal")
_OF_LINK = ("current_link_speed", "current_link_width", "max_link_speed", "max_link_width")
_ADDRESS = frozenset("0123456789abcdef:.")
_EXTENDED = {0x0001: 0x38, 0x000D: 8}  # capability id → bytes: advanced errors, access control services
_LIMIT = 512  # functions read on; the largest machines have about 150


def _pci(context):
    root = context.root + _ROOT
    try:
        names = sorted(name for name in os.listdir(root) if _ADDRESS.issuperset(name))
    except OSError:
        raise Absent(_ROOT) from None
    lines, ports = [], {}
    for name in names:
        uevent, kind, vendor = _function(root + name)
        if not _wanted(kind, vendor) or os.path.lexists(root + name + "/physfn") or len(lines) > 40 * _LIMIT:
            continue  # a virtual function has no link of its own
        path = _link(root + name)
        for port in path.split("/")[:-1]:
            if port in names:
                ports[port] = None
        lines.append(_line(name + "/uevent", uevent))
        _read(context, name, path, _ATTRIBUTES, lines)
    if not lines:
        raise Absent("a GPU, network adapter or NVMe drive in " + _ROOT)
    for name in ports:
        lines.append(_line(name + "/uevent", _function(root + name)[0]))
        _read(context, name, _link(root + name), _OF_PORTS, lines)
    _node(context, lines)
    return ("\n".join(lines) + "\n").encode("utf-8", "replace")


def _function(path):
    """Return uevent (as one line), class and vendor of a function: ``PCI_CLASS=30200``, ``PCI_ID=10DE:2335``."""
    uevent = read.value(path + "/uevent")
    found = dict(part.split("=", 1) for part in uevent.split("\\n") if "=" in part)
    return uevent, found.get("PCI_CLASS", "").zfill(6)[:4], found.get("PCI_ID", "")[:4].lower()


def _wanted(kind, vendor):
    """Tell whether a function matters: NVIDIA displays and switches, network, NVMe."""
    return kind[:2] == "02" or kind == "0108" or (vendor == "10de" and (kind[:2] == "03" or kind == "0680"))


def _read(context, name, path, attributes, lines):
    """Add the lines of one function."""
    here = context.root + _ROOT + name
    if path:
        lines.append(_ROOT + name + " -> " + path)
    for link in ("driver", "iommu_group"):
        target = _link(here + "/" + link)
        if target:
            lines.append(_ROOT + name + "/" + link + " -> " + target)
    if os.path.lexists(here + "/iommu_group"):
        lines.append(_line(name + "/iommu_group/type", read.value(here + "/iommu_group/type")))
    asleep = read.value(here + "/power/runtime_status") == "suspended"
    if asleep:
        lines.append(_line(name + "/config", "!suspended"))
    whole = not asleep and _config(here, name, lines)
    if not whole and attributes is _OF_PORTS:
        attributes += _OF_LINK  # a user reads the link of a port from its attributes
    for attribute in attributes:
        text = read.value(here + "/" + attribute)
        if text != "!absent":
            lines.append(_line(name + "/" + attribute, text))


def _config(here, name, lines):
    """Add what is needed of the configuration space; returns whether there was more than its first 64 bytes."""
    try:
        fd = os.open(here + "/config", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        lines.append(_line(name + "/config", "!denied" if isinstance(error, PermissionError) else "!absent"))
        return False
    try:
        return _registers(fd, name, lines)
    except OSError as error:
        lines.append(_line(name + "/config", "!error %s" % error.strerror))
        return False
    finally:
        os.close(fd)


def _registers(fd, name, lines):
    data = os.pread(fd, 4, 0)
    if data != b"\xff\xff\xff\xff":
        data = os.pread(fd, 256, 0)
    lines.append(_line(name + "/config", "hex:" + data.hex()))
    if len(data) < 256:
        return False
    seen, at = set(), 0x100
    while at >= 0x100 and at not in seen and len(seen) < 64:
        seen.add(at)
        head = int.from_bytes(os.pread(fd, 4, at), "little")
        if head in (0, 0xFFFFFFFF):
            break
        size = _EXTENDED.get(head & 0xFFFF)
        if size:
            lines.append(_line(name + "/config@%x" % at, "hex:" + os.pread(fd, size, at).hex()))
        at = head >> 20
    return True


def _node(context, lines):
    """Add what concerns the node: who controls ASPM, and whether an IOMMU is on."""
    for path in ("/sys/module/pcie_aspm/parameters/policy", "/sys/firmware/acpi/tables/FACP"):
        text = read.value(context.root + path, path.endswith("FACP"))
        if text != "!absent":
            lines.append(path + ": " + text)
    try:
        lines.append("/sys/kernel/iommu_groups: %d" % len(os.listdir(context.root + "/sys/kernel/iommu_groups")))
    except OSError:
        pass


def _line(path, text):
    return _ROOT + path + ": " + text


def _link(path):
    try:
        return os.readlink(path).replace("\n", "?")
    except OSError:
        return ""


SOURCES = (Source("pci", "sysfs.pci", _pci, child=True, deadline=15.0, note="lab"),)
