"""Faults of a GPU: gone, to be reset, throttled, locked, switched to another mode, held by somebody."""

from __future__ import annotations

from hwcheck.lab.devices import Gpu
from hwcheck.lab.faults import fault
from hwcheck.lab.machine import Machine, Process
from hwcheck.lab.platforms import PERSISTENCED

_HW_SLOWDOWN, _HW_THERMAL, _BRAKE, _SW_THERMAL = 0x8, 0x40, 0x80, 0x20


def xid(machine: Machine, gpu: Gpu, code: int, text: str) -> None:
    """Let the driver log an Xid of a GPU."""
    machine.say(f"NVRM: Xid (PCI:{gpu.address[:-2]}): {code}, {text}")


def lose(machine: Machine, gpu: Gpu) -> None:
    """Take a GPU off the bus: NVML and its registers say so."""
    machine.nvml_faults[f"gpu{gpu.index}/lost"] = "1"
    machine.functions[gpu.address].lost = True


@fault("xid.79", also=("pcie.device_lost", "gpu.access"), part=3, fix="act", how="reboot")
def gpu_lost(machine: Machine, part: int) -> None:
    """A GPU fell off the bus (Xid 79)."""
    gpu = machine.gpus[part]
    machine.say(f"NVRM: GPU at PCI:{gpu.address[:-2]}: {gpu.state['uuid']}")
    xid(machine, gpu, 79, "pid='<unknown>', name=<unknown>, GPU has fallen off the bus.")
    machine.say(f"NVRM: GPU {gpu.address}: GPU has fallen off the bus.")
    lose(machine, gpu)


@fault("gpu.count", also=("pcie",), part=2, stays=True)
def gpu_missing(machine: Machine, part: int) -> None:
    """A GPU did not come up on the PCIe bus at boot."""
    gpu = machine.gpus.pop(part)
    del machine.functions[gpu.address]
    for index, other in enumerate(machine.gpus):
        other.index = other.state["minor"] = index


@fault("gpu.access", "gpu.recovery_action", part=2, library=True, fix="act", how="reset the GPUs")
def gpu_needs_reset(machine: Machine, part: int) -> None:
    """A GPU answers that it needs a reset."""
    gpu = machine.gpus[part]
    gpu.state["recovery_action"] = 1
    machine.nvml_faults[f"gpu{gpu.index}/needs_reset"] = "1"


@fault("xid.119", part=1, fix="act", how="reset the GPUs")
def gsp_timeout(machine: Machine, part: int) -> None:
    """The GPU's firmware stops answering (Xid 119)."""
    gpu = machine.gpus[part]
    xid(
        machine,
        gpu,
        119,
        "pid=4711, name=python3, Timeout after 6s of waiting for RPC response from GPU1 GSP! "
        "Expected function 76 (GSP_RM_CONTROL) (0x20800a4c 0x4).",
    )
    gpu.state["recovery_action"] = 1
    xid(machine, gpu, 154, "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)")


@fault("hbm.remap_pending", "xid.94", part=2, fix="act", how="reset the GPUs")
def contained_memory_error(machine: Machine, part: int) -> None:
    """An uncorrectable memory error, contained to one job (Xid 94): a row remap waits for a reset."""
    gpu = machine.gpus[part]
    xid(machine, gpu, 94, "pid=4711, name=python3, Contained: CE User Channel (0x9). RST: No, D-RST: No")
    gpu.state.update(
        remap_uncorrected=1, remap_pending=1, ecc_volatile_dram_uncorrected=1, ecc_aggregate_dram_uncorrected=1,
    )  # fmt: skip


@fault("gpu.persistence", stays=True, fix="write", how="unit_property, gpu")
def persistence_off(machine: Machine, part: int) -> None:
    """Persistence mode is off on every GPU: its daemon was told so, as in some distributions."""
    del part
    machine.services["nvidia-persistenced"].command = f"{PERSISTENCED} --no-persistence-mode --verbose"
    for gpu in machine.gpus:
        gpu.state["persistence"] = 0


@fault("gpu.mig", part=0, stays=True)
def mig_on(machine: Machine, part: int) -> None:
    """MIG mode was left on by a tenant."""
    machine.gpus[part].state.update(mig_mode=1, mig_pending=1)


@fault("gpu.compute_mode", part=1, fix="act", how="reload the driver")
def compute_prohibited(machine: Machine, part: int) -> None:
    """The compute mode of a GPU forbids contexts."""
    machine.gpus[part].state["compute_mode"] = 2


@fault("clocks.lock", part=0, fix="write", how="gpu", figures=("hbm.copy",))
def clock_lock(machine: Machine, part: int) -> None:
    """A benchmark left a lock of the SM clock on every GPU."""
    del part
    for gpu in machine.gpus:
        gpu.state["locked_sm_clocks"] = "1200 1200"


@fault("power.limit", part=3, fix="write", how="gpu")
def power_cap(machine: Machine, part: int) -> None:
    """The power limit of a GPU was left at 500 W."""
    machine.gpus[part].state["power_limit"] = 500_000


@fault("power.brake", "power.brake_scope", figures=("hbm.copy",))
def power_brake(machine: Machine, part: int) -> None:
    """The platform holds the power brake on all GPUs."""
    del part
    for gpu in machine.gpus:
        gpu.state.update(event_reasons=hex(_HW_SLOWDOWN | _BRAKE), counter_hw_power_brake=8_000_000_000, utilization=90)


@fault("thermal.hw_slowdown", "thermal.slowdown", "thermal.tlimit", part=1, figures=("hbm.copy",))
def gpu_overheats(machine: Machine, part: int) -> None:
    """A GPU gets too hot and slows itself down."""
    gpu = machine.gpus[part]
    gpu.state.update(
        event_reasons=hex(_HW_SLOWDOWN | _HW_THERMAL | _SW_THERMAL), temperature=89, temperature_margin=-3,
        counter_hw_thermal=90_000_000_000, counter_sw_thermal=400_000_000_000, utilization=95,
    )  # fmt: skip


@fault(told=("process.holders",), part=0)
def leftover_process(machine: Machine, part: int) -> None:
    """A process of a job that is gone still holds a GPU. Told, never judged: only the scheduler knows whose it is."""
    gpu = machine.gpus[part]
    machine.processes.append(Process(4711, "python3", parent=1, devices=(f"/dev/nvidia{gpu.index}",)))
    gpu.state.update(processes=[4711], memory_used=61 << 30)


@fault("process.hung", part=2, fix="act", how="reboot")
def hung_process(machine: Machine, part: int) -> None:
    """A process hangs in the GPU driver, in state D."""
    device = f"/dev/nvidia{machine.gpus[part].index}"
    stack = ("rwsem_down_write_slowpath", "os_acquire_rwlock_write", "nvidia_ioctl")
    machine.processes.append(Process(4711, "python3", "D", devices=(device,), stack=stack))
