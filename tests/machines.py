"""
Machines of the tests' own making, printed as ``nvidia-smi -q``, ``-q -x``, CSV and an NVML log.

The field names and their order are those the tools print; they are written out here a second time, independently of
:mod:`hwcheck.parse.gpu_table`, so that a slip in that table shows as a difference. Values are those of a healthy HGX
H200 unless a test changes them. All identifiers are made up.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

NA = "N/A"

HEALTHY: dict[str, Any] = {
    "name": "NVIDIA H200", "architecture": "Hopper", "persistence": "Enabled", "addressing": "None", "mig": "Disabled",
    "vbios": "96.00.A5.00.03", "part": "695-2G520-0280-001", "gpu_part": "2335-895-A1", "module": 1,
    "inforom": "G520.0280.02.02", "virtualization": "None", "recovery": "None", "device": 0x233510DE,
    "subsystem": 0x18BE10DE, "gen": 5, "width": 16, "replays": 12, "rollovers": 0, "pstate": "P0", "reasons": {"idle"},
    "counters": {"power": 0, "sw_thermal": 0, "hw_thermal": 0, "brake": 0}, "total": 143771, "reserved": 614, "used": 0,
    "bar1": 262144, "ecc": "Enabled", "sram_corrected": 0, "sram_parity": 0, "sram_secded": 0, "dram_corrected": 0,
    "dram_uncorrected": 0, "threshold": "No", "channel_repair": "No", "tpc_repair": "No", "unrepairable": "No",
    "remap_corrected": 0, "remap_uncorrected": 0, "remap_pending": "No", "remap_failure": "No",
    "banks": (3072, 0, 0, 0, 0), "temperature": 31, "tlimit": 55, "memory_temperature": 36, "draw": 78.21,
    "limit": 700.0, "default_limit": 700.0, "min_limit": 200.0, "max_limit": 700.0, "sm": 345, "memory_clock": 3201,
    "max_sm": 1980, "fabric_state": "Completed", "fabric_status": "Success", "clique": 0,
    "cluster": "00000000-0000-0000-0000-000000000000",
}  # fmt: skip

_REASONS = {
    "idle": "Idle", "applications": "Applications Clocks Setting", "power_cap": "SW Power Cap", "hw": "HW Slowdown",
    "hw_thermal": "HW Thermal Slowdown", "brake": "HW Power Brake Slowdown", "sync": "Sync Boost",
    "sw_thermal": "SW Thermal Slowdown", "display": "Display Clock Setting",
}  # fmt: skip
_BITS = {
    "idle": 0x1, "applications": 0x2, "power_cap": 0x4, "hw": 0x8, "sync": 0x10, "sw_thermal": 0x20, "hw_thermal": 0x40,
    "brake": 0x80, "display": 0x100,
}  # fmt: skip
_BANKS = ("max", "high", "partial", "low", "none")
_BUSES = (0x18, 0x2A, 0x3A, 0x5D, 0x9A, 0xAB, 0xBA, 0xDB)


@dataclass
class Gpu:
    """One GPU: its place and what differs from the healthy one."""

    index: int
    changes: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, key: str) -> Any:
        """Return a value, changed or healthy."""
        return self.changes.get(key, HEALTHY[key])

    @property
    def address(self) -> str:
        """PCI address as NVML spells it."""
        return f"00000000:{_BUSES[self.index]:02X}:00.0"

    @property
    def uuid(self) -> str:
        """Made-up UUID."""
        return f"GPU-5a1e0000-0000-4000-8000-00000000000{self.index}"

    @property
    def serial(self) -> str:
        """Made-up serial number."""
        return f"165000000000{self.index}"


@dataclass
class Machine:
    """A node's GPUs and driver."""

    gpus: list[Gpu]
    driver: str = "570.124.06"
    cuda: str = "12.8"


def hgx_h200(changes: dict[int, dict[str, Any]] | None = None, count: int = 8) -> Machine:
    """Make an HGX H200; ``changes`` maps a GPU index to what is wrong with it."""
    return Machine([Gpu(index, (changes or {}).get(index, {})) for index in range(count)])


def _row(indent: int, key: str, value: Any) -> str:
    return f"{' ' * indent}{key}".ljust(42) + f": {value}"


def as_q(machine: Machine) -> str:
    """Print as ``nvidia-smi -q`` does (layout of driver 570)."""
    lines = ["", "==============NVSMI LOG==============", "", _row(0, "Timestamp", "Tue Mar  3 09:15:02 2026")]
    lines += [_row(0, "Driver Version", machine.driver), _row(0, "CUDA Version", machine.cuda), ""]
    lines.append(_row(0, "Attached GPUs", len(machine.gpus)))
    for gpu in machine.gpus:
        lines.append(f"GPU {gpu.address}")
        lines += [row if isinstance(row, str) else _row(*row) for row in _q_rows(gpu, machine)]
        lines.append("")
    return "\n".join(lines) + "\n"


def _q_rows(gpu: Gpu, machine: Machine) -> list[Any]:
    def state(name: str) -> str:
        return "Active" if name in gpu["reasons"] else "Not Active"

    ecc = [
        (12, "SRAM Correctable", gpu["sram_corrected"]),
        (12, "SRAM Uncorrectable Parity", gpu["sram_parity"]),
        (12, "SRAM Uncorrectable SEC-DED", gpu["sram_secded"]),
        (12, "DRAM Correctable", gpu["dram_corrected"]),
        (12, "DRAM Uncorrectable", gpu["dram_uncorrected"]),
    ]
    banks = zip(("Max", "High", "Partial", "Low", "None"), gpu["banks"], strict=True)
    return [
        (4, "Product Name", gpu["name"]), (4, "Product Brand", "NVIDIA"),
        (4, "Product Architecture", gpu["architecture"]),
        (4, "Persistence Mode", gpu["persistence"]), (4, "Addressing Mode", gpu["addressing"]),
        "    MIG Mode", (8, "Current", gpu["mig"]), (8, "Pending", gpu["mig"]),
        "    Driver Model", (8, "Current", NA), (8, "Pending", NA),
        (4, "Serial Number", gpu.serial), (4, "GPU UUID", gpu.uuid), (4, "Minor Number", gpu.index),
        (4, "VBIOS Version", gpu["vbios"]), (4, "Board Part Number", gpu["part"]),
        (4, "GPU Part Number", gpu["gpu_part"]), (4, "Module ID", gpu["module"]),
        "    Inforom Version", (8, "Image Version", gpu["inforom"]), (8, "OEM Object", "2.1"),
        (8, "ECC Object", "7.16"),
        "    GPU Virtualization Mode", (8, "Virtualization Mode", gpu["virtualization"]),
        (4, "GPU Recovery Action", gpu["recovery"]), (4, "GSP Firmware Version", machine.driver),
        "    PCI", (8, "Device Id", f"0x{gpu['device']:08X}"), (8, "Bus Id", gpu.address),
        (8, "Sub System Id", f"0x{gpu['subsystem']:08X}"),
        "        GPU Link Info", "            PCIe Generation", (16, "Max", 5), (16, "Current", gpu["gen"]),
        (16, "Device Current", gpu["gen"]), (16, "Device Max", 5), (16, "Host Max", 5),
        "            Link Width", (16, "Max", "16x"), (16, "Current", f"{gpu['width']}x"),
        (8, "Replays Since Reset", gpu["replays"]), (8, "Replay Number Rollovers", gpu["rollovers"]),
        (4, "Performance State", gpu["pstate"]),
        "    Clocks Event Reasons", (8, "Idle", state("idle")),
        (8, "Applications Clocks Setting", state("applications")), (8, "SW Power Cap", state("power_cap")),
        (8, "HW Slowdown", state("hw")), (12, "HW Thermal Slowdown", state("hw_thermal")),
        (12, "HW Power Brake Slowdown", state("brake")), (8, "Sync Boost", state("sync")),
        (8, "SW Thermal Slowdown", state("sw_thermal")), (8, "Display Clock Setting", state("display")),
        "    Clocks Event Reasons Counters", (8, "SW Power Capping", f"{gpu['counters']['power']} us"),
        (8, "SW Thermal Slowdown", f"{gpu['counters']['sw_thermal']} us"),
        (8, "HW Thermal Slowdown", f"{gpu['counters']['hw_thermal']} us"),
        (8, "HW Power Braking", f"{gpu['counters']['brake']} us"),
        "    FB Memory Usage", (8, "Total", f"{gpu['total']} MiB"), (8, "Reserved", f"{gpu['reserved']} MiB"),
        (8, "Used", f"{gpu['used']} MiB"), (8, "Free", f"{gpu['total'] - gpu['reserved'] - gpu['used']} MiB"),
        "    BAR1 Memory Usage", (8, "Total", f"{gpu['bar1']} MiB"),
        (4, "Compute Mode", "Default"), "    Utilization", (8, "GPU", "0 %"), (8, "Memory", "0 %"),
        "    ECC Mode", (8, "Current", gpu["ecc"]), (8, "Pending", gpu["ecc"]),
        "    ECC Errors", "        Volatile", *ecc, "        Aggregate", *ecc,
        (12, "SRAM Threshold Exceeded", gpu["threshold"]),
        (8, "Channel Repair Pending", gpu["channel_repair"]), (8, "TPC Repair Pending", gpu["tpc_repair"]),
        (8, "Unrepairable Memory", gpu["unrepairable"]),
        "    Retired Pages", (8, "Single Bit ECC", NA), (8, "Double Bit ECC", NA), (8, "Pending Page Blacklist", NA),
        "    Remapped Rows", (8, "Correctable Error", gpu["remap_corrected"]),
        (8, "Uncorrectable Error", gpu["remap_uncorrected"]), (8, "Pending", gpu["remap_pending"]),
        (8, "Remapping Failure Occurred", gpu["remap_failure"]), "        Bank Remap Availability Histogram",
        *((12, name, f"{count} bank(s)") for name, count in banks),
        "    Temperature", (8, "GPU Current Temp", f"{gpu['temperature']} C"),
        (8, "GPU T.Limit Temp", f"{gpu['tlimit']} C"),
        (8, "GPU Shutdown T.Limit Temp", "-8 C"), (8, "Memory Current Temp", f"{gpu['memory_temperature']} C"),
        "    GPU Power Readings", (8, "Average Power Draw", f"{gpu['draw']:.2f} W"),
        (8, "Current Power Limit", f"{gpu['limit']:.2f} W"), (8, "Requested Power Limit", f"{gpu['limit']:.2f} W"),
        (8, "Default Power Limit", f"{gpu['default_limit']:.2f} W"),
        (8, "Min Power Limit", f"{gpu['min_limit']:.2f} W"), (8, "Max Power Limit", f"{gpu['max_limit']:.2f} W"),
        "    Clocks", (8, "Graphics", f"{gpu['sm']} MHz"), (8, "SM", f"{gpu['sm']} MHz"),
        (8, "Memory", f"{gpu['memory_clock']} MHz"), (8, "Video", "765 MHz"),
        "    Max Clocks", (8, "Graphics", f"{gpu['max_sm']} MHz"), (8, "SM", f"{gpu['max_sm']} MHz"),
        (8, "Memory", f"{gpu['memory_clock']} MHz"), (8, "Video", "1545 MHz"),
        "    Fabric", (8, "State", gpu["fabric_state"]), (8, "Status", gpu["fabric_status"]),
        (8, "CliqueId", gpu["clique"]), (8, "ClusterUUID", gpu["cluster"]),
        (4, "Processes", "None"),
    ]  # fmt: skip


def as_xml(machine: Machine) -> str:
    """Print as ``nvidia-smi -q -x`` does (schema v12)."""
    head = ['<?xml version="1.0" ?>', '<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">', "<nvidia_smi_log>"]
    head += [f"\t<driver_version>{machine.driver}</driver_version>", f"\t<cuda_version>{machine.cuda}</cuda_version>"]
    head.append(f"\t<attached_gpus>{len(machine.gpus)}</attached_gpus>")
    body = []
    for gpu in machine.gpus:
        body += [f'\t<gpu id="{gpu.address}">', *_xml(_xml_tree(gpu, machine), 2), "\t</gpu>"]
    return "\n".join([*head, *body, "</nvidia_smi_log>"]) + "\n"


def _xml(tree: dict[str, Any], depth: int) -> list[str]:
    lines: list[str] = []
    for tag, value in tree.items():
        pad = "\t" * depth
        if isinstance(value, dict):
            lines += [f"{pad}<{tag}>", *_xml(value, depth + 1), f"{pad}</{tag}>"]
        else:
            lines.append(f"{pad}<{tag}>{value}</{tag}>")
    return lines


def _xml_tree(gpu: Gpu, machine: Machine) -> dict[str, Any]:
    def state(name: str) -> str:
        return "Active" if name in gpu["reasons"] else "Not Active"

    reason = "clocks_event_reason_"
    counter = "clocks_event_reasons_counters_"
    ecc = {
        "sram_correctable": gpu["sram_corrected"], "sram_uncorrectable_parity": gpu["sram_parity"],
        "sram_uncorrectable_secded": gpu["sram_secded"], "dram_correctable": gpu["dram_corrected"],
        "dram_uncorrectable": gpu["dram_uncorrected"],
    }  # fmt: skip
    banks = dict(zip(_BANKS, gpu["banks"], strict=True))
    return {
        "product_name": gpu["name"], "product_architecture": gpu["architecture"],
        "persistence_mode": gpu["persistence"], "addressing_mode": gpu["addressing"],
        "mig_mode": {"current_mig": gpu["mig"], "pending_mig": gpu["mig"]},
        "driver_model": {"current_dm": NA, "pending_dm": NA}, "serial": gpu.serial, "uuid": gpu.uuid,
        "minor_number": gpu.index, "vbios_version": gpu["vbios"], "board_part_number": gpu["part"],
        "gpu_part_number": gpu["gpu_part"], "module_id": gpu["module"],
        "inforom_version": {"img_version": gpu["inforom"]},
        "gpu_virtualization_mode": {"virtualization_mode": gpu["virtualization"]},
        "gpu_recovery_action": gpu["recovery"], "gsp_firmware_version": machine.driver,
        "pci": {
            "pci_device_id": f"{gpu['device']:08X}", "pci_bus_id": gpu.address,
            "pci_sub_system_id": f"{gpu['subsystem']:08X}",
            "pci_gpu_link_info": {
                "pcie_gen": {
                    "max_link_gen": 5, "current_link_gen": gpu["gen"], "device_current_link_gen": gpu["gen"],
                    "max_device_link_gen": 5, "max_host_link_gen": 5,
                },
                "link_widths": {"max_link_width": "16x", "current_link_width": f"{gpu['width']}x"},
            },
            "replay_counter": gpu["replays"], "replay_rollover_counter": gpu["rollovers"],
        },
        "performance_state": gpu["pstate"],
        "clocks_event_reasons": {
            f"{reason}gpu_idle": state("idle"), f"{reason}applications_clocks_setting": state("applications"),
            f"{reason}sw_power_cap": state("power_cap"), f"{reason}hw_slowdown": state("hw"),
            f"{reason}hw_thermal_slowdown": state("hw_thermal"), f"{reason}hw_power_brake_slowdown": state("brake"),
            f"{reason}sync_boost": state("sync"), f"{reason}sw_thermal_slowdown": state("sw_thermal"),
        },
        "clocks_event_reasons_counters": {
            f"{counter}sw_power_cap": f"{gpu['counters']['power']} us",
            f"{counter}sw_therm_slowdown": f"{gpu['counters']['sw_thermal']} us",
            f"{counter}hw_therm_slowdown": f"{gpu['counters']['hw_thermal']} us",
            f"{counter}hw_power_brake": f"{gpu['counters']['brake']} us",
        },
        "fb_memory_usage": {
            "total": f"{gpu['total']} MiB", "reserved": f"{gpu['reserved']} MiB", "used": f"{gpu['used']} MiB",
            "free": f"{gpu['total'] - gpu['reserved'] - gpu['used']} MiB",
        },
        "bar1_memory_usage": {"total": f"{gpu['bar1']} MiB"}, "compute_mode": "Default",
        "utilization": {"gpu_util": "0 %"}, "ecc_mode": {"current_ecc": gpu["ecc"], "pending_ecc": gpu["ecc"]},
        "ecc_errors": {
            "volatile": ecc, "aggregate": ecc | {"sram_threshold_exceeded": gpu["threshold"]},
            "channel_repair_pending": gpu["channel_repair"], "tpc_repair_pending": gpu["tpc_repair"],
            "unrepairable_memory": gpu["unrepairable"],
        },
        "retired_pages": {"pending_retirement": NA},
        "remapped_rows": {
            "remapped_row_corr": gpu["remap_corrected"], "remapped_row_unc": gpu["remap_uncorrected"],
            "remapped_row_pending": gpu["remap_pending"], "remapped_row_failure": gpu["remap_failure"],
            "row_remapper_histogram": {f"row_remapper_histogram_{k}": f"{v} bank(s)" for k, v in banks.items()},
        },
        "temperature": {
            "gpu_temp": f"{gpu['temperature']} C", "gpu_temp_tlimit": f"{gpu['tlimit']} C",
            "memory_temp": f"{gpu['memory_temperature']} C",
        },
        "gpu_power_readings": {
            "average_power_draw": f"{gpu['draw']:.2f} W", "current_power_limit": f"{gpu['limit']:.2f} W",
            "requested_power_limit": f"{gpu['limit']:.2f} W", "default_power_limit": f"{gpu['default_limit']:.2f} W",
            "min_power_limit": f"{gpu['min_limit']:.2f} W", "max_power_limit": f"{gpu['max_limit']:.2f} W",
        },
        "clocks": {
            "graphics_clock": f"{gpu['sm']} MHz", "sm_clock": f"{gpu['sm']} MHz",
            "mem_clock": f"{gpu['memory_clock']} MHz",
        },
        "max_clocks": {
            "graphics_clock": f"{gpu['max_sm']} MHz", "sm_clock": f"{gpu['max_sm']} MHz",
            "mem_clock": f"{gpu['memory_clock']} MHz",
        },
        "fabric": {
            "state": gpu["fabric_state"], "status": gpu["fabric_status"], "cliqueId": gpu["clique"],
            "clusterUuid": gpu["cluster"],
        },
        "processes": {},
    }  # fmt: skip


def as_csv(machine: Machine) -> str:
    """Print as ``nvidia-smi --query-gpu=... --format=csv`` does."""
    columns = [_csv_columns(gpu, machine) for gpu in machine.gpus]
    lines = [", ".join(columns[0])] + [", ".join(map(str, row.values())) for row in columns]
    return "\n".join(lines) + "\n"


def _csv_columns(gpu: Gpu, machine: Machine) -> dict[str, Any]:
    def state(name: str) -> str:
        return "Active" if name in gpu["reasons"] else "Not Active"

    reason, row = "clocks_event_reasons.", "remapped_rows."
    bad, good = "ecc.errors.uncorrected.", "ecc.errors.corrected."
    uncorrected = gpu["sram_parity"] + gpu["sram_secded"] + gpu["dram_uncorrected"]
    errors = {
        key: value
        for age in ("volatile", "aggregate")
        for key, value in {
            f"{good}{age}.dram": gpu["dram_corrected"], f"{good}{age}.sram": gpu["sram_corrected"],
            f"{good}{age}.total": gpu["dram_corrected"] + gpu["sram_corrected"],
            f"{bad}{age}.dram": gpu["dram_uncorrected"], f"{bad}{age}.sram": gpu["sram_parity"] + gpu["sram_secded"],
            f"{bad}{age}.total": uncorrected, f"{bad}{age}.sram.parity": gpu["sram_parity"],
            f"{bad}{age}.sram.secded": gpu["sram_secded"],
        }.items()
    }  # fmt: skip
    return {
        "timestamp": "2026/03/03 09:15:02.100", "driver_version": machine.driver, "count": len(machine.gpus),
        "name": gpu["name"], "serial": gpu.serial, "uuid": gpu.uuid, "pci.bus_id": gpu.address,
        "pci.device_id": f"0x{gpu['device']:08X}", "pci.sub_device_id": f"0x{gpu['subsystem']:08X}",
        "pcie.link.gen.gpucurrent": gpu["gen"], "pcie.link.gen.max": 5, "pcie.link.gen.gpumax": 5,
        "pcie.link.gen.hostmax": 5, "pcie.link.width.current": gpu["width"], "pcie.link.width.max": 16,
        "index": gpu.index, "persistence_mode": gpu["persistence"], "addressing_mode": gpu["addressing"],
        "vbios_version": gpu["vbios"], "inforom.img": gpu["inforom"], "gpu_recovery_action": gpu["recovery"],
        "pstate": gpu["pstate"],
        f"{reason}gpu_idle": state("idle"), f"{reason}applications_clocks_setting": state("applications"),
        f"{reason}sw_power_cap": state("power_cap"), f"{reason}hw_slowdown": state("hw"),
        f"{reason}hw_thermal_slowdown": state("hw_thermal"), f"{reason}hw_power_brake_slowdown": state("brake"),
        f"{reason}sw_thermal_slowdown": state("sw_thermal"), f"{reason}sync_boost": state("sync"),
        "memory.total [MiB]": f"{gpu['total']} MiB", "memory.reserved [MiB]": f"{gpu['reserved']} MiB",
        "memory.used [MiB]": f"{gpu['used']} MiB", "compute_mode": "Default", "utilization.gpu [%]": "0 %",
        "ecc.mode.current": gpu["ecc"], "ecc.mode.pending": gpu["ecc"], **errors,
        f"{bad}aggregate.sram.thresholdExceeded": gpu["threshold"], f"{row}correctable": gpu["remap_corrected"],
        f"{row}uncorrectable": gpu["remap_uncorrected"], f"{row}pending": gpu["remap_pending"],
        f"{row}failure": gpu["remap_failure"],
        **{f"{row}histogram.{bank}": count for bank, count in zip(_BANKS, gpu["banks"], strict=True)},
        "temperature.gpu": gpu["temperature"], "temperature.gpu.tlimit": gpu["tlimit"],
        "temperature.memory": gpu["memory_temperature"], "power.draw.average [W]": f"{gpu['draw']:.2f} W",
        "power.limit [W]": f"{gpu['limit']:.2f} W", "enforced.power.limit [W]": f"{gpu['limit']:.2f} W",
        "power.default_limit [W]": f"{gpu['default_limit']:.2f} W", "power.min_limit [W]": f"{gpu['min_limit']:.2f} W",
        "power.max_limit [W]": f"{gpu['max_limit']:.2f} W", "clocks.current.graphics [MHz]": f"{gpu['sm']} MHz",
        "clocks.current.sm [MHz]": f"{gpu['sm']} MHz", "clocks.current.memory [MHz]": f"{gpu['memory_clock']} MHz",
        "clocks.max.graphics [MHz]": f"{gpu['max_sm']} MHz", "clocks.max.sm [MHz]": f"{gpu['max_sm']} MHz",
        "clocks.max.memory [MHz]": f"{gpu['memory_clock']} MHz", "mig.mode.current": gpu["mig"],
        "mig.mode.pending": gpu["mig"], "fabric.state": gpu["fabric_state"], "fabric.status": gpu["fabric_status"],
        "fabric.cliqueId": gpu["clique"], "fabric.clusterUuid": gpu["cluster"],
    }  # fmt: skip


def as_nvml(machine: Machine) -> str:
    """Write the log of NVML calls that live collection makes."""
    rows: list[dict[str, Any]] = [{"format": "hwcheck.nvml/1"}]

    def log(call: str, value: Any, device: int | None = None, *args: str) -> None:
        rows.append({"call": call, "device": device, "args": list(args), "value": value})

    log("nvmlSystemGetDriverVersion", machine.driver)
    major, minor = machine.cuda.split(".")
    log("nvmlSystemGetCudaDriverVersion_v2", int(major) * 1000 + int(minor) * 10)
    log("nvmlDeviceGetCount_v2", len(machine.gpus))
    for gpu in machine.gpus:
        for call, args, value in _nvml_calls(gpu, machine):
            log(call, value, gpu.index, *args)
    return "\n".join(json.dumps(row) for row in rows) + "\n"


def _nvml_calls(gpu: Gpu, machine: Machine) -> list[tuple[str, tuple[str, ...], Any]]:
    def on(key: str, yes: str = "Enabled") -> int:
        return int(gpu[key] == yes)

    mask = sum(_BITS[name] for name in gpu["reasons"])
    calls: list[tuple[str, tuple[str, ...], Any]] = [
        ("nvmlDeviceGetIndex", (), gpu.index), ("nvmlDeviceGetMinorNumber", (), gpu.index),
        ("nvmlDeviceGetUUID", (), gpu.uuid), ("nvmlDeviceGetSerial", (), gpu.serial),
        ("nvmlDeviceGetName", (), gpu["name"]),
        ("nvmlDeviceGetBoardPartNumber", (), gpu["part"]), ("nvmlDeviceGetVbiosVersion", (), gpu["vbios"]),
        ("nvmlDeviceGetInforomImageVersion", (), gpu["inforom"]),
        ("nvmlDeviceGetGspFirmwareVersion", (), machine.driver), ("nvmlDeviceGetModuleId", (), gpu["module"]),
        ("nvmlDeviceGetPciInfo", (), {"busId": gpu.address, "pciDeviceId": gpu["device"],
         "pciSubSystemId": gpu["subsystem"]}),
        ("nvmlDeviceGetPersistenceMode", (), on("persistence")), ("nvmlDeviceGetAddressingMode", (), {"value": 0}),
        ("nvmlDeviceGetVirtualizationMode", (), 0), ("nvmlDeviceGetComputeMode", (), 0),
        ("nvmlDeviceGetMigMode", (), {"current": on("mig"), "pending": on("mig")}),
        ("nvmlDeviceGetFieldValues", ("NVML_FI_DEV_GET_GPU_RECOVERY_ACTION",),
         ("None", "Reset", "Reboot", "Drain P2P", "Drain and Reset").index(gpu["recovery"])),
        ("nvmlDeviceGetPerformanceState", (), int(gpu["pstate"][1:])),
        ("nvmlDeviceGetUtilizationRates", (), {"gpu": 0}),
        ("nvmlDeviceGetMemoryInfo_v2", (), {"total": gpu["total"] << 20, "reserved": gpu["reserved"] << 20,
         "used": gpu["used"] << 20, "free": gpu["total"] - gpu["reserved"] - gpu["used"] << 20}),
        ("nvmlDeviceGetBAR1MemoryInfo", (), {"bar1Total": gpu["bar1"] << 20}),
        ("nvmlDeviceGetEccMode", (), {"current": on("ecc"), "pending": on("ecc")}),
        ("nvmlDeviceGetSramEccErrorStatus", (), {
            "volatileCor": gpu["sram_corrected"], "volatileUncParity": gpu["sram_parity"],
            "volatileUncSecDed": gpu["sram_secded"], "aggregateCor": gpu["sram_corrected"],
            "aggregateUncParity": gpu["sram_parity"], "aggregateUncSecDed": gpu["sram_secded"],
            "bThresholdExceeded": on("threshold", "Yes")}),
        ("nvmlDeviceGetRepairStatus", (), {"bChannelRepairPending": on("channel_repair", "Yes"),
         "bTpcRepairPending": on("tpc_repair", "Yes")}),
        ("nvmlDeviceGetRemappedRows", (), {"corrRows": gpu["remap_corrected"], "uncRows": gpu["remap_uncorrected"],
         "isPending": on("remap_pending", "Yes"), "failureOccurred": on("remap_failure", "Yes")}),
        ("nvmlDeviceGetRowRemapperHistogram", (), dict(zip(_BANKS, gpu["banks"], strict=True))),
        ("nvmlDeviceGetTemperature", ("NVML_TEMPERATURE_GPU",), gpu["temperature"]),
        ("nvmlDeviceGetMarginTemperature", (), {"marginTemperature": gpu["tlimit"]}),
        ("nvmlDeviceGetFieldValues", ("NVML_FI_DEV_MEMORY_TEMP",), gpu["memory_temperature"]),
        ("nvmlDeviceGetFieldValues", ("NVML_FI_DEV_POWER_AVERAGE",), round(gpu["draw"] * 1000)),
        ("nvmlDeviceGetEnforcedPowerLimit", (), round(gpu["limit"] * 1000)),
        ("nvmlDeviceGetPowerManagementLimit", (), round(gpu["limit"] * 1000)),
        ("nvmlDeviceGetPowerManagementDefaultLimit", (), round(gpu["default_limit"] * 1000)),
        ("nvmlDeviceGetPowerManagementLimitConstraints", (), {"min": round(gpu["min_limit"] * 1000),
         "max": round(gpu["max_limit"] * 1000)}),
        ("nvmlDeviceGetCurrentClocksEventReasons", (), mask),
        ("nvmlDeviceGetFieldValues", ("NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP",),
         gpu["counters"]["power"] * 1000),
        ("nvmlDeviceGetFieldValues", ("NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN",),
         gpu["counters"]["sw_thermal"] * 1000),
        ("nvmlDeviceGetFieldValues", ("NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN",),
         gpu["counters"]["hw_thermal"] * 1000),
        ("nvmlDeviceGetFieldValues", ("NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN",),
         gpu["counters"]["brake"] * 1000),
        ("nvmlDeviceGetCurrPcieLinkGeneration", (), gpu["gen"]), ("nvmlDeviceGetMaxPcieLinkGeneration", (), 5),
        ("nvmlDeviceGetGpuMaxPcieLinkGeneration", (), 5), ("nvmlDeviceGetCurrPcieLinkWidth", (), gpu["width"]),
        ("nvmlDeviceGetMaxPcieLinkWidth", (), 16), ("nvmlDeviceGetPcieReplayCounter", (), gpu["replays"]),
        ("nvmlDeviceGetFieldValues", ("NVML_FI_DEV_PCIE_REPLAY_ROLLOVER_COUNTER",), gpu["rollovers"]),
        ("nvmlDeviceGetGpuFabricInfoV", (), {
            "state": ("Not Supported", "Not Started", "In Progress", "Completed").index(gpu["fabric_state"]),
            "status": 0 if gpu["fabric_status"] == "Success" else 999, "cliqueId": gpu["clique"],
            "clusterUuid": gpu["cluster"], "healthMask": 0}),
    ]  # fmt: skip
    counters = (("VOLATILE", "volatile"), ("AGGREGATE", "aggregate"))
    for upper, _ in counters:
        for kind, dram, total in (
            ("CORRECTED", gpu["dram_corrected"], gpu["dram_corrected"] + gpu["sram_corrected"]),
            ("UNCORRECTED", gpu["dram_uncorrected"], gpu["dram_uncorrected"] + gpu["sram_parity"] + gpu["sram_secded"]),
        ):
            args = (f"NVML_MEMORY_ERROR_TYPE_{kind}", f"NVML_{upper}_ECC")
            calls.append(("nvmlDeviceGetMemoryErrorCounter", (*args, "NVML_MEMORY_LOCATION_DRAM"), dram))
            calls.append(("nvmlDeviceGetTotalEccErrors", args, total))
    for domain, now, most in (
        ("GRAPHICS", gpu["sm"], gpu["max_sm"]),
        ("SM", gpu["sm"], gpu["max_sm"]),
        ("MEM", gpu["memory_clock"], gpu["memory_clock"]),
    ):
        calls.append(("nvmlDeviceGetClockInfo", (f"NVML_CLOCK_{domain}",), now))
        calls.append(("nvmlDeviceGetMaxClockInfo", (f"NVML_CLOCK_{domain}",), most))
    return calls


RENDERERS = {"nvidia-smi.q": as_q, "nvidia-smi.xml": as_xml, "nvidia-smi.csv": as_csv, "nvml": as_nvml}
