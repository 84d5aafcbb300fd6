"""
What the NVIDIA driver knows of GPUs only while it is loaded, and the part of ``nvidia-smi`` that sets it.

Sources: nvidia-smi(1): clock locks, power limit, persistence and application clocks are not kept over a reload of the
driver; a reset clears what waits for one (row remaps, repairs, MIG and ECC modes), and on an HGX board with NVSwitches
takes all GPUs at once; it is refused while a process has one open.
"""

from __future__ import annotations

import os

from hwcheck.lab.actor import process
from hwcheck.lab.actor.place import Node, ToolError, say

_NOT_LOADED = "NVML_ERROR_DRIVER_NOT_LOADED"
_LOADS = "faults/nvmlInit_v2"
_DROPPED = ("locked_sm_clocks", "locked_memory_clocks", "power_enforced", "processes")
_RESET = {
    "persistence": "0", "compute_mode": "0", "event_reasons": "0x1", "recovery_action": "0", "reset_required": "0",
    "drain_recommended": "0", "remap_pending": "0", "repair_channel_pending": "0", "repair_tpc_pending": "0",
    "utilization": "0", "memory_used": "0", "counter_hw_power_brake": "0", "counter_hw_thermal": "0",
    "counter_sw_thermal": "0", "pcie_replays": "0",
}  # fmt: skip
_COPIED = {
    "power_limit": "power_default", "clock_application": "clock_application_default", "mig_mode": "mig_pending",
    "ecc_mode": "ecc_pending", "module_power_limit": "module_power_default",
}  # fmt: skip
_HGX_BOARD = "nvidia-fabricmanager.service"


def forget(node: Node, gpu: int) -> None:
    """Let a GPU have what it has after a load of its driver."""
    here = f"gpu{gpu}"
    for name in _DROPPED:
        node.set_nvml(f"{here}/{name}", None)
    for name, value in _RESET.items():
        if node.nvml(f"{here}/{name}"):
            node.set_nvml(f"{here}/{name}", value)
    for name, source in _COPIED.items():
        if node.nvml(f"{here}/{name}") and node.nvml(f"{here}/{source}"):
            node.set_nvml(f"{here}/{name}", node.nvml(f"{here}/{source}"))
    for name in os.listdir(f"{node.folder}/nvml/{here}"):
        if name.startswith("ecc_volatile_"):
            node.set_nvml(f"{here}/{name}", "0")
    node.set_nvml(f"{here}/needs_reset", None)


def driver_loads(node: Node, version: str) -> None:
    """Let NVML find its driver, of the version of its file; all GPUs begin anew."""
    for gpu in node.gpus():
        forget(node, gpu)
        if version:
            node.set_nvml(f"gpu{gpu}/gsp_firmware", version)
        if node.live(f"daemons/{_HGX_BOARD}"):
            node.set_nvml(f"gpu{gpu}/fabric_state", "2")
    if node.nvml(_LOADS) in (_NOT_LOADED, "NVML_ERROR_LIB_RM_VERSION_MISMATCH"):
        node.set_nvml(_LOADS, None)
    if version:
        node.set_nvml("driver_version", version)
    driver = node.live("lab").get("arch", "x86_64")
    node.put(
        "/proc/driver/nvidia/version",
        f"NVRM version: NVIDIA UNIX Open Kernel Module for {driver}  {version}  Release Build  (lab@lab)\n"
        "GCC version:  gcc version 13.3.0 (Ubuntu 13.3.0-6ubuntu2~24.04)\n",
    )
    params = node.live("lab").get("params", "")
    if params:
        node.put("/proc/driver/nvidia/params", params.replace("\\n", "\n"))


def driver_goes(node: Node) -> None:
    """Let NVML say that there is no driver."""
    node.set_nvml(_LOADS, _NOT_LOADED)
    node.remove("/proc/driver/nvidia")


def reset(node: Node, chosen: list[int]) -> None:
    """
    Reset GPUs.

    Raises:
        ToolError: somebody has one open, or only some of a board were chosen.
    """
    held = process.holders(node, "/dev/nvidia")
    busy = [node.nvml(f"gpu{gpu}/pci_bus_id") for gpu in chosen if node.nvml(f"gpu{gpu}/processes") or held]
    if node.live(f"units/{_HGX_BOARD}").get("ActiveState") == "active":
        busy = [node.nvml(f"gpu{gpu}/pci_bus_id") for gpu in chosen]
    if busy:
        rows = "\n".join(f"GPU {address} is currently in use by one or more other processes (e.g., Fabric Manager, "
                         "CUDA application, graphics application such as an X server, or a monitoring application)."
                         for address in busy)  # fmt: skip
        raise ToolError(
            f"The following GPUs could not be reset:\n{rows}\n1 device is currently being used by a process."
        )
    if node.live(f"daemons/{_HGX_BOARD}") and len(chosen) != len(node.gpus()):
        raise ToolError("GPUs joined by NVLink must be reset together: all of the board, or none.")
    for gpu in chosen:
        forget(node, gpu)
        if node.live(f"daemons/{_HGX_BOARD}"):
            node.set_nvml(f"gpu{gpu}/fabric_state", "2")
        say(f"GPU {node.nvml(f'gpu{gpu}/pci_bus_id')} was successfully reset.")
    say("All done.")
