"""Faults of memory: HBM of a GPU, and the memory of the host."""

from __future__ import annotations

from hwcheck.lab.faults import fault
from hwcheck.lab.machine import Machine


@fault("hbm.remap_pending", part=3, fix="act", how="reset the GPUs")
def remap_pending(machine: Machine, part: int) -> None:
    """A row of HBM waits for a reset to be remapped."""
    machine.gpus[part].state.update(remap_uncorrected=1, remap_pending=1)


@fault("hbm.remap_failure", part=1, stays=True)
def remap_failed(machine: Machine, part: int) -> None:
    """A row of HBM could not be remapped: no spare row was left in its bank."""
    state = machine.gpus[part].state
    most = state["remap_banks"][0]
    state.update(remap_uncorrected=8, remap_failure=1, remap_banks=[most - 1, 0, 0, 0, 1])


@fault("hbm", part=2)
def ecc_burst(machine: Machine, part: int) -> None:
    """A burst of uncorrectable errors of HBM since the driver was loaded."""
    machine.gpus[part].state.update(ecc_volatile_dram_uncorrected=37, ecc_aggregate_dram_uncorrected=37)


@fault("hbm", part=0, stays=True)
def sram_threshold(machine: Machine, part: int) -> None:
    """A GPU has had more uncorrectable errors of SRAM than it may."""
    machine.gpus[part].state.update(ecc_sram_threshold=1, ecc_aggregate_sram_secded=9)


@fault("hbm.channel_repair", part=2, fix="act", how="reset the GPUs")
def channel_repair(machine: Machine, part: int) -> None:
    """A repair of an HBM channel waits for a reset."""
    machine.gpus[part].state["repair_channel_pending"] = 1


@fault("hbm.banks", "hbm.total", also=("hbm.bus_width",), part=1, stays=True, figures=("hbm.copy",))
def hbm_missing(machine: Machine, part: int) -> None:
    """A stack of HBM is switched off: fewer banks and less memory than the board has."""
    state = machine.gpus[part].state
    banks = state["remap_banks"][0]
    state["remap_banks"] = [banks - 512, 0, 0, 0, 0]
    state["memory_total"] = state["memory_total"] * (banks - 512) // banks
    state["memory_bus_width"] -= 1024


@fault("gpu.ecc_mode", part=0, stays=True)
def ecc_off(machine: Machine, part: int) -> None:
    """ECC is switched off."""
    machine.gpus[part].state.update(ecc_mode=0, ecc_pending=0)


@fault("memory.uncorrected", part=1)
def dimm_uncorrected(machine: Machine, part: int) -> None:
    """A memory controller of the host counted uncorrectable errors."""
    machine.edac[part] = (3, 2)
    machine.say(
        f"EDAC MC{part}: 2 UE memory read error on CPU_SrcID#{part}_MC#0_Chan#0_DIMM#0 (channel:0 slot:0 page:0x1234)"
    )


@fault("memory.corrected", part=0)
def dimm_corrected(machine: Machine, part: int) -> None:
    """A memory module of the host corrects errors all the time."""
    machine.edac[part] = (41_000, 0)


@fault("numa.memory", "memory.total", part=1, stays=True)
def dimm_missing(machine: Machine, part: int) -> None:
    """Memory modules of one socket are not seen."""
    machine.memory[part] = machine.memory[part] * 3 // 4
