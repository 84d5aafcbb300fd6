"""Faults of performance: a status may look healthy, a measurement does not."""

from __future__ import annotations

from hwcheck.lab.faults import HGX, HOPPER, fault
from hwcheck.lab.machine import Machine, Process

_HALF, _THIRD = "8 5", "16 3"  # lanes and generation that a weak link has left


@fault("baseline", "pcie.gpu_width", "pcie.link", part=4, on=HGX, stays=True, load=True, figures=("h2d", "d2h"))
def gpu_link_narrows(machine: Machine, part: int) -> None:
    """The PCIe link of a GPU is weak: under load it falls to 8 lanes, and stays there."""
    machine.gpus[part].state["retrains"] = _HALF


@fault("baseline", "pcie.gpu_speed", "pcie.link", part=6, on=HGX, stays=True, load=True, figures=("h2d", "d2h"))
def gpu_link_slows(machine: Machine, part: int) -> None:
    """The PCIe link of a GPU is weak: under load it falls to Gen3, and stays there."""
    machine.gpus[part].state["retrains"] = _THIRD


@fault("baseline", "clocks", part=5, on=HGX, load=True, figures=("hbm.copy",), fix="write", how="gpu")
def slow_hbm(machine: Machine, part: int) -> None:
    """A benchmark left a lock of the memory clock of a GPU at its lowest."""
    state = machine.gpus[part].state
    state["locked_memory_clocks"] = [state["supported_memory_clocks"][-1]] * 2


@fault("power.limit", "power", part=1, on=HGX, figures=("hbm.copy",))
def power_throttled(machine: Machine, part: int) -> None:
    """The platform holds a GPU at 300 W, below the limit that it shows as asked for: under load its clocks fall."""
    machine.gpus[part].state["power_enforced"] = 300_000


@fault("nvlink.active", "nvlink.uniform", part=3, on=HOPPER, stays=True, figures=("p2p",))
def nvlinks_off(machine: Machine, part: int) -> None:
    """No NVLink of a GPU is up: its peers reach it over PCIe."""
    state = machine.gpus[part].state
    state["nvlink_states"] = [0] * len(state["nvlink_states"])


@fault("baseline", load=True, figures=("launch", "copy.small"))
def busy_agent(machine: Machine, part: int) -> None:
    """An agent runs wild on two CPUs, and takes them from what starts kernels now and then."""
    del part
    for number in range(2):
        machine.processes.append(Process(5200 + number, "osqueryd", "R", started=900_000 + number))


@fault("baseline", on=HGX, stays=True, load=True, figures=("h2d", "d2h"))
def cpus_confined(machine: Machine, part: int) -> None:
    """A drop-in keeps all sessions on the CPUs of the first socket: who uses a GPU of the other one is far from it."""
    del part
    near = machine.processor.cpus_of(0)
    machine.files["/etc/systemd/system/user.slice.d/50-cpus.conf"] = f"[Slice]\nAllowedCPUs={near}\n"
    machine.files["/sys/fs/cgroup/user.slice/cpuset.cpus.effective"] = near + "\n"
