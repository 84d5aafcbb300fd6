"""Faults of what joins GPUs: NVLink, NVSwitch, fabric manager, IMEX, chip-to-chip links."""

from __future__ import annotations

from hwcheck.lab.faults import HGX, HOPPER, TRAYS, fault
from hwcheck.lab.faults_gpu import xid
from hwcheck.lab.machine import Machine

_IN_PROGRESS, _NOT_STARTED, _COMPLETED = 2, 1, 3
_UNHEALTHY = 2
_DEGRADED_MASK = "0x1A9"


@fault("nvlink.active", "nvlink.uniform", part=2, stays=True, figures=("p2p",))
def nvlinks_dead(machine: Machine, part: int) -> None:
    """Two NVLinks of a GPU are down."""
    state = machine.gpus[part].state
    state["nvlink_states"] = [0, 0, *state["nvlink_states"][2:]]


@fault("nvlink.errors", on=HOPPER, part=2)
def nvlink_errors(machine: Machine, part: int) -> None:
    """A link of a GPU had to recover many times."""
    state = machine.gpus[part].state
    state["nvlink_recovery"] = [0, 11, *state["nvlink_recovery"][2:]]
    state["nvlink_crc"] = [0, 90210, *state["nvlink_crc"][2:]]


@fault("xid.74", on=HOPPER, part=2, fix="act", how="reboot", figures=("p2p",))
def nvlink_fatal(machine: Machine, part: int) -> None:
    """A fatal error of an NVLink (Xid 74), and the link stays down."""
    gpu = machine.gpus[part]
    xid(
        machine,
        gpu,
        74,
        "pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link 5"
        "(0x0, 0x0, 0x80000, 0x0, 0x0, 0x0, 0x0)",
    )
    gpu.state["nvlink_states"] = [int(link != 5) for link in range(len(gpu.state["nvlink_states"]))]


@fault("fabric.state", part=0, fix="act", how="restart nvidia-fabricmanager; on trays reboot")
def fabric_in_progress(machine: Machine, part: int) -> None:
    """The GPUs' registration at the NVLink fabric does not come to an end."""
    del part
    for gpu in machine.gpus:
        gpu.state.update(fabric_state=_IN_PROGRESS, fabric_health="0x0", fabric_summary=0)


@fault("service.fabricmanager", on=HGX, fix="act", how="start nvidia-fabricmanager")
def fabric_manager_down(machine: Machine, part: int) -> None:
    """The fabric manager failed, so that no GPU registers."""
    del part
    stop(machine, "nvidia-fabricmanager", "failed")
    fabric_in_progress(machine, 0)


@fault("driver.fabric_manager", on=HGX, stays=True)
def fabric_manager_version(machine: Machine, part: int) -> None:
    """The fabric manager is of another version than the driver, and does not start."""
    del part
    other = "580.95.05"
    machine.versions["fabric-manager"] = other
    name = next(name for name in machine.packages if name.startswith("nvidia-fabricmanager"))
    machine.packages[name] = f"{other}-1"
    fabric_manager_down(machine, 0)


@fault("sxid", on=HOPPER, part=1, fix="act", how="reboot")
def switch_fatal(machine: Machine, part: int) -> None:
    """An NVSwitch reports a fatal error (SXid 20034)."""
    address = [a for a, f in machine.functions.items() if f.kind == "068000"][part]
    machine.say(f"nvidia-nvswitch{part}: SXid (PCI:{address}): 20034, Fatal, Link 30 LTSSM Fault Up")
    machine.say(
        f"nvidia-nvswitch{part}: SXid (PCI:{address}): 20034, Severity 1 Engine instance 30 Sub-engine instance 00"
    )


@fault("fabric.health", on=TRAYS, part=1, figures=("p2p",))
def fabric_degraded(machine: Machine, part: int) -> None:
    """The fabric gives a GPU degraded bandwidth."""
    machine.gpus[part].state.update(fabric_health=_DEGRADED_MASK, fabric_summary=_UNHEALTHY)


@fault("fabric.domain", on=TRAYS, part=3, stays=True, figures=("p2p",))
def fabric_split(machine: Machine, part: int) -> None:
    """A GPU belongs to another NVLink domain than its peers."""
    machine.gpus[part].state["fabric_cluster"] = "5a1e0000-0000-4000-8000-0000000000ff"


@fault("c2c.active", "c2c.uniform", on=TRAYS, part=2, stays=True, figures=("h2d", "d2h"))
def c2c_link_down(machine: Machine, part: int) -> None:
    """A link between a GPU and its Grace is down."""
    machine.gpus[part].state["c2c_states"] = [1, 1, 0, 1, 1]


@fault("service.state", "imex", on=TRAYS, fix="act", how="start nvidia-imex")
def imex_down(machine: Machine, part: int) -> None:
    """The IMEX daemon is dead."""
    del part
    stop(machine, "nvidia-imex", "failed")


@fault("imex.domain", on=TRAYS, part=7)
def imex_peer_lost(machine: Machine, part: int) -> None:
    """A peer of the IMEX domain is not reachable."""
    assert machine.imex is not None  # noqa: S101 - trays have one
    address = list(machine.imex.nodes)[part]
    machine.imex.nodes[address] = ("UNAVAILABLE", "")


@fault("driver.imex", on=TRAYS, stays=True)
def imex_version(machine: Machine, part: int) -> None:
    """IMEX is of another version than the driver."""
    del part
    machine.versions["imex"] = "580.95.05"
    name = next(name for name in machine.packages if name.startswith("nvidia-imex"))
    machine.packages[name] = "580.95.05-1"


def stop(machine: Machine, name: str, how: str = "inactive") -> None:
    """Let a unit be down: its process is gone."""
    service = machine.services[name]
    machine.processes = [process for process in machine.processes if process.pid != service.pid]
    service.active, service.pid = how, 0
    service.sub, service.result = ("failed", "exit-code") if how == "failed" else ("dead", "success")
