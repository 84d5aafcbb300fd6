"""
ONE table: for each GPU fact its NVML call, ``nvidia-smi -q`` path, XML tag and CSV column.

Four formats share this definition, so the same machine gives the same facts whichever was posted. Alternatives stand
in order, newest spelling first; drivers renamed "Clocks Throttle Reasons" (R535), "Power Readings" (R535) and others.
Longer than a module should be, because it is a table.

Sources: ``nvidia-smi -q`` and ``-q -x`` of drivers 510 to 590 on A100, H100, H200, B200, GB200, GB300;
``nvidia-smi --help-query-gpu`` of 590.48.01; nvml.h (names of calls, units of answers).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hwcheck.facts import NAMES, Missing, Reason
from hwcheck.parse.gpu_values import (
    bits,
    flag,
    gap,
    health_flag,
    in_unit,
    mib,
    named,
    pci_id,
    plain_text,
    said,
    watts,
    whole,
    whole_in,
)


@dataclass(frozen=True, slots=True)
class Nvml:
    """
    Where an NVML log has the value.

    Attributes:
        call: function name.
        field: key of the answer, where it is a struct; "" for a plain answer; ``&0x40`` for one bit of a mask.
        args: arguments after the device, by their NVML constant names.
        read: turns the raw answer (integers in NVML's own units: bytes, mW, enum) into the fact's value.
    """

    call: str
    field: str = ""
    args: tuple[str, ...] = ()
    read: Callable[[Any], Any] = lambda value: value


@dataclass(frozen=True, slots=True)
class GpuFact:
    """
    One row.

    Attributes:
        name: fact name.
        read: text → value; raises ValueError for a text it does not understand.
        q, xml, csv: where the text stands: paths joined by ``/``, column names.
        nvml: where an NVML log has it; None where NVML has no call of its own.
    """

    name: str
    read: Callable[[str], Any]
    q: tuple[str, ...] = ()
    xml: tuple[str, ...] = ()
    csv: tuple[str, ...] = ()
    nvml: Nvml | None = None


def _call(call: str, field: str = "", *args: str, read: Callable[[Any], Any] = lambda value: value) -> Nvml:
    return Nvml(call, field, args, read)


def _reason(name: str, q: str, xml: str, csv: str, bit: str) -> GpuFact:
    """A clock event reason; called throttle reason before R535."""
    return GpuFact(
        f"gpu.clocks.reason.{name}",
        flag,
        (f"Clocks Event Reasons/{q}", f"Clocks Throttle Reasons/{q}"),
        (
            f"clocks_event_reasons/clocks_event_reason_{xml}",
            f"clocks_throttle_reasons/clocks_throttle_reason_{xml}",
        ),
        (f"clocks_event_reasons.{csv}", f"clocks_throttle_reasons.{csv}"),
        _call("nvmlDeviceGetCurrentClocksEventReasons", f"&{bit}", read=bool),
    )


def _counter(name: str, q: str, xml: str, csv: str, field_id: str) -> GpuFact:
    return GpuFact(
        f"gpu.clocks.counter.{name}",
        whole_in("us"),
        (f"Clocks Event Reasons Counters/{q}",),
        (f"clocks_event_reasons_counters/clocks_event_reasons_counters_{xml}",),
        (f"clocks_event_reasons_counters.{csv}",),
        _call("nvmlDeviceGetFieldValues", "", field_id, read=lambda ns: int(ns) // 1000),
    )


def _ecc(age: str) -> list[GpuFact]:
    """The ECC counters of one age: volatile (since driver load) or aggregate (life of the board)."""
    prefix, q, xml, counter = (
        f"gpu.ecc.{age}",
        f"ECC Errors/{age.title()}",
        f"ecc_errors/{age}",
        f"NVML_{age.upper()}_ECC",
    )
    bad = f"ecc.errors.uncorrected.{age}"
    good = f"ecc.errors.corrected.{age}"

    def sram(field: str) -> Nvml:
        return _call("nvmlDeviceGetSramEccErrorStatus", f"{age}{field}")

    def location(kind: str, where: str) -> Nvml:
        return _call("nvmlDeviceGetMemoryErrorCounter", "", f"NVML_MEMORY_ERROR_TYPE_{kind}", counter, where)

    def total(kind: str) -> Nvml:
        return _call("nvmlDeviceGetTotalEccErrors", "", f"NVML_MEMORY_ERROR_TYPE_{kind}", counter)

    count = whole()
    dram = "NVML_MEMORY_LOCATION_DRAM"
    return [
        GpuFact(f"{prefix}.sram_corrected", count, (f"{q}/SRAM Correctable",), (f"{xml}/sram_correctable",),
                (f"{good}.sram",), sram("Cor")),
        GpuFact(f"{prefix}.sram_uncorrected", count, (f"{q}/SRAM Uncorrectable",), (f"{xml}/sram_uncorrectable",),
                (f"{bad}.sram",), location("UNCORRECTED", "NVML_MEMORY_LOCATION_SRAM")),
        GpuFact(f"{prefix}.sram_parity", count, (f"{q}/SRAM Uncorrectable Parity",),
                (f"{xml}/sram_uncorrectable_parity",), (f"{bad}.sram.parity",), sram("UncParity")),
        GpuFact(f"{prefix}.sram_secded", count, (f"{q}/SRAM Uncorrectable SEC-DED",),
                (f"{xml}/sram_uncorrectable_secded",), (f"{bad}.sram.secded",), sram("UncSecDed")),
        GpuFact(f"{prefix}.dram_corrected", count, (f"{q}/DRAM Correctable",), (f"{xml}/dram_correctable",),
                (f"{good}.dram", f"{good}.device_memory"), location("CORRECTED", dram)),
        GpuFact(f"{prefix}.dram_uncorrected", count, (f"{q}/DRAM Uncorrectable",), (f"{xml}/dram_uncorrectable",),
                (f"{bad}.dram", f"{bad}.device_memory"), location("UNCORRECTED", dram)),
        GpuFact(f"{prefix}.uncorrected", count, csv=(f"{bad}.total",), nvml=total("UNCORRECTED")),
        GpuFact(f"{prefix}.corrected", count, csv=(f"{good}.total",), nvml=total("CORRECTED")),
    ]  # fmt: skip


def _banks(name: str) -> GpuFact:
    return GpuFact(
        f"gpu.remap.banks.{name}",
        whole("bank(s)"),
        (f"Remapped Rows/Bank Remap Availability Histogram/{name.title()}",),
        (f"remapped_rows/row_remapper_histogram/row_remapper_histogram_{name}",),
        (f"remapped_rows.histogram.{name}",),
        _call("nvmlDeviceGetRowRemapperHistogram", name),
    )


def _clock(name: str, q: str, xml: str, csv: str, call: str, domain: str) -> GpuFact:
    return GpuFact(f"gpu.clocks.{name}", whole_in("MHz"), (q,), (xml,), (csv,), _call(call, "", f"NVML_CLOCK_{domain}"))


def _power(name: str, q: str, xml: str, csv: tuple[str, ...], nvml: Nvml | None, *old: str) -> GpuFact:
    """A power value; before R535 the section is "Power Readings", the tags differ in spelling."""
    return GpuFact(
        f"gpu.power.{name}",
        in_unit("W"),
        (
            f"GPU Power Readings/{q}",
            f"Power Readings/{q}",
            *(f"{s}/{o}" for o in old for s in ("GPU Power Readings", "Power Readings")),
        ),
        (
            f"gpu_power_readings/{xml}",
            f"power_readings/{xml}",
            "gpu_power_readings/power_draw" if name == "draw" else f"power_readings/{xml}",
        ),
        csv,
        nvml,
    )


_info = "nvmlDeviceGetGpuFabricInfoV"
_virtual = named("None", "Pass-Through", "VGPU", "Host VGPU", "Host VSGA")
_states = named("N/A", "Not Started", "In Progress", "Completed")
_recovery = named(
    "None", "Reset", "Reboot", "Drain P2P", "Drain and Reset", "Recover IMEX Domain", "Bus Reset", "System Reboot"
)
_ARCHITECTURES = {7: "Ampere", 8: "Ada", 9: "Hopper", 10: "Blackwell"}
_FIELD, _MODULE = "nvmlDeviceGetFieldValues", "NVML_POWER_SCOPE_MODULE"


def _status(code: int) -> str:
    return {0: "Success", 999: "Unknown Error"}.get(code, f"error {code}")


_IDENTITY = [
    GpuFact("gpu.index", whole(), csv=("index",), nvml=_call("nvmlDeviceGetIndex")),
    GpuFact("gpu.minor", whole(), ("Minor Number",), ("minor_number",), (), _call("nvmlDeviceGetMinorNumber")),
    GpuFact("gpu.uuid", plain_text, ("GPU UUID",), ("uuid",), ("uuid", "gpu_uuid"), _call("nvmlDeviceGetUUID")),
    GpuFact("gpu.serial", plain_text, ("Serial Number",), ("serial",), ("serial", "gpu_serial"),
            _call("nvmlDeviceGetSerial")),
    GpuFact("gpu.name", plain_text, ("Product Name",), ("product_name",), ("name", "gpu_name"),
            _call("nvmlDeviceGetName")),
    GpuFact("gpu.architecture", plain_text, ("Product Architecture",), ("product_architecture",), (),
            _call("nvmlDeviceGetArchitecture", read=_ARCHITECTURES.__getitem__)),
    GpuFact("gpu.part_number", plain_text, ("Board Part Number",), ("board_part_number",), (),
            _call("nvmlDeviceGetBoardPartNumber")),
    GpuFact("gpu.gpu_part_number", plain_text, ("GPU Part Number",), ("gpu_part_number",)),
    GpuFact("gpu.vbios", plain_text, ("VBIOS Version",), ("vbios_version",), ("vbios_version",),
            _call("nvmlDeviceGetVbiosVersion")),
    GpuFact("gpu.inforom", plain_text, ("Inforom Version/Image Version",), ("inforom_version/img_version",),
            ("inforom.img",), _call("nvmlDeviceGetInforomImageVersion")),
    GpuFact("gpu.gsp_firmware", plain_text, ("GSP Firmware Version",), ("gsp_firmware_version",), (),
            _call("nvmlDeviceGetGspFirmwareVersion")),
    GpuFact("gpu.pci.device_id", pci_id, ("PCI/Device Id",), ("pci/pci_device_id",), ("pci.device_id",),
            _call("nvmlDeviceGetPciInfo", "pciDeviceId", read=lambda value: pci_id(f"{value:08x}"))),
    GpuFact("gpu.pci.subsystem_id", pci_id, ("PCI/Sub System Id",), ("pci/pci_sub_system_id",), ("pci.sub_device_id",),
            _call("nvmlDeviceGetPciInfo", "pciSubSystemId", read=lambda value: pci_id(f"{value:08x}"))),
    GpuFact("gpu.module_id", whole(), ("Platform Info/Module Id", "Module ID", "Module Id"),
            ("platformInfo/module_id", "module_id"), ("platform.module_id",), _call("nvmlDeviceGetModuleId")),
    GpuFact("gpu.platform.chassis_serial", plain_text, ("Platform Info/Chassis Serial Number",),
            ("platformInfo/chassis_serial_number",), ("platform.chassis_serial_number",),
            _call("nvmlDeviceGetPlatformInfo", "chassisSerialNumber", read=said)),
    GpuFact("gpu.platform.slot", whole(), ("Platform Info/Slot Number",), ("platformInfo/slot_number",),
            (), _call("nvmlDeviceGetPlatformInfo", "slotNumber")),
    GpuFact("gpu.platform.tray", whole(), ("Platform Info/Tray Index",), ("platformInfo/tray_index",),
            (), _call("nvmlDeviceGetPlatformInfo", "trayIndex")),
    GpuFact("gpu.platform.peer_type", plain_text, ("Platform Info/Peer Type",), ("platformInfo/peer_type",)),
]  # fmt: skip

_MODES = [
    GpuFact("gpu.persistence_mode", flag, ("Persistence Mode",), ("persistence_mode",), ("persistence_mode",),
            _call("nvmlDeviceGetPersistenceMode", read=bool)),
    GpuFact("gpu.addressing_mode", plain_text, ("Addressing Mode",), ("addressing_mode",), ("addressing_mode",),
            _call("nvmlDeviceGetAddressingMode", "value", read=named("None", "HMM", "ATS"))),
    GpuFact("gpu.virtualization_mode", plain_text, ("GPU Virtualization Mode/Virtualization Mode",),
            ("gpu_virtualization_mode/virtualization_mode",), (),
            _call("nvmlDeviceGetVirtualizationMode", read=_virtual)),
    GpuFact("gpu.driver_model", plain_text, ("Driver Model/Current",), ("driver_model/current_dm",),
            ("driver_model.current",)),
    GpuFact("gpu.compute_mode", plain_text, ("Compute Mode",), ("compute_mode",), ("compute_mode",),
            _call("nvmlDeviceGetComputeMode",
                  read=named("Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process"))),
    GpuFact("gpu.c2c.mode", flag, ("GPU C2C Mode",), ("c2c_mode",), ("c2c.mode",),
            _call("nvmlDeviceGetC2cModeInfoV", "isC2cEnabled", read=bool)),
    GpuFact("gpu.mig.mode", flag, ("MIG Mode/Current",), ("mig_mode/current_mig",), ("mig.mode.current",),
            _call("nvmlDeviceGetMigMode", "current", read=bool)),
    GpuFact("gpu.mig.pending", flag, ("MIG Mode/Pending",), ("mig_mode/pending_mig",), ("mig.mode.pending",),
            _call("nvmlDeviceGetMigMode", "pending", read=bool)),
    GpuFact("gpu.recovery_action", plain_text, ("GPU Recovery Action",), ("gpu_recovery_action",),
            ("gpu_recovery_action",),
            _call("nvmlDeviceGetFieldValues", "", "NVML_FI_DEV_GET_GPU_RECOVERY_ACTION", read=_recovery)),
    GpuFact("gpu.reset_required", flag, ("GPU Reset Status/Reset Required",), ("gpu_reset_status/reset_required",),
            ("reset_status.reset_required",), _call(_FIELD, "", "NVML_FI_DEV_RESET_STATUS", read=bool)),
    GpuFact("gpu.drain_recommended", flag, ("GPU Reset Status/Drain and Reset Recommended",),
            ("gpu_reset_status/drain_and_reset_recommended",), ("reset_status.drain_and_reset_recommended",),
            _call(_FIELD, "", "NVML_FI_DEV_DRAIN_AND_RESET_STATUS", read=bool)),
    GpuFact("gpu.performance_state", plain_text, ("Performance State",), ("performance_state",), ("pstate",),
            _call("nvmlDeviceGetPerformanceState", read=lambda value: f"P{value}")),
    GpuFact("gpu.utilization", whole("%"), ("Utilization/GPU", "Utilization/Gpu"), ("utilization/gpu_util",),
            ("utilization.gpu",), _call("nvmlDeviceGetUtilizationRates", "gpu")),
]  # fmt: skip

_MEMORY = [
    GpuFact("gpu.memory.total", whole_in("MiB"), ("FB Memory Usage/Total",), ("fb_memory_usage/total",),
            ("memory.total",), _call("nvmlDeviceGetMemoryInfo_v2", "total", read=mib)),
    GpuFact("gpu.memory.reserved", whole_in("MiB"), ("FB Memory Usage/Reserved",), ("fb_memory_usage/reserved",),
            ("memory.reserved",), _call("nvmlDeviceGetMemoryInfo_v2", "reserved", read=mib)),
    GpuFact("gpu.memory.used", whole_in("MiB"), ("FB Memory Usage/Used",), ("fb_memory_usage/used",),
            ("memory.used",), _call("nvmlDeviceGetMemoryInfo_v2", "used", read=mib)),
    GpuFact("gpu.memory.free", whole_in("MiB"), ("FB Memory Usage/Free",), ("fb_memory_usage/free",),
            ("memory.free",), _call("nvmlDeviceGetMemoryInfo_v2", "free", read=mib)),
    GpuFact("gpu.bar1.total", whole_in("MiB"), ("BAR1 Memory Usage/Total",), ("bar1_memory_usage/total",), (),
            _call("nvmlDeviceGetBAR1MemoryInfo", "bar1Total", read=mib)),
    GpuFact("gpu.ecc.mode", flag, ("ECC Mode/Current", "Ecc Mode/Current"), ("ecc_mode/current_ecc",),
            ("ecc.mode.current",), _call("nvmlDeviceGetEccMode", "current", read=bool)),
    GpuFact("gpu.ecc.pending", flag, ("ECC Mode/Pending", "Ecc Mode/Pending"), ("ecc_mode/pending_ecc",),
            ("ecc.mode.pending",), _call("nvmlDeviceGetEccMode", "pending", read=bool)),
    *_ecc("volatile"),
    *_ecc("aggregate"),
    GpuFact("gpu.ecc.sram_threshold_exceeded", flag, ("ECC Errors/Aggregate/SRAM Threshold Exceeded",),
            ("ecc_errors/aggregate/sram_threshold_exceeded",),
            ("ecc.errors.uncorrected.aggregate.sram.thresholdExceeded",),
            _call("nvmlDeviceGetSramEccErrorStatus", "bThresholdExceeded", read=bool)),
    GpuFact("gpu.repair.channel_pending", flag, ("ECC Errors/Channel Repair Pending",),
            ("ecc_errors/channel_repair_pending",), (),
            _call("nvmlDeviceGetRepairStatus", "bChannelRepairPending", read=bool)),
    GpuFact("gpu.repair.tpc_pending", flag, ("ECC Errors/TPC Repair Pending",), ("ecc_errors/tpc_repair_pending",), (),
            _call("nvmlDeviceGetRepairStatus", "bTpcRepairPending", read=bool)),
    GpuFact("gpu.repair.unrepairable", flag, ("ECC Errors/Unrepairable Memory",), ("ecc_errors/unrepairable_memory",),
            (), _call("nvmlDeviceGetUnrepairableMemoryFlag_v1", "bUnrepairableMemory", read=bool)),
    GpuFact("gpu.retired.pending", flag, ("Retired Pages/Pending Page Blacklist",),
            ("retired_pages/pending_retirement",), ("retired_pages.pending",)),
    GpuFact("gpu.remap.corrected", whole(), ("Remapped Rows/Correctable Error",), ("remapped_rows/remapped_row_corr",),
            ("remapped_rows.correctable",), _call("nvmlDeviceGetRemappedRows", "corrRows")),
    GpuFact("gpu.remap.uncorrected", whole(), ("Remapped Rows/Uncorrectable Error",),
            ("remapped_rows/remapped_row_unc",), ("remapped_rows.uncorrectable",),
            _call("nvmlDeviceGetRemappedRows", "uncRows")),
    GpuFact("gpu.remap.pending", flag, ("Remapped Rows/Pending",), ("remapped_rows/remapped_row_pending",),
            ("remapped_rows.pending",), _call("nvmlDeviceGetRemappedRows", "isPending", read=bool)),
    GpuFact("gpu.remap.failure", flag, ("Remapped Rows/Remapping Failure Occurred",),
            ("remapped_rows/remapped_row_failure",), ("remapped_rows.failure",),
            _call("nvmlDeviceGetRemappedRows", "failureOccurred", read=bool)),
    *(_banks(name) for name in ("max", "high", "partial", "low", "none")),
]  # fmt: skip

_LIMITS = "nvmlDeviceGetPowerManagementLimitConstraints"
_HEAT_AND_POWER = [
    GpuFact("gpu.temperature", whole_in("C"), ("Temperature/GPU Current Temp",), ("temperature/gpu_temp",),
            ("temperature.gpu",), _call("nvmlDeviceGetTemperature", "", "NVML_TEMPERATURE_GPU")),
    GpuFact("gpu.temperature.tlimit", whole_in("C"), ("Temperature/GPU T.Limit Temp",),
            ("temperature/gpu_temp_tlimit",), ("temperature.gpu.tlimit",),
            _call("nvmlDeviceGetMarginTemperature", "marginTemperature")),
    GpuFact("gpu.temperature.memory", whole_in("C"), ("Temperature/Memory Current Temp",),
            ("temperature/memory_temp",), ("temperature.memory",),
            _call("nvmlDeviceGetFieldValues", "", "NVML_FI_DEV_MEMORY_TEMP")),
    GpuFact("gpu.temperature.memory_max", whole_in("C"), ("Temperature/Memory Max Operating Temp",),
            ("temperature/gpu_temp_max_mem_threshold",), (),
            _call("nvmlDeviceGetTemperatureThreshold", "", "NVML_TEMPERATURE_THRESHOLD_MEM_MAX")),
    _power("draw", "Average Power Draw", "average_power_draw", ("power.draw.average", "power.draw"),
           _call("nvmlDeviceGetFieldValues", "", "NVML_FI_DEV_POWER_AVERAGE", read=watts), "Power Draw"),
    _power("limit", "Current Power Limit", "current_power_limit", ("enforced.power.limit", "power.limit"),
           _call("nvmlDeviceGetEnforcedPowerLimit", read=watts), "Enforced Power Limit", "Power Limit"),
    _power("requested", "Requested Power Limit", "requested_power_limit", ("power.limit",),
           _call("nvmlDeviceGetPowerManagementLimit", read=watts), "Power Limit"),
    _power("default", "Default Power Limit", "default_power_limit", ("power.default_limit",),
           _call("nvmlDeviceGetPowerManagementDefaultLimit", read=watts)),
    _power("min", "Min Power Limit", "min_power_limit", ("power.min_limit",), _call(_LIMITS, "min", read=watts)),
    _power("max", "Max Power Limit", "max_power_limit", ("power.max_limit",), _call(_LIMITS, "max", read=watts)),
    GpuFact("gpu.module_power.limit", in_unit("W"), ("Module Power Readings/Current Power Limit",),
            ("module_power_readings/current_power_limit",), ("module.enforced.power.limit", "module.power.limit"),
            _call(_FIELD, "", "NVML_FI_DEV_POWER_CURRENT_LIMIT", _MODULE, read=watts)),
    GpuFact("gpu.module_power.default", in_unit("W"), ("Module Power Readings/Default Power Limit",),
            ("module_power_readings/default_power_limit",), ("module.power.default_limit",),
            _call(_FIELD, "", "NVML_FI_DEV_POWER_DEFAULT_LIMIT", _MODULE, read=watts)),
]  # fmt: skip

_now, _max = "nvmlDeviceGetClockInfo", "nvmlDeviceGetMaxClockInfo"
_CLOCKS = [
    _clock("graphics", "Clocks/Graphics", "clocks/graphics_clock", "clocks.current.graphics", _now, "GRAPHICS"),
    _clock("sm", "Clocks/SM", "clocks/sm_clock", "clocks.current.sm", _now, "SM"),
    _clock("memory", "Clocks/Memory", "clocks/mem_clock", "clocks.current.memory", _now, "MEM"),
    _clock("max_graphics", "Max Clocks/Graphics", "max_clocks/graphics_clock", "clocks.max.graphics", _max, "GRAPHICS"),
    _clock("max_sm", "Max Clocks/SM", "max_clocks/sm_clock", "clocks.max.sm", _max, "SM"),
    _clock("max_memory", "Max Clocks/Memory", "max_clocks/mem_clock", "clocks.max.memory", _max, "MEM"),
    _clock("application_graphics", "Applications Clocks/Graphics", "applications_clocks/graphics_clock",
           "clocks.applications.graphics", "nvmlDeviceGetApplicationsClock", "GRAPHICS"),
    _clock("default_graphics", "Default Applications Clocks/Graphics", "default_applications_clocks/graphics_clock",
           "clocks.default_applications.graphics", "nvmlDeviceGetDefaultApplicationsClock", "GRAPHICS"),
    _reason("idle", "Idle", "gpu_idle", "gpu_idle", "0x1"),
    _reason("applications", "Applications Clocks Setting", "applications_clocks_setting",
            "applications_clocks_setting", "0x2"),
    _reason("sw_power_cap", "SW Power Cap", "sw_power_cap", "sw_power_cap", "0x4"),
    _reason("hw_slowdown", "HW Slowdown", "hw_slowdown", "hw_slowdown", "0x8"),
    _reason("hw_thermal", "HW Slowdown/HW Thermal Slowdown", "hw_thermal_slowdown", "hw_thermal_slowdown", "0x40"),
    _reason("hw_power_brake", "HW Slowdown/HW Power Brake Slowdown", "hw_power_brake_slowdown",
            "hw_power_brake_slowdown", "0x80"),
    _reason("sync_boost", "Sync Boost", "sync_boost", "sync_boost", "0x10"),
    _reason("sw_thermal", "SW Thermal Slowdown", "sw_thermal_slowdown", "sw_thermal_slowdown", "0x20"),
    _counter("sw_power_cap", "SW Power Capping", "sw_power_cap", "sw_power_cap",
             "NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP"),
    _counter("sw_thermal", "SW Thermal Slowdown", "sw_therm_slowdown", "sw_thermal_slowdown",
             "NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN"),
    _counter("hw_thermal", "HW Thermal Slowdown", "hw_therm_slowdown", "hw_thermal_slowdown",
             "NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN"),
    _counter("hw_power_brake", "HW Power Braking", "hw_power_brake", "hw_power_brake_slowdown",
             "NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN"),
]  # fmt: skip

_gen, _width = "PCI/GPU Link Info/PCIe Generation", "PCI/GPU Link Info/Link Width"
_xgen, _xwidth = "pci/pci_gpu_link_info/pcie_gen", "pci/pci_gpu_link_info/link_widths"
_PCIE = [
    GpuFact("gpu.pcie.gen", whole(), (f"{_gen}/Device Current", f"{_gen}/Current"),
            (f"{_xgen}/device_current_link_gen", f"{_xgen}/current_link_gen"),
            ("pcie.link.gen.gpucurrent", "pcie.link.gen.current"), _call("nvmlDeviceGetCurrPcieLinkGeneration")),
    GpuFact("gpu.pcie.gen_max", whole(), (f"{_gen}/Max",), (f"{_xgen}/max_link_gen",), ("pcie.link.gen.max",),
            _call("nvmlDeviceGetMaxPcieLinkGeneration")),
    GpuFact("gpu.pcie.gen_device_max", whole(), (f"{_gen}/Device Max",), (f"{_xgen}/max_device_link_gen",),
            ("pcie.link.gen.gpumax",), _call("nvmlDeviceGetGpuMaxPcieLinkGeneration")),
    GpuFact("gpu.pcie.gen_host_max", whole(), (f"{_gen}/Host Max",), (f"{_xgen}/max_host_link_gen",),
            ("pcie.link.gen.hostmax",)),
    GpuFact("gpu.pcie.width", whole("x"), (f"{_width}/Current",), (f"{_xwidth}/current_link_width",),
            ("pcie.link.width.current",), _call("nvmlDeviceGetCurrPcieLinkWidth")),
    GpuFact("gpu.pcie.width_max", whole("x"), (f"{_width}/Max",), (f"{_xwidth}/max_link_width",),
            ("pcie.link.width.max",), _call("nvmlDeviceGetMaxPcieLinkWidth")),
    GpuFact("gpu.pcie.replays", whole(), ("PCI/Replays Since Reset",), ("pci/replay_counter",), (),
            _call("nvmlDeviceGetPcieReplayCounter")),
    GpuFact("gpu.pcie.rollovers", whole(), ("PCI/Replay Number Rollovers",), ("pci/replay_rollover_counter",), (),
            _call("nvmlDeviceGetFieldValues", "", "NVML_FI_DEV_PCIE_REPLAY_ROLLOVER_COUNTER")),
]  # fmt: skip

_FABRIC = [
    GpuFact("gpu.fabric.state", plain_text, ("Fabric/State",), ("fabric/state",), ("fabric.state",),
            _call(_info, "state", read=_states)),
    GpuFact("gpu.fabric.status", plain_text, ("Fabric/Status",), ("fabric/status",), ("fabric.status",),
            _call(_info, "status", read=_status)),
    GpuFact("gpu.fabric.clique", whole(), ("Fabric/CliqueId", "Fabric/Clique ID"), ("fabric/cliqueId",),
            ("fabric.cliqueId",), _call(_info, "cliqueId")),
    GpuFact("gpu.fabric.cluster", plain_text, ("Fabric/ClusterUUID", "Fabric/Cluster UUID"), ("fabric/clusterUuid",),
            ("fabric.clusterUuid",), _call(_info, "clusterUuid")),
    GpuFact("gpu.fabric.health", plain_text, ("Fabric/Health/Summary",), ("fabric/health/summary",),
            ("fabric.health.summary",),
            _call(_info, "healthSummary", read=named("N/A", "Healthy", "Unhealthy", "Limited Capacity"))),
    GpuFact("gpu.fabric.bandwidth", plain_text, ("Fabric/Health/Bandwidth",), ("fabric/health/bandwidth",),
            ("fabric.health.bandwidth",), _call(_info, "healthMask", read=bits(0, 2, "Degraded", "Full"))),
    GpuFact("gpu.fabric.route_recovery", flag, ("Fabric/Health/Route Recovery in progress",),
            ("fabric/health/route_recovery_in_progress",), ("fabric.health.route_recovery_in_progress",),
            _call(_info, "healthMask", read=health_flag(2))),
    GpuFact("gpu.fabric.route_unhealthy", flag, ("Fabric/Health/Route Unhealthy",), ("fabric/health/route_unhealthy",),
            ("fabric.health.route_unhealthy",), _call(_info, "healthMask", read=health_flag(4))),
    GpuFact("gpu.fabric.access_recovery", flag, ("Fabric/Health/Access Timeout Recovery",),
            ("fabric/health/access_timeout_recovery",), ("fabric.health.access_timeout_recovery",),
            _call(_info, "healthMask", read=health_flag(6))),
    GpuFact("gpu.fabric.misconfigured", plain_text, ("Fabric/Health/Incorrect Configuration",),
            ("fabric/health/incorrect_configuration",), ("fabric.health.incorrect_configuration",)),
]  # fmt: skip

GPU_FACTS: tuple[GpuFact, ...] = (
    *_IDENTITY, *_MODES, *_MEMORY, *_HEAT_AND_POWER, *_CLOCKS, *_PCIE, *_FABRIC,
)  # fmt: skip

NVML_FACTS: tuple[GpuFact, ...] = (
    GpuFact("hbm.bus_width", whole(), nvml=_call("nvmlDeviceGetMemoryBusWidth")),
    GpuFact("topo.gpu_numa", whole(), nvml=_call("nvmlDeviceGetNumaNodeId")),
)
"""Facts that no listing of nvidia-smi -q has; other tools print them."""

NODE_FIELDS = {
    # fact: (-q key, XML tag, CSV column, NVML call)
    "driver.version": ("Driver Version", "driver_version", "driver_version", "nvmlSystemGetDriverVersion"),
    "driver.cuda_version": ("CUDA Version", "cuda_version", "", "nvmlSystemGetCudaDriverVersion_v2"),
    "gpu.attached_count": ("Attached GPUs", "attached_gpus", "count", "nvmlDeviceGetCount_v2"),
}

GIVES = ("gpu.*", "driver.version", "driver.cuda_version")


def by_place(column: str) -> dict[str, list[tuple[int, GpuFact]]]:
    """
    Index the table by where a text stands: ``q``, ``xml`` or ``csv``.

    Returns:
        place → (preference, row) of the rows that read it; 0 is the preferred spelling of a row.
    """
    index: dict[str, list[tuple[int, GpuFact]]] = {}
    for row in GPU_FACTS:
        for preference, place in enumerate(getattr(row, column)):
            entries = index.setdefault(place, [])
            if all(other is not row for _, other in entries):
                entries.append((preference, row))
    return index


def read_text(row: GpuFact, text: str) -> Any:
    """Turn a printed value into the fact's value, or into Missing with the reason; never raises."""
    missing = gap(text)
    if missing is not None:
        return missing
    try:
        value = row.read(text)
        return float(value) if NAMES[row.name].type is float else value
    except (ValueError, OverflowError):
        return Missing(Reason.UNPARSABLE, f"not understood: {text.strip()[:60]!r}")
