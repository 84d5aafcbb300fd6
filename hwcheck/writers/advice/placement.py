"""
Where GPUs, adapters and memory are: for NUMA masks, interrupts and Slurm's gres.conf.

Source: /sys/devices/system/node/has_cpu and has_memory; where GPU memory is a NUMA node it has no CPUs, and a mask made
by counting nodes would put a daemon's memory on a GPU.
"""

from __future__ import annotations

import re
from typing import Any

from ..forms import cpus
from ..place import Json, Place
from .devices import GPU, Device, devices

_NODES = "/sys/devices/system/node"


def advise(place: Place, _versions: dict[str, str]) -> Json:
    """Say which NUMA nodes have CPUs and memory, and what is near to what."""
    unknown = []
    lists = {name: (place.text(f"{_NODES}/{name}") or "").strip() for name in ("has_cpu", "has_memory", "online")}
    sets = {name: _members(text) for name, text in lists.items()}
    usable = sorted(sets["has_cpu"] & sets["has_memory"])
    if not usable:
        unknown.append(f"{_NODES} does not say which nodes have CPUs and memory")
    found_devices = devices(place)
    nowhere = [one.address for one in found_devices if one.node is None]
    unknown += [f"{address}: the firmware names no NUMA node; that is no node 0" for address in nowhere]
    without = sorted(sets["online"] - sets["has_cpu"])
    advice = []
    if without:
        advice.append(
            f"nodes {_spelled(without)} have no CPUs (memory of GPUs, as a rule): bind services to {_spelled(usable)}"
        )
    gpus = [one for one in found_devices if one.kind == GPU]
    found: dict[str, Any] = {
        "cpu_nodes": _spelled(usable),
        "devices": {one.address: {"kind": one.kind, "node": one.node, "cpus": one.cpus} for one in found_devices},
        "gres": _gres(place, gpus),
    }
    return {"found": found, "unknown": unknown, "differs": None if unknown else False, "advice": advice}


def _members(text: str) -> set[int]:
    spelled = cpus(text)
    found: set[int] = set()
    if not re.fullmatch(r"\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*", spelled):
        return found
    for part in spelled.split(","):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def _spelled(members: list[int]) -> str:
    return cpus(",".join(map(str, members)))


def _gres(place: Place, gpus: list[Device]) -> str:
    """Return the lines for gres.conf of this node; Slurm numbers cores its own way, so it asks NVML for them itself."""
    if not gpus:
        return ""
    name = (place.text("/proc/sys/kernel/hostname") or "").strip().partition(".")[0]
    near = "".join(
        f"# {one.address}: NUMA node {'?' if one.node is None else one.node}, CPUs {one.cpus}\n" for one in gpus
    )
    return f"{near}NodeName={name} AutoDetect=nvml\n# slurm.conf: NodeName={name} Gres=gpu:{len(gpus)}\n"
