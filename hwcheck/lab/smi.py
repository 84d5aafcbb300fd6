"""
``nvidia-smi -q -x`` of a lab node, from the same state as its NVML: the tags that drivers of branch 580 print.

Longer than a module should be, because it is one document.
"""

from __future__ import annotations

from typing import Any

from hwcheck.lab.devices import Gpu
from hwcheck.lab.gpu_state import attributes
from hwcheck.lab.machine import Machine
from hwcheck.lab.platforms import figures

NA = "N/A"
_ARCHITECTURES = {9: "Hopper", 10: "Blackwell"}
_STATES = ("N/A", "Not Started", "In Progress", "Completed")
_ACTIONS = ("None", "Reset", "Reboot", "Drain P2P", "Drain and Reset")
_COMPUTE = ("Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process")
_REASONS = {
    "gpu_idle": 0x1, "applications_clocks_setting": 0x2, "sw_power_cap": 0x4, "hw_slowdown": 0x8,
    "hw_thermal_slowdown": 0x40, "hw_power_brake_slowdown": 0x80, "sync_boost": 0x10, "sw_thermal_slowdown": 0x20,
    "display_clocks_setting": 0x100,
}  # fmt: skip
_BANKS = ("max", "high", "partial", "low", "none")
_ATOMICS = "FETCHADD_32 FETCHADD_64 SWAP_32 SWAP_64 CAS_32 CAS_64 "

Node = dict[str, Any]
"""Tag → text, a node, or a list of those for a tag that stands several times."""


def query_xml(machine: Machine) -> str:
    """Print the whole document."""
    head = [
        '<?xml version="1.0" ?>', '<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v13.dtd">', "<nvidia_smi_log>",
        "\t<timestamp>Mon Jun  1 09:15:02 2026</timestamp>", f"\t<driver_version>{machine.driver}</driver_version>",
        f"\t<cuda_version>{machine.cuda}</cuda_version>", f"\t<attached_gpus>{len(machine.gpus)}</attached_gpus>",
    ]  # fmt: skip
    body: list[str] = []
    for gpu in machine.gpus:
        body += [f'\t<gpu id="{gpu.bus_id}">', *_print(_gpu(gpu, machine), 2), "\t</gpu>"]
    return "\n".join([*head, *body, "</nvidia_smi_log>"]) + "\n"


def _print(tree: Node, depth: int) -> list[str]:
    pad, lines = "\t" * depth, []
    for tag, value in tree.items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict):
                lines += [f"{pad}<{tag}>", *_print(one, depth + 1), f"{pad}</{tag}>"]
            else:
                lines.append(f"{pad}<{tag}>{one}</{tag}>")
    return lines


def _gpu(gpu: Gpu, machine: Machine) -> Node:
    state, printed = attributes(gpu, machine), figures(machine.platform)["printed"]
    tree: Node = {}
    for part in (_identity, _pci, _activity, _memory, _health, _heat, _power, _clocks, _fabric):
        tree |= part(state, printed)
    return tree


def _on(state: Node, key: str, yes: str = "Enabled", no: str = "Disabled") -> str:
    return yes if int(state.get(key, 0)) else no


def _mib(state: Node, key: str) -> int:
    return int(state.get(key, 0)) >> 20


def _identity(state: Node, printed: Node) -> Node:
    return {
        "product_name": state["name"], "product_brand": "NVIDIA",
        "product_architecture": _ARCHITECTURES[state["architecture"]],
        "display_mode": "Requested functionality has been deprecated", "display_attached": "No",
        "display_active": "Disabled", "persistence_mode": _on(state, "persistence"),
        "addressing_mode": ("None", "HMM", "ATS")[state["addressing_mode"]],
        "mig_mode": {"current_mig": _on(state, "mig_mode"), "pending_mig": _on(state, "mig_pending")},
        "mig_devices": "None", "accounting_mode": "Disabled", "accounting_mode_buffer_size": "4000",
        "driver_model": {"current_dm": NA, "pending_dm": NA}, "serial": state["serial"], "uuid": state["uuid"],
        "pdi": f"0x{int(state['serial']):016x}", "minor_number": state["minor"], "vbios_version": state["vbios"],
        "multigpu_board": "No", "board_id": "0x" + state["pci_bus_id"][9:11].lower() + "00",
        "board_part_number": state["part_number"], "gpu_part_number": printed["gpu_part"], "gpu_fru_part_number": NA,
        "platformInfo": _platform(state),
        "inforom_version": {
            "img_version": state["inforom"], "oem_object": "2.1", "ecc_object": "7.16", "pwr_object": NA,
        },
        "inforom_bbx_flush": {"latest_timestamp": NA, "latest_duration": NA},
        "gpu_operation_mode": {"current_gom": NA, "pending_gom": NA}, "c2c_mode": _on(state, "c2c_mode"),
        "gpu_virtualization_mode": {
            "virtualization_mode": ("None", "Pass-Through")[state["virtualization_mode"]], "host_vgpu_mode": NA,
            "vgpu_heterogeneous_mode": NA,
        },
        "gpu_recovery_action": _ACTIONS[state["recovery_action"]], "gsp_firmware_version": state["gsp_firmware"],
        "ibmnpu": {"relaxed_ordering_mode": NA},
    }  # fmt: skip


def _platform(state: Node) -> Node:
    known = "platform_host" in state
    return {
        "chassis_serial_number": state.get("platform_chassis_serial", "" if known else NA),
        "slot_number": state.get("platform_slot", NA), "tray_index": state.get("platform_tray", NA),
        "host_id": state.get("platform_host", NA), "peer_type": "Switch Connected" if known else NA,
        "module_id": state["module_id"], "gpu_fabric_guid": f"0x{int(state['serial']):016x}" if known else NA,
    }  # fmt: skip


def _pci(state: Node, printed: Node) -> Node:
    domain, bus, device = state["pci_bus_id"].partition(".")[0].split(":")
    atomics = _ATOMICS if printed.get("atomics") else NA
    generation = {
        "max_link_gen": state["pcie_gen_max"], "current_link_gen": state["pcie_gen"],
        "device_current_link_gen": state["pcie_gen"], "max_device_link_gen": state["pcie_gen_device_max"],
        "max_host_link_gen": NA,
    }  # fmt: skip
    width = {"max_link_width": f"{state['pcie_width_max']}x", "current_link_width": f"{state['pcie_width']}x"}
    return {"pci": {
        "pci_bus": bus, "pci_device": device, "pci_domain": domain[4:], "pci_base_class": 3, "pci_sub_class": 2,
        "pci_device_id": state["pci_device_id"][2:], "pci_bus_id": state["pci_bus_id"],
        "pci_sub_system_id": state["pci_subsystem_id"][2:],
        "pci_gpu_link_info": {"pcie_gen": generation, "link_widths": width},
        "pci_bridge_chip": {"bridge_chip_type": NA, "bridge_chip_fw": NA}, "replay_counter": state["pcie_replays"],
        "replay_rollover_counter": state["pcie_rollovers"], "tx_util": "502 KB/s", "rx_util": "578 KB/s",
        "atomic_caps_outbound": atomics, "atomic_caps_inbound": atomics,
    }}  # fmt: skip


def _activity(state: Node, printed: Node) -> Node:
    mask = int(state["event_reasons"], 16)
    idle = {"session_count": 0, "average_fps": 0, "average_latency": 0}
    counters = {
        "sw_power_cap": "counter_sw_power_cap", "sync_boost": "", "sw_therm_slowdown": "counter_sw_thermal",
        "hw_therm_slowdown": "counter_hw_thermal", "hw_power_brake": "counter_hw_power_brake",
    }  # fmt: skip
    return {
        "fan_speed": NA, "performance_state": f"P{state['performance_state']}",
        "clocks_event_reasons": {
            f"clocks_event_reason_{name}": "Active" if mask & bit else "Not Active" for name, bit in _REASONS.items()
        },
        "clocks_event_reasons_counters": {
            f"clocks_event_reasons_counters_{name}": f"{int(state.get(key, 0)) // 1000} us"
            for name, key in counters.items()
        },
        "sparse_operation_mode": printed.get("sparse", "Disabled"),
        "compute_mode": _COMPUTE[state["compute_mode"]],
        "utilization": {
            "gpu_util": f"{state['utilization']} %",
            **{f"{name}_util": "0 %" for name in ("memory", "encoder", "decoder", "jpeg", "ofa")},
        },
        "encoder_stats": idle, "fbc_stats": idle,
    }  # fmt: skip


def _memory(state: Node, _: Node) -> Node:
    total, reserved, used = (_mib(state, f"memory_{name}") for name in ("total", "reserved", "used"))
    return {
        "fb_memory_usage": {
            "total": f"{total} MiB", "reserved": f"{reserved} MiB", "used": f"{used} MiB",
            "free": f"{total - reserved - used} MiB",
        },
        "bar1_memory_usage": {
            "total": f"{_mib(state, 'bar1_total')} MiB", "used": "1 MiB",
            "free": f"{_mib(state, 'bar1_total') - 1} MiB",
        },
        "cc_protected_memory_usage": {"total": "0 MiB", "used": "0 MiB", "free": "0 MiB"},
        "dram_encryption_mode": {"current_dram_encryption": NA, "pending_dram_encryption": NA},
    }  # fmt: skip


def _health(state: Node, printed: Node) -> Node:
    def counts(age: str) -> Node:
        return {
            "sram_correctable": state[f"ecc_{age}_sram_corrected"],
            "sram_uncorrectable_parity": state[f"ecc_{age}_sram_parity"],
            "sram_uncorrectable_secded": state[f"ecc_{age}_sram_secded"],
            "dram_correctable": state[f"ecc_{age}_dram_corrected"],
            "dram_uncorrectable": state[f"ecc_{age}_dram_uncorrected"],
        }

    def yes(key: str) -> str:
        return _on(state, key, "Yes", "No")

    later = printed.get("later", False)
    errors = {
        "volatile": counts("volatile"),
        "aggregate": counts("aggregate") | {"sram_threshold_exceeded": yes("ecc_sram_threshold")},
        "aggregate_uncorrectable_sram_sources": {
            f"sram_{place}": 0 for place in ("l2", "sm", "microcontroller", "pcie", "other")
        },
        "channel_repair_pending": yes("repair_channel_pending"), "tpc_repair_pending": yes("repair_tpc_pending"),
    } | ({"unrepairable_memory": yes("unrepairable")} if later else {})  # fmt: skip
    banks = {
        f"row_remapper_histogram_{name}": f"{count} bank(s)"
        for name, count in zip(_BANKS, state["remap_banks"], strict=True)
    }
    retired = {"retired_count": NA, "retired_pagelist": NA}
    inactive = {"remapped_row_corr_inactive": 0, "remapped_row_unc_inactive": 0} if later else {}
    return {
        "ecc_mode": {"current_ecc": _on(state, "ecc_mode"), "pending_ecc": _on(state, "ecc_pending")},
        "ecc_errors": errors,
        "retired_pages": {
            "multiple_single_bit_retirement": retired, "double_bit_retirement": retired, "pending_blacklist": NA,
            "pending_retirement": NA,
        },
        "remapped_rows": {
            "remapped_row_corr": state["remap_corrected"], "remapped_row_unc": state["remap_uncorrected"], **inactive,
            "remapped_row_pending": yes("remap_pending"), "remapped_row_failure": yes("remap_failure"),
            "row_remapper_histogram": banks,
        },
    }  # fmt: skip


def _heat(state: Node, printed: Node) -> Node:
    shutdown, slowdown, operating = printed["limits"]
    return {
        "temperature": {
            "gpu_temp": f"{state['temperature']} C", "gpu_temp_tlimit": f"{state['temperature_margin']} C",
            "gpu_temp_max_tlimit_threshold": f"{shutdown} C", "gpu_temp_slow_tlimit_threshold": f"{slowdown} C",
            "gpu_temp_max_gpu_tlimit_threshold": f"{operating} C", "gpu_target_temperature": NA,
            "memory_temp": f"{state['temperature_memory']} C", "gpu_temp_max_mem_tlimit_threshold": "0 C",
        },
        "supported_gpu_target_temp": {"gpu_target_temp_min": NA, "gpu_target_temp_max": NA},
    }  # fmt: skip


def _power(state: Node, printed: Node) -> Node:
    def watts(key: str) -> str:
        return f"{int(state[key]) / 1000:.2f} W"

    draw, module = watts("power_draw"), printed.get("module")
    of_module = dict.fromkeys(("average", "instant", "min", "max"), NA) | {
        name: f"{value} W" for name, value in (module or {}).items()
    }
    limits = [watts("module_power_limit")] * 2 + [watts("module_power_default")] if module else [NA] * 3
    return {
        "gpu_power_readings": {
            "power_state": "P0", "average_power_draw": draw, "instant_power_draw": draw,
            "current_power_limit": watts("power_enforced" if "power_enforced" in state else "power_limit"),
            "requested_power_limit": watts("power_limit"), "default_power_limit": watts("power_default"),
            "min_power_limit": watts("power_min"), "max_power_limit": watts("power_max"),
        },
        "gpu_memory_power_readings": {"average_power_draw": f"{printed['memory_watts']} W", "instant_power_draw": NA},
        "module_power_readings": {
            "power_state": "P0", "average_power_draw": of_module["average"], "instant_power_draw": of_module["instant"],
            "current_power_limit": limits[0], "requested_power_limit": limits[1], "default_power_limit": limits[2],
            "min_power_limit": of_module["min"], "max_power_limit": of_module["max"],
        },
        "power_smoothing": printed.get("smoothing", NA),
        "power_profiles": {"power_profile_requested_profiles": NA, "power_profile_enforced_profiles": NA},
    }  # fmt: skip


def _clocks(state: Node, printed: Node) -> Node:
    low, high = printed["video"]
    locked = str(state.get("locked_sm_clocks", "")).split()
    sm = min(max(int(state["clock_sm"]), int(locked[0])), int(locked[-1])) if locked else int(state["clock_sm"])
    memory, top, memory_top = (int(state[key]) for key in ("clock_memory", "clock_max_sm", "clock_max_memory"))
    pair = {"graphics_clock": f"{state['clock_application']} MHz", "mem_clock": f"{memory} MHz"}
    values = [f"{clock} MHz" for clock in state["supported_sm_clocks"]]
    return {
        "clocks": {
            "graphics_clock": f"{sm} MHz", "sm_clock": f"{sm} MHz", "mem_clock": f"{memory} MHz",
            "video_clock": f"{low} MHz",
        },
        "applications_clocks": pair,
        "default_applications_clocks": pair | {"graphics_clock": f"{state['clock_application_default']} MHz"},
        "deferred_clocks": {"mem_clock": NA},
        "max_clocks": {
            "graphics_clock": f"{top} MHz", "sm_clock": f"{top} MHz", "mem_clock": f"{memory_top} MHz",
            "video_clock": f"{high} MHz",
        },
        "max_customer_boost_clocks": {"graphics_clock": f"{top} MHz"},
        "clock_policy": {"auto_boost": NA, "auto_boost_default": NA},
        "supported_clocks": {"supported_mem_clock": [
            {"value": f"{clock} MHz", "supported_graphics_clock": values} for clock in state["supported_memory_clocks"]
        ]},
    }  # fmt: skip


def _fabric(state: Node, printed: Node) -> Node:
    done = state["fabric_state"] == 3
    healthy = ("N/A", "Healthy", "Unhealthy", "Limited Capacity")[state["fabric_summary"]]
    health = dict.fromkeys(
        (
            "bandwidth",
            "route_recovery_in_progress",
            "route_unhealthy",
            "access_timeout_recovery",
            "incorrect_configuration",
        ),
        NA,
    ) | printed.get("fabric_health", {})
    if healthy == "Unhealthy" and health["bandwidth"] == "Full":
        health["bandwidth"] = "Degraded"
    fabric = {
        "state": _STATES[state["fabric_state"]],
        "status": ("Success" if not state["fabric_status"] else "Unknown Error") if done else NA,
        "cliqueId": state["fabric_clique"], "clusterUuid": state["fabric_cluster"],
        "health": {"summary": healthy, **health},
    }  # fmt: skip
    if printed.get("later"):
        fabric["health"]["partition_assigned"] = NA
    processes = [
        {
            "gpu_instance_id": NA,
            "compute_instance_id": NA,
            "pid": pid,
            "type": "C",
            "process_name": "python3",
            "used_memory": NA,
        }
        for pid in state.get("processes", ())
    ]
    return {
        "fabric": fabric, "processes": {"process_info": processes} if processes else "", "accounted_processes": "",
        "capabilities": {"egm": "disabled"},
    }  # fmt: skip
