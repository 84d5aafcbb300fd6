"""
Sections of a GPU block of ``nvidia-smi -q``: which ones every driver prints, and where a line stands by its name alone.

Declares no format. Source: ``nvidia-smi -q`` of drivers 510 to 590.
"""

from __future__ import annotations

import re

from hwcheck.parse.gpu_block import Q_INDEX

_EXPECTED: dict[tuple[str, ...], tuple[str, ...]] = {
    # section, by its spellings: what it gives
    ("PCI",): ("gpu.pci.*", "gpu.pcie.*"),
    ("FB Memory Usage",): ("gpu.memory.*",),
    ("ECC Errors",): ("gpu.ecc.*", "gpu.repair.*"),
    ("Remapped Rows",): ("gpu.remap.*",),
    ("Temperature",): ("gpu.temperature", "gpu.temperature.*"),
    ("Clocks",): ("gpu.clocks.graphics", "gpu.clocks.sm", "gpu.clocks.memory"),
    ("Clocks Event Reasons", "Clocks Throttle Reasons"): ("gpu.clocks.reason.*",),
    ("GPU Power Readings", "Power Readings"): ("gpu.power.*",),
}
"""Every driver since 510 prints these for every GPU, if only with N/A; Fabric and other later ones are not here."""

_OTHER_HEADINGS = (
    "Driver Model", "GPU Operation Mode", "IBMNPU", "Bridge Chip", "Conf Compute Protected Memory Usage",
    "Encoder Stats", "FBC Stats", "DRAM Encryption Mode", "Aggregate Uncorrectable SRAM Sources", "Single Bit ECC",
    "GPU Memory Power Readings", "Power Smoothing", "Workload Power Profiles", "EDPp Multiplier", "Deferred Clocks",
    "Max Customer Boost Clocks", "Clock Policy", "Voltage", "Processes", "Capabilities", "Supported Clocks",
    "vGPU Software Licensed Product", "vGPU Device Capability", "Inforom BBX Object Flush", "MIG Devices", "MIG Device",
    "Device Attributes", "Shared", "Shared FB Memory Usage", "Shared BAR1 Memory",
    "Sram Error Status",
)  # fmt: skip
_SECTIONS = {place.rsplit("/", depth)[0] for place in Q_INDEX for depth in range(1, place.count("/") + 1)}
_NESTED = {"PCI/Bridge Chip", "ECC Errors/Aggregate Uncorrectable SRAM Sources"}
"""Sections without facts of ours, after which their parent goes on."""

_NAMES = sorted({part for place in _SECTIONS for part in place.split("/")} | set(_OTHER_HEADINGS))
_OTHER_KEYS = """
    Accounting Mode | Accounting Mode Buffer Size | Active Sessions | Atomic Caps Inbound | Atomic Caps Outbound |
    Auto Boost | Auto Boost Default | Average FPS | Average Latency | Average Power Draw | Base Classcode |
    Blacklisted | Board ID | Bridge Chip | Bus | Bus Id | CBU | Chassis Physical Slot Number | Compute Instance ID |
    Compute Mode | Compute Slot Index | Compute instance ID | Conf Compute | Copy Engine count | Decoder | Decoder
    count | Device | Device Memory | Display Active | Display Attached | Display Clock Setting | Display Mode |
    Domain | Double Bit ECC | ECC Object | EGM | Encoder | Encoder count | Enforced Profiles | FRU Part Number | Fan
    Speed | Firmware | GPU Fabric GUID | GPU Instance ID | GPU Max Operating T.Limit Temp | GPU PDI | GPU Shutdown
    T.Limit Temp | GPU Slowdown T.Limit Temp | GPU Target Temperature | GPU instance ID | Gpu | Host ID | Host VGPU
    Mode | Index | Instantaneous Power Draw | JPEG | JPG count | L1 Cache | L2 Cache | Latest Duration | Latest
    Timestamp | Memory | Memory Max Operating T.Limit Temp | MultiGPU Board | Multiprocessor count | Name | Node
    Index | OEM Object | OFA | OFA count | Partition Assigned | Pending Page Blacklist | Power Limit | Power
    Management | Power Management Object | Process ID | Product Brand | RACK Serial Number | Register File | Relaxed
    Ordering Mode | Requested Profiles | Rx Throughput | SRAM L2 | SRAM Microcontroller | SRAM Other | SRAM PCIE |
    SRAM SM | Sparse Operation Mode | Sub Classcode | Texture Memory | Texture Shared | Timestamp | Total | Tx
    Throughput | Type | Used GPU Memory | Video | Workload Power Profiles | vGPU Heterogeneous Mode
"""
"""Keys of pairs that give no fact of ours."""

_KEYS = sorted(
    {place.rsplit("/", 1)[-1] for place in Q_INDEX} | {" ".join(key.split()) for key in _OTHER_KEYS.split("|")}
)
FLAT_LINE = (
    rf"(?:{'|'.join(map(re.escape, sorted({*_KEYS, *_NAMES})))})\s+:(?:\s|$)|(?:{'|'.join(map(re.escape, _NAMES))})\s*$"
)
"""A line of a listing that lost its indentation. Only known names: other tools print ``key : value`` too."""


def flat_place(path: list[str], key: str, *, heading: bool) -> tuple[int, str]:
    """
    Tell where a line stands whose indentation is lost, by its name.

    The deepest section that knows the name has it. An unknown heading opens a section of which nothing is known, so
    that its values are not taken for those of the section before.

    Args:
        path: headings that the line before stood under.
        key: name at this line.
        heading: the line is a heading, not a pair.

    Returns:
        How much of the path still holds, and the place.
    """
    for depth in range(len(path), -1, -1):
        place = "/".join([*path[:depth], key])
        if (heading and (place in _SECTIONS or place in _NESTED)) or (not heading and place in Q_INDEX):
            return depth, place
    return (0, key) if heading else (len(path), f"?/{key}")


def lacking(places: set[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """
    Name the sections of which a whole block has nothing that is understood, and the facts they would have given.

    A section that reads ``N/A`` as a whole (``Remapped Rows : N/A`` under MIG) is understood.
    """
    known = {place.split("/")[0] for place in places if place in Q_INDEX or "/" not in place}
    absent = {names: gives for names, gives in _EXPECTED.items() if known.isdisjoint(names)}
    return tuple(names[0] for names in absent), tuple(give for gives in absent.values() for give in gives)
