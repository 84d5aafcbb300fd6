"""
Access control between PCIe devices: on which switch ports traffic between a GPU and an adapter is sent up and back.

Source: PCI Express base specification, ACS capability (id 0x000d, control at 6): bits 2, 3 and 4 redirect requests,
completions and upstream traffic. Only ports below a switch that a GPU and an adapter share matter; in a guest and with
adapters of a data-direct function a pattern is wanted that rdma_topo of rdma-core works out.
"""

from __future__ import annotations

import re

from ..place import Json, Place
from .devices import ADAPTER, GPU, config_of, devices

REDIRECT = 0x1C
_ACS = 0x000D
_DATA_DIRECT = ("0x1023", "0x1025")
"""ConnectX-8 and -9."""


def advise(place: Place, _versions: dict[str, str]) -> Json:
    """Read the control word of each port between a GPU and an adapter below a common switch."""
    all_of_them = devices(place)
    between: dict[str, None] = {}
    for gpu in (one for one in all_of_them if one.kind == GPU):
        for adapter in (one for one in all_of_them if one.kind == ADAPTER):
            shared = [one for one in gpu.above if one in adapter.above]
            if shared:
                below = (*gpu.above, *adapter.above)
                between.update(dict.fromkeys(one for one in below if one not in shared))
    words = {address: control(config_of(place, address)) for address in sorted(between)}
    unknown = [f"{address}: {word}" for address, word in words.items() if isinstance(word, str)]
    on = [address for address, word in words.items() if isinstance(word, int) and word & REDIRECT]
    found: Json = {
        "ports": {address: f"0x{word:04x}" for address, word in words.items() if isinstance(word, int)},
        "redirecting": on,
    }
    special = _special(place, any(one.kind == ADAPTER and one.id in _DATA_DIRECT for one in all_of_them))
    if special:
        return {"found": found, "unknown": unknown, "differs": None, "advice": [special]}
    if not between:
        why = "no GPU shares a PCIe switch with an adapter, so no port stands between them; nothing is to be cleared"
        return {"found": found, "unknown": unknown, "differs": False, "advice": [why]}
    advice = []
    if on:
        advice = [
            f"traffic between GPU and adapter is redirected on {', '.join(on)}",
            "for this boot, name exactly these in pcie_acs_bridges, on a drained node; a reset of a port undoes it",
            "for the next boots, name them in the kernel argument pci=disable_acs_redir="
            + ";".join(on)
            + " (isolation between these devices is lost, IOMMU groups change)",
        ]
    return {
        "found": found,
        "unknown": unknown,
        "differs": bool(on) if not unknown else (True if on else None),
        "advice": advice,
    }


def control(config: bytes) -> int | str:
    """Return the ACS control word of a configuration space; why it cannot be told, or 0 where there is no ACS."""
    if len(config) < 0x104:
        return "only root reads the extended configuration space"
    place, seen = 0x100, 0
    while place >= 0x100 and place + 8 <= len(config) and seen < 64:
        head = int.from_bytes(config[place : place + 4], "little")
        if head & 0xFFFF == _ACS:
            return int.from_bytes(config[place + 6 : place + 8], "little")
        place, seen = head >> 20, seen + 1
    return 0


def _special(place: Place, data_direct: bool) -> str:  # noqa: FBT001 - whether there is such an adapter
    if re.search(r"^flags\s*:.*\bhypervisor\b", place.text("/proc/cpuinfo") or "", re.MULTILINE):
        return "this is a guest: access control belongs to its host, which keeps it on; nothing is to be cleared here"
    if data_direct:
        return (
            "these adapters have a data-direct function, for which zeroing access control is a fault: ask rdma_topo "
            "check (rdma-core) for the pattern of each port, and rdma_topo write-grub-acs for the kernel argument"
        )
    return ""
