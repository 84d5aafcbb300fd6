"""Faults of the driver set: not loaded, of several versions, NVML that hangs."""

from __future__ import annotations

from hwcheck.lab.faults import fault
from hwcheck.lab.machine import Machine

_OLDER, _NEWER = "580.95.05", "580.126.09"


@fault("driver.loaded", also=("driver", "gpu", "rdma.gpudirect"), fix="act", how="load the driver")
def driver_not_loaded(machine: Machine, part: int) -> None:
    """The NVIDIA kernel module is not loaded."""
    del part
    for name in [name for name in machine.kernel.modules if name.startswith("nvidia")]:
        del machine.kernel.modules[name]
    for function in machine.functions.values():
        if function.driver == "nvidia":
            function.driver = ""
    machine.nvml_faults["faults/nvmlInit_v2"] = "NVML_ERROR_DRIVER_NOT_LOADED"
    machine.slow_tools.discard("nvidia-smi")


@fault("driver.library", "driver.libraries", also=("driver",), stays=False, fix="act", how="reload the driver")
def library_mismatch(machine: Machine, part: int) -> None:
    """The driver's libraries were upgraded, the old module is still loaded."""
    del part
    machine.libraries = _NEWER
    for name in machine.packages:
        if machine.driver in machine.packages[name]:
            machine.packages[name] = machine.packages[name].replace(machine.driver, _NEWER)
    machine.kernel.module_files = dict.fromkeys(machine.kernel.module_files, _NEWER)
    machine.versions = dict.fromkeys(machine.versions, _NEWER)
    machine.nvml_faults["faults/nvmlInit_v2"] = "NVML_ERROR_LIB_RM_VERSION_MISMATCH"
    machine.say(
        f"NVRM: API mismatch: the client 'nvidia-smi' (pid 4711)\n has the version {_NEWER}, "
        f"but this kernel module has the version {machine.driver}."
    )


@fault("driver.next_boot", "driver.next_load", stays=True)
def stale_module(machine: Machine, part: int) -> None:
    """The module file on disk is of another version than the loaded module: the next load changes the driver."""
    del part
    machine.kernel.module_files = dict.fromkeys(machine.kernel.module_files, _OLDER)


@fault("evidence.complete", hangs=True, fix="act", how="reboot")
def nvml_hangs(machine: Machine, part: int) -> None:
    """NVML and nvidia-smi never return."""
    del part
    machine.nvml_faults["hang"] = "1"
    machine.slow_tools.add("nvidia-smi")


@fault("evidence.complete", hangs=True, library=True, fix="act", how="reboot")
def nvml_hangs_hard(machine: Machine, part: int) -> None:
    """NVML never returns, and what asked it ignores signals and holds its pipe."""
    del part
    machine.nvml_faults["hang_hard"] = "30"


@fault("evidence.complete", hangs=True, library=True, part=3, fix="act", how="reboot")
def gpu_hangs(machine: Machine, part: int) -> None:
    """One GPU does not answer NVML; those before it do."""
    machine.nvml_faults[f"gpu{machine.gpus[part].index}/hang"] = "1"
