"""The tests' machines as attributes of the lab's NVML."""

from __future__ import annotations

from typing import Any

from tests.machines import Gpu, Machine

_BITS = {
    "idle": 1, "applications": 2, "power_cap": 4, "hw": 8, "sync": 16, "sw_thermal": 32, "hw_thermal": 64, "brake": 128,
}  # fmt: skip
_STATES = ("N/A", "Not Started", "In Progress", "Completed")
_ACTIONS = ("None", "Reset", "Reboot", "Drain P2P", "Drain and Reset")


def state_of(machine: Machine) -> dict[str, Any]:
    """Describe a machine as :func:`hwcheck.lab.nvml.attributes.write_state` takes it."""
    major, minor = machine.cuda.split(".")
    return {
        "driver_version": machine.driver,
        "nvml_version": f"{major}.{machine.driver}",
        "cuda_version": int(major) * 1000 + int(minor) * 10,
        "gpus": [_gpu(gpu, machine) for gpu in machine.gpus],
    }


def _gpu(gpu: Gpu, machine: Machine) -> dict[str, Any]:
    def on(key: str, yes: str = "Enabled") -> int:
        return int(gpu[key] == yes)

    errors = {
        f"ecc_{age}_{name}": gpu[name]
        for age in ("volatile", "aggregate")
        for name in ("sram_corrected", "sram_parity", "sram_secded", "dram_corrected", "dram_uncorrected")
    }
    links = [1] * 18
    return {
        "pci_bus_id": gpu.address, "pci_device_id": hex(gpu["device"]), "pci_subsystem_id": hex(gpu["subsystem"]),
        "minor": gpu.index, "uuid": gpu.uuid, "serial": gpu.serial, "name": gpu["name"], "architecture": 9,
        "part_number": gpu["part"], "vbios": gpu["vbios"], "inforom": gpu["inforom"], "gsp_firmware": machine.driver,
        "module_id": gpu["module"], "persistence": on("persistence"), "addressing_mode": 0, "virtualization_mode": 0,
        "compute_mode": 0, "mig_mode": on("mig"), "mig_pending": on("mig"), "performance_state": gpu["pstate"][1:],
        "utilization": 0, "recovery_action": _ACTIONS.index(gpu["recovery"]), "memory_total": gpu["total"] << 20,
        "memory_reserved": gpu["reserved"] << 20, "memory_used": gpu["used"] << 20, "bar1_total": gpu["bar1"] << 20,
        "memory_bus_width": 6144, "ecc_mode": on("ecc"), "ecc_pending": on("ecc"), **errors,
        "ecc_sram_threshold": on("threshold", "Yes"), "repair_channel_pending": on("channel_repair", "Yes"),
        "repair_tpc_pending": on("tpc_repair", "Yes"), "unrepairable": on("unrepairable", "Yes"),
        "remap_corrected": gpu["remap_corrected"], "remap_uncorrected": gpu["remap_uncorrected"],
        "remap_pending": on("remap_pending", "Yes"), "remap_failure": on("remap_failure", "Yes"),
        "remap_banks": gpu["banks"], "temperature": gpu["temperature"], "temperature_margin": gpu["tlimit"],
        "temperature_memory": gpu["memory_temperature"], "power_draw": round(gpu["draw"] * 1000),
        "power_limit": round(gpu["limit"] * 1000), "power_default": round(gpu["default_limit"] * 1000),
        "power_min": round(gpu["min_limit"] * 1000), "power_max": round(gpu["max_limit"] * 1000),
        "clock_sm": gpu["sm"], "clock_memory": gpu["memory_clock"], "clock_max_sm": gpu["max_sm"],
        "clock_max_memory": gpu["memory_clock"], "supported_sm_clocks": list(range(gpu["max_sm"], 344, -15)),
        "supported_memory_clocks": [gpu["memory_clock"], 1593],
        "event_reasons": hex(sum(_BITS[name] for name in gpu["reasons"])),
        "counter_sw_power_cap": gpu["counters"]["power"] * 1000,
        "counter_sw_thermal": gpu["counters"]["sw_thermal"] * 1000,
        "counter_hw_thermal": gpu["counters"]["hw_thermal"] * 1000,
        "counter_hw_power_brake": gpu["counters"]["brake"] * 1000, "pcie_gen": gpu["gen"], "pcie_gen_max": 5,
        "pcie_gen_device_max": 5, "pcie_width": gpu["width"], "pcie_width_max": 16, "pcie_replays": gpu["replays"],
        "pcie_rollovers": gpu["rollovers"], "nvlink_states": links, "nvlink_speed": 26562, "nvlink_replay": [0] * 18,
        "nvlink_recovery": [0] * 18, "nvlink_crc": [0] * 18, "fabric_state": _STATES.index(gpu["fabric_state"]),
        "fabric_status": 0 if gpu["fabric_status"] == "Success" else 999, "fabric_clique": gpu["clique"],
        "fabric_cluster": gpu["cluster"], "fabric_health": 0, "fabric_summary": 0,
    }  # fmt: skip
