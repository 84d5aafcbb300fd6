"""``/sys/bus/pci`` of a lab node: functions with real configuration spaces below real ports, and IOMMU groups."""

from __future__ import annotations

import struct

from hwcheck.lab.devices import Function
from hwcheck.lab.machine import Machine
from hwcheck.lab.render import Planter

_SPEEDS = {
    1: "2.5 GT/s PCIe",
    2: "5.0 GT/s PCIe",
    3: "8.0 GT/s PCIe",
    4: "16.0 GT/s PCIe",
    5: "32.0 GT/s PCIe",
    6: "64.0 GT/s PCIe",
}
_CORRECTABLE = ("RxErr", "BadTLP", "BadDLLP", "Rollover", "Timeout", "NonFatalErr", "CorrIntErr", "HeaderOF")
_UNCORRECTABLE = (
    "Undefined",
    "DLP",
    "SDES",
    "TLP",
    "FCP",
    "CmpltTO",
    "CmpltAbrt",
    "UnxCmplt",
    "RxOF",
    "MalfTLP",
    "ECRC",
    "UnsupReq",
    "ACSViol",
)
_BARS = {"0302": ((24, 0), (38, 1), (25, 3)), "02": ((25, 0),), "0108": ((14, 0),), "0680": ((25, 0),)}
"""Class → (log2 of the size, BAR number)."""


def plant(machine: Machine, files: Planter) -> None:
    """Add every function, and what concerns the node."""
    group = 0
    for address, function in machine.functions.items():
        _function(machine, address, function, files)
        if function.group_type:
            here = f"/sys/kernel/iommu_groups/{group}"
            files.put(f"{here}/type", function.group_type)
            files.link(f"{here}/devices/{address}", f"../../../../{machine.path_of(address)}")
            files.link(
                f"/sys/{machine.path_of(address)}/iommu_group", _up(machine, address) + f"kernel/iommu_groups/{group}"
            )
            group += 1
    files.put("/sys/module/pcie_aspm/parameters/policy", machine.kernel.aspm_policy)
    if machine.arch == "x86_64":
        table = bytearray(276)
        struct.pack_into("<4sI", table, 0, b"FACP", len(table))
        struct.pack_into("<H", table, 109, 0x11 if machine.kernel.firmware_keeps_aspm else 0x01)
        files.put("/sys/firmware/acpi/tables/FACP", bytes(table))


def _up(machine: Machine, address: str) -> str:
    return "../" * machine.path_of(address).count("/") + "../"


def _function(machine: Machine, address: str, function: Function, files: Planter) -> None:
    path = "/sys/" + machine.path_of(address)
    files.link(f"/sys/bus/pci/devices/{address}", f"../../../{machine.path_of(address)}")
    ids, subsystem = function.ids.upper(), function.subsystem.upper()
    driver = f"DRIVER={function.driver}\n" if function.driver else ""
    kind = function.kind.lstrip("0")
    files.put(
        f"{path}/uevent",
        f"{driver}PCI_CLASS={kind.upper()}\nPCI_ID={ids}\nPCI_SUBSYS_ID={subsystem}\nPCI_SLOT_NAME={address}\n",
    )
    files.put(f"{path}/config", b"\xff" * 4096 if function.lost else space(function))
    files.put(f"{path}/class", "0x" + function.kind)
    for name, text in zip(("vendor", "device"), function.ids.split(":"), strict=True):
        files.put(f"{path}/{name}", "0x" + text)
    if function.driver:
        files.link(f"{path}/driver", _up(machine, address) + f"bus/pci/drivers/{function.driver}")
    files.put(f"{path}/numa_node", function.numa)
    near = machine.numa_cpus[function.numa] if function.numa >= 0 else f"0-{machine.processor.count - 1}"
    files.put(f"{path}/local_cpulist", near)
    files.put(f"{path}/current_link_speed", "Unknown" if function.lost else _SPEEDS[function.speed])
    files.put(f"{path}/current_link_width", 63 if function.lost else function.width)
    files.put(f"{path}/max_link_speed", _SPEEDS[function.speed_max])
    files.put(f"{path}/max_link_width", function.width_max)
    files.put(f"{path}/power/control", "on")
    files.put(f"{path}/power/runtime_status", "active")
    files.put(f"{path}/d3cold_allowed", 1)
    files.put(f"{path}/resource", _resource(function))
    _errors(function, path, files)
    if function.aspm_possible and not function.port and not machine.kernel.firmware_keeps_aspm:
        files.put(f"{path}/link/l1_aspm", int(bool(function.aspm & 2)))


def _errors(function: Function, path: str, files: Planter) -> None:
    for name, words, total in (
        ("correctable", _CORRECTABLE, "TOTAL_ERR_COR"),
        ("nonfatal", _UNCORRECTABLE, "TOTAL_ERR_NONFATAL"),
        ("fatal", _UNCORRECTABLE, "TOTAL_ERR_FATAL"),
    ):
        counts = function.counted if name == "correctable" else {}
        rows = [f"{word} {counts.get(word, 0)}" for word in words]
        files.put(f"{path}/aer_dev_{name}", "\n".join([*rows, f"{total} {sum(counts.values())}"]))


def _resource(function: Function) -> str:
    """Print the windows as the kernel does: start, end, flags; 13 rows."""
    rows = ["0x0000000000000000 0x0000000000000000 0x0000000000000000"] * 13
    bars = next((bars for kind, bars in _BARS.items() if function.kind.startswith(kind)), ())
    start = 0x2000_0000_0000 + (hash_of(function.address) << 40)
    for bits, number in bars:
        rows[number] = f"0x{start:016x} 0x{start + (1 << bits) - 1:016x} 0x000000000014220c"
        start += 1 << max(bits, 30)
    return "\n".join(rows)


def hash_of(address: str) -> int:
    """Return a small number that is the same for an address each time."""
    return (
        sum(
            int(part, 16) * step
            for part, step in zip(address.replace(".", ":").split(":"), (97, 31, 7, 1), strict=True)
        )
        % 1000
    )


def space(function: Function) -> bytes:
    """Return 4096 bytes of configuration space: power management, PCI Express, AER, and ACS where there is one."""
    data = bytearray(4096)
    vendor, device = (int(part, 16) for part in function.ids.split(":"))
    sub_vendor, sub_device = (int(part, 16) for part in function.subsystem.split(":"))
    code = int(function.kind, 16)
    struct.pack_into("<HHHH", data, 0, vendor, device, 0x0406, 0x0010)
    struct.pack_into("<I", data, 8, code << 8 | 0xA1)
    data[0x0E] = 1 if function.port else 0
    if not function.port:
        struct.pack_into("<HH", data, 0x2C, sub_vendor, sub_device)
    data[0x34] = 0x40
    struct.pack_into("<BBH", data, 0x40, 0x01, 0x60, 0x0003)
    control = (0x10 if function.relaxed else 0) | _size(function.payload) << 5 | _size(function.read_request) << 12
    able = function.speed_max | function.width_max << 4 | function.aspm_possible << 10
    state = function.speed | function.width << 4
    struct.pack_into(
        "<BBHIHHIHH", data, 0x60, 0x10, 0, 2 | function.port << 4, 2, control, 0, able, function.aspm, state
    )
    following = 0x148 if function.acs is not None else 0
    struct.pack_into("<II", data, 0x100, 0x0001 | 2 << 16 | following << 20, function.errors)
    if function.acs is not None:
        struct.pack_into("<IHH", data, 0x148, 0x000D | 1 << 16, 0x5F, function.acs)
    return bytes(data)


def _size(size: int) -> int:
    return (size // 128).bit_length() - 1
