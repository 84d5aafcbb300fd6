"""GPUs, RDMA adapters and the bridges above them, from sysfs."""

from __future__ import annotations

import os
from typing import NamedTuple

from ..place import Place

_FOLDER = "/sys/bus/pci/devices"
GPU, ADAPTER = "gpu", "adapter"


class Device(NamedTuple):
    """
    A device of interest.

    Attributes:
        address: with domain.
        kind: :data:`GPU` or :data:`ADAPTER`.
        id: of the device, as ``0x1021``.
        above: addresses of the bridges above it, the root port first.
        node: NUMA node; None where the firmware names none.
        cpus: CPUs that are near, as a list.
    """

    address: str
    kind: str
    id: str
    above: tuple[str, ...]
    node: int | None
    cpus: str


def devices(place: Place) -> list[Device]:
    """Return GPUs and adapters by address."""
    found = []
    for path in place.expand(_FOLDER + "/*"):
        vendor, kind = _word(place, path + "/vendor"), _word(place, path + "/class")
        if vendor == "0x10de" and kind.startswith("0x03"):
            what = GPU
        elif vendor == "0x15b3" and kind.startswith("0x02"):
            what = ADAPTER
        else:
            continue
        way = os.path.realpath(place.real(path)).split("/")
        above = tuple(part for part in way[:-1] if part.count(":") == 2)
        node = _word(place, path + "/numa_node")
        near = int(node) if node.isdigit() else None
        found.append(
            Device(way[-1], what, _word(place, path + "/device"), above, near, _word(place, path + "/local_cpulist"))
        )
    return found


def config_of(place: Place, address: str) -> bytes:
    """Return a device's configuration space; 64 bytes for those who are not root."""
    return place.read(f"{_FOLDER}/{address}/config") or b""


def _word(place: Place, path: str) -> str:
    return (place.text(path) or "").strip()
