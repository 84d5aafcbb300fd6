"""The GPUs of a lab node as attributes of the lab's NVML; what the PCIe link says comes from the link itself."""

from __future__ import annotations

from typing import Any

from hwcheck.lab.devices import Gpu
from hwcheck.lab.machine import Machine


def nvml_state(machine: Machine) -> dict[str, Any]:
    """Return what :func:`hwcheck.lab.nvml.attributes.write_state` takes."""
    major, minor = machine.cuda.split(".")
    names = {process.pid: process.name for process in machine.processes}
    holders = sorted({pid for gpu in machine.gpus for pid in gpu.state.get("processes", ())})
    state: dict[str, Any] = {
        "driver_version": machine.driver, "nvml_version": f"{major}.{machine.driver}",
        "cuda_version": int(major) * 1000 + int(minor) * 10,
        "gpus": [attributes(gpu, machine) for gpu in machine.gpus],
    }  # fmt: skip
    if holders:
        state["process_name"] = "\n".join(f"{pid} {names.get(pid, 'python3')}" for pid in holders)
    return state


def attributes(gpu: Gpu, machine: Machine) -> dict[str, Any]:
    """Return the attributes of one GPU, those of its link among them."""
    link = machine.functions[gpu.address]
    return {**gpu.state, "pci_bus_id": gpu.bus_id, "pcie_gen": link.speed, "pcie_width": link.width}
