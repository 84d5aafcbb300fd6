r"""
PCI functions as the kernel's own files show them, flattened to lines.

Source: ``/sys/bus/pci/devices``: the files of each function, ``config`` as hexadecimal digits behind ``hex:``, pieces
of it as ``config@OFFSET``; ``/sys/module/pcie_aspm/parameters/policy``, ``/sys/firmware/acpi/tables/FACP`` (hex), the
number of ``/sys/kernel/iommu_groups``. Kernel ABI documentation sysfs-bus-pci.
Shape: ``PATH: value`` or ``PATH -> target`` (links) a line, a line feed inside a value written as ``\n``. Facts as of
lspci for displays, NVSwitches, network adapters and NVMe drives; ports above them only as records.
Units: GT/s, bytes.
Missing: a user reads 64 bytes of ``config``, without capabilities: ASPM, payload, errors and ACS are then denied, not
off. ``!denied``, ``!error NAME`` and ``!suspended`` stand for files that could not be read. All ones: lost.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import NODE, Facet, Reason, gpu_at, whole
from hwcheck.parse.format import fmt
from hwcheck.parse.pci_function import Files, Function, hex_bytes
from hwcheck.parse.pci_paths import between_gpu_and_peer
from hwcheck.parse.sink import FactSink

_ROOT = "/sys/bus/pci/devices/"
_ADDRESS = r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-1][0-9a-f]\.[0-7]"
_LINE = re.compile(rf"^{_ROOT}({_ADDRESS})(?:/([\w@/]{{1,60}}))?(?:: ?| -> )(.*)$")
_IN_PATH = re.compile(rf"(?:^|/)({_ADDRESS})(?=/|$)")
_DRIVER = re.compile(r"^[\w.-]{1,40}$")
_CLASSES = {
    "0200": "Ethernet controller", "0207": "Infiniband controller", "0280": "Network controller",
    "0108": "Non-Volatile memory controller", "0300": "VGA compatible controller", "0302": "3D controller",
    "0680": "Bridge", "0604": "PCI bridge",
}  # fmt: skip
_VENDORS = {
    "10de": "NVIDIA Corporation", "15b3": "Mellanox Technologies", "8086": "Intel Corporation", "14e4": "Broadcom",
    "144d": "Samsung", "1344": "Micron", "1e0f": "KIOXIA", "1d0f": "Amazon", "1ae0": "Google",
}  # fmt: skip
_OF_REGISTERS = ("pci.aspm", "pci.max_payload", "pci.max_read_request", "pci.relaxed_ordering", "pci.uncorrectable")
_AS_USER = "a user reads only the first 64 bytes of the configuration space"


@fmt(
    "sysfs.pci",
    "/sys/bus/pci/devices",
    gives=("pci.*", "iommu.modes"),
    opens=rf"{_ROOT}{_ADDRESS}/\w[\w@/]*: |{_ROOT}{_ADDRESS} -> ",
    continues=rf"{_ROOT}{_ADDRESS}(?:/[\w@/]+)?(?:: | -> )|/sys/(?:module/pcie_aspm|firmware/acpi|kernel/iommu)\S*: ",
)
def parse_sysfs_pci(output: Output, facts: FactSink) -> None:
    """Gather the files of each function, then tell facts of each."""
    functions, node = _gather(output)
    for function in functions.values():
        function.decode()
    for function in functions.values():
        if function.kind in _CLASSES and not function.is_port:
            _identity(function, facts)
            _placement(function, facts)
            _registers(function, facts)
            _upstream(function, functions, facts)
    _ports(functions, facts)
    _aspm_control(functions, node, facts)
    _iommu(functions, node, facts)


def _gather(output: Output) -> tuple[dict[str, Function], Files]:
    functions: dict[str, Function] = {}
    node: Files = {}
    for line, text in enumerate(output.lines, output.first_line):
        match = _LINE.match(text[:20_000])
        if match is None:
            path, found, value = text[:4000].partition(": ")
            if found and path.startswith("/sys/"):
                node.setdefault(path, (value, line))
            continue
        function = functions.setdefault(match[1], Function(match[1]))
        if match[2]:
            function.files.setdefault(match[2], (match[3], line))
        elif match[3]:
            function.path = tuple(_IN_PATH.findall(match[3][:2000]))
    return functions, node


def _identity(function: Function, facts: FactSink) -> None:
    device, line = function.subject, function.line
    kind = _CLASSES[function.kind]
    facts.put(device, "pci.class", kind, line)
    if function.ids:
        vendor = _VENDORS.get(function.ids[:4], "")
        facts.put(device, "pci.name", f"{vendor} {kind} [{function.ids}]".strip(), line)
    uevent = dict(part.split("=", 1) for part in function.text("uevent").split("\\n") if "=" in part)
    board = uevent.get("PCI_SUBSYS_ID", "").lower()
    for name, ids in (("device_id", function.ids), ("subsystem_id", board)):
        if re.fullmatch(r"[0-9a-f]{4}:[0-9a-f]{4}", ids):
            facts.put(device, f"pci.{name}", ids, line)
            if function.is_gpu:
                facts.put(gpu_at(function.address), f"gpu.pci.{name}", ids, line)
    driver = function.text("driver").rpartition("/")[2] or uevent.get("DRIVER", "")
    if _DRIVER.match(driver):
        facts.put(device, "pci.driver", driver, line)


_PLAIN = (("numa_node", "pci.numa_node"), ("sriov_numvfs", "pci.sriov_vfs"))


def _placement(function: Function, facts: FactSink) -> None:
    """Record NUMA node, IOMMU group, power management, memory windows, error counters."""
    device = function.subject
    for file, name in _PLAIN:
        if file in function.files:
            _value(function, facts, file, name)
    cpus, line = function.text("local_cpulist"), function.line
    if re.fullmatch(r"[0-9,-]{1,400}", cpus):
        facts.put(device, "pci.local_cpus", cpus, line)
    group = re.search(r"/iommu_groups/(\d{1,6})$", function.text("iommu_group"))
    if group:
        facts.put(device, "pci.iommu_group", int(group[1]), line)
    mode = function.text("iommu_group/type")
    if re.fullmatch(r"[A-Za-z-]{2,20}", mode):
        facts.put(device, "pci.iommu_mode", mode, function.files["iommu_group/type"][1])
    if function.text("power/control") in ("on", "auto"):
        facts.put(device, "pci.power_control", function.text("power/control"), line)
    if "resource" in function.files:
        _windows(function, facts)
    counters = function.aer()
    if counters is not None:
        facts.put(device, "pci.aer", counters, line)


def _value(function: Function, facts: FactSink, file: str, name: str) -> None:
    text, line = function.files[file]
    device = function.subject
    if text.startswith("!"):
        facts.missing(device, name, Reason.DENIED if text == "!denied" else Reason.FAILED, text[1:60], line)
    else:
        facts.read(device, name, whole, text, line)


def _windows(function: Function, facts: FactSink) -> None:
    """Read ``start end flags`` of the windows 0 to 5; flag 0x200 is memory."""
    largest, unset = 0, []
    device, line = function.subject, function.files["resource"][1]
    for number, text in enumerate(function.text("resource").split("\\n")[:6]):
        match = re.fullmatch(r"0x([0-9a-f]{16}) 0x([0-9a-f]{16}) 0x([0-9a-f]{16})", text.strip())
        if match is None:
            return
        start, end, flags = (int(part, 16) for part in match.groups())
        if not flags & 0x200 or end < start:
            continue
        largest = max(largest, end - start + 1)
        if start == 0 or flags & 0x20000000:
            unset.append(number)
    facts.put(device, "pci.bar.largest", largest >> 20, line)
    facts.put(device, "pci.bar.unset", tuple(unset), line)


def _registers(function: Function, facts: FactSink) -> None:
    """Record the link from registers or attributes, the rest from registers; say what could not be read."""
    device, config = function.subject, function.config
    text, line = function.files.get("config", ("", 0))
    if config is not None and config.lost:
        facts.put(device, "pci.lost", value=True, line=line)
        return
    if text == "!suspended":
        facts.put(device, "pci.asleep", value=True, line=line)
        return
    _link(function, facts)
    reason, why = _unread(function, text)
    if reason:
        for name in _OF_REGISTERS:
            facts.missing(device, name, reason, why, line)
    if config is None or reason:
        return
    express = function.express
    for name in ("max_payload", "max_read_request", "relaxed_ordering", "aspm", "clock_pm"):
        if name in express:
            facts.put(device, f"pci.{name}", express[name], line)
    if "aspm_possible" in express:
        facts.put(device, "pci.aspm.possible", express["aspm_possible"], line)
        facts.put(device, "pci.aspm", express["aspm_possible"], line, Facet.SUPPORTED)
    errors = config.uncorrectable()
    if errors is not None:
        facts.put(device, "pci.uncorrectable", errors, line)


def _unread(function: Function, text: str) -> tuple[Reason | None, str]:
    """Tell why the registers of a function are not here; None where they are, or nobody asked."""
    config = function.config
    if text == "!denied" or (config is not None and config.denied):
        return Reason.DENIED, _AS_USER
    if text.startswith("!"):
        return Reason.FAILED, text[1:60]
    if text and (config is None or len(config.first) < 64):
        return Reason.UNPARSABLE, "fewer than 64 bytes of the configuration space"
    return None, ""


def _link(function: Function, facts: FactSink) -> None:
    device = function.subject
    shown = function.link()
    line = function.files.get("config", ("", function.line))[1]
    for key in ("speed", "width"):
        for suffix in ("", "_max"):
            if f"{key}{suffix}" in shown and shown.get("width_max"):
                facts.put(device, f"pci.link.{key}{suffix}", shown[f"{key}{suffix}"], line)


def _upstream(function: Function, functions: dict[str, Function], facts: FactSink) -> None:
    """Record the port above, and which ASPM state is in effect: L1 needs both ends, L0s one."""
    above = functions.get(function.path[-2]) if len(function.path) > 1 else None
    if above is None or (above.config is not None and above.config.lost):
        return
    device, link = function.subject, above.link()
    record = {
        "address": above.address,
        "port": above.express.get("port", ""),
        "width_max": link.get("width_max", 0),
        "speed_max": link.get("speed_max", 0),
        "max_payload": above.express.get("max_payload", 0),
        "aspm": above.express.get("aspm", ""),
        "aer": above.aer() or {},
    }
    facts.put(device, "pci.upstream", record, above.line)
    here, there = function.express.get("aspm"), above.express.get("aspm")
    if here is None or there is None:
        return
    states = [
        name for name, on in (("L0s", "L0s" in here or "L0s" in there), ("L1", "L1" in here and "L1" in there)) if on
    ]
    facts.put(device, "pci.aspm", " ".join(states) or "none", function.files["config"][1], Facet.EFFECTIVE)


def _ports(functions: dict[str, Function], facts: FactSink) -> None:
    """Record the ports above devices, and the access control of each."""
    ports = [function for function in functions.values() if function.is_port]
    if not ports:
        return
    records, control, denied = [], [], 0
    between = between_gpu_and_peer(
        [f.path for f in functions.values() if f.is_gpu], [f.path for f in functions.values() if f.kind[:2] == "02"]
    )
    for port in ports:
        link = port.link()
        numbers = {key: link.get(key, 0) for key in ("speed", "speed_max", "width", "width_max")}
        parent = port.path[-2] if len(port.path) > 1 else ""
        records.append({"address": port.address, "port": port.express.get("port", ""), "parent": parent, **numbers})
        flags = port.config.access_control() if port.config else None
        if port.config is None or port.config.denied:
            denied += 1
        elif flags is not None:
            redirect = any(name in flags for name in ("ReqRedir", "CmpltRedir", "UpstreamFwd"))
            control.append(
                {
                    "device": port.address, "port": port.express.get("port", ""), "redirect": redirect, "flags": flags,
                    "line": port.line, "between": port.address in between,
                }
            )  # fmt: skip
    facts.put(NODE, "pci.bridges", tuple(records), ports[0].line)
    if denied:
        facts.put(NODE, "pci.denied", _AS_USER, ports[0].line)
        facts.missing(NODE, "pci.acs", Reason.DENIED, _AS_USER, ports[0].line)
    else:
        facts.put(NODE, "pci.acs", tuple(control), control[0]["line"] if control else ports[0].line)


def _aspm_control(functions: dict[str, Function], node: Files, facts: FactSink) -> None:
    """Record the policy, and whether the kernel may touch links: FADT may forbid it, or their attributes are hidden."""
    text, line = node.get("/sys/module/pcie_aspm/parameters/policy", ("", 0))
    word = re.search(r"\[(\w{3,20})\]", text)
    if word is None:
        return
    facts.put(NODE, "pci.aspm.policy", word[1], line)
    table, at = node.get("/sys/firmware/acpi/tables/FACP", ("", 0))
    boot_flags = hex_bytes(table)[109:111]
    able = [f for f in functions.values() if f.express.get("aspm_possible", "none") != "none" and not f.is_port]
    shown = any("link/l1_aspm" in f.files or "link/l0s_aspm" in f.files for f in able)
    refused = ""
    if len(boot_flags) == 2 and boot_flags[0] & 0x10:
        refused, line = "the firmware's FADT declares ASPM unsupported", at
    elif able and not shown:
        refused = "the kernel shows no ASPM attributes of links that can do ASPM"
    elif not able:
        return
    facts.put(NODE, "pci.aspm.refused", refused, line)
    facts.put(NODE, "pci.aspm.policy", "default" if refused else "any", line, Facet.PERMITTED)


def _iommu(functions: dict[str, Function], node: Files, facts: FactSink) -> None:
    groups, line = node.get("/sys/kernel/iommu_groups", ("", 0))
    if groups == "0":
        facts.put(NODE, "iommu.modes", (), line)
        return
    told = [(f.text("iommu_group/type"), f) for f in functions.values() if not f.is_port and f.kind in _CLASSES]
    modes = sorted({mode for mode, _ in told if re.fullmatch(r"[A-Za-z-]{2,20}", mode)})
    if modes:
        facts.put(NODE, "iommu.modes", tuple(modes), next(f.files["iommu_group/type"][1] for mode, f in told if mode))
