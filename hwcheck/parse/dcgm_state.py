"""
``dcgmi health`` (text and JSON), ``dcgmi discovery -l`` and ``dcgmi nvlink -s``.

Source: NVIDIA/DCGM 2 to 4: ``dcgmi health -c``, ``dcgmi health -c -j``, ``dcgmi discovery -l``, ``dcgmi nvlink -s``.
Shape: ``dcgm.health`` and what it lists, of the node; from the discovery each GPU at its PCI address with name and
    UUID. DCGM's GPU id is its own numbering and no nvidia-smi index.
Units: none.
    Of the links one letter each: U up, D down, X disabled, _ not supported; switches are not kept.
Missing: a GPU without a PCI bus id is left out; JSON that ends early is cut off; a row with other letters is left out.

Raises: nothing.
"""

from __future__ import annotations

import re
from typing import Any

from hwcheck.evidence import Output
from hwcheck.facts import NODE, gpu_at, pci_address
from hwcheck.parse.format import fmt
from hwcheck.parse.json_document import line_with, load_document
from hwcheck.parse.matrix import note_names
from hwcheck.parse.sink import FactSink

HEALTH_GIVES = ("dcgm.health", "dcgm.health_text")
DISCOVERY_GIVES = ("gpu.name", "gpu.uuid")
_OVERALL = re.compile(r"\|\s*Overall Health\s*\|\s*(\w{1,20})")
_ROW = re.compile(r"\s*\|([^|]{0,60})\|(.{0,400})\|\s*$")
_FIELD = re.compile(r"(Name|PCI Bus ID|Device UUID): (\S.{0,80}?)\s*$")
_TEXT_MAX = 1000


@fmt(
    "dcgmi-health",
    "dcgmi health",
    gives=HEALTH_GIVES,
    opens=r"\| Health Monitor Report",
    continues=r"\s*[|+]|\s*$",
    command=r"\bdcgmi\s+health\s+(?:-g\s*\d+\s+)?(?:-c|--check)(?!.*\s(?:-j|--json))",
)
def dcgm_health(output: Output, facts: FactSink) -> None:
    """Read the overall health and the incidents under it."""
    pieces: list[str] = []
    for index, text in enumerate(output.lines):
        overall, row = _OVERALL.match(text), _ROW.match(text)
        if overall:
            facts.put(NODE, "dcgm.health", overall[1], output.first_line + index)
        elif row and "Health Monitor Report" not in text:
            pieces.append(f"{row[1].strip()} {row[2].strip()}".strip())
    if pieces:
        facts.put(NODE, "dcgm.health_text", " ".join(pieces)[:_TEXT_MAX], output.first_line)


@fmt(
    "dcgmi-health.json",
    "dcgmi health -j",
    gives=HEALTH_GIVES,
    opens='json:"Overall Health"',
)
def dcgm_health_json(output: Output, facts: FactSink) -> None:
    """Read the overall health and the incidents under it."""
    body = load_document(output, facts, HEALTH_GIVES).get("body")
    overall = body.get("Overall Health") if isinstance(body, dict) else None
    if not isinstance(overall, dict):
        return
    line = line_with(output, '"Overall Health"')
    if isinstance(overall.get("value"), str):
        facts.put(NODE, "dcgm.health", overall["value"].strip()[:20], line)
    listed = _flat(overall.get("children"))
    if listed:
        facts.put(NODE, "dcgm.health_text", " ".join(listed)[:_TEXT_MAX], line)


def _flat(value: Any, depth: int = 0) -> list[str]:
    """Collect names and values of a tree of ``children``, at most six levels deep."""
    if depth > 6 or not isinstance(value, dict):
        return []
    found: list[str] = []
    for key, item in value.items():
        found.append(str(key)[:60])
        if isinstance(item, dict):
            if isinstance(item.get("value"), str):
                found.append(item["value"][:200])
            found.extend(_flat(item.get("children"), depth + 1))
    return found


@fmt(
    "dcgmi-discovery",
    "dcgmi discovery",
    gives=DISCOVERY_GIVES,
    opens=r"\d{1,3} GPUs? found\.|\d{1,3} NvSwitch(?:es)? found\.|\| GPU ID \| Device Information",
    continues=r"\s*[|+]|\s*$|\d{1,3} (?:GPUs?|NvSwitch(?:es)?|ConnectX|CPUs?) found\.",
    command=r"\bdcgmi\s+discovery\b",
)
def dcgm_discovery(output: Output, facts: FactSink) -> None:
    """Read name, address and UUID of each GPU."""
    gpu: dict[str, tuple[str, int]] = {}
    names: list[str] = []
    for index, text in enumerate(output.lines):
        row = _ROW.match(text)
        found = _FIELD.match(row[2].strip()) if row else None
        if row and row[1].strip().isdigit():
            _put_gpu(gpu, facts)
            gpu = {}
        if found:
            gpu[found[1]] = (found[2], output.first_line + index)
            if found[1] == "Name":
                names.append(found[2])
    _put_gpu(gpu, facts)
    note_names(facts, names, output.first_line)


def _put_gpu(gpu: dict[str, tuple[str, int]], facts: FactSink) -> None:
    address, _ = gpu.get("PCI Bus ID", ("", 0))
    if not pci_address(address):
        return
    for key, name in (("Name", "gpu.name"), ("Device UUID", "gpu.uuid")):
        if key in gpu:
            facts.put(gpu_at(address), name, *gpu[key])


_LINKS_OF = re.compile(r"\s*gpuId (\d{1,3}):\s*$")
_LINKS = re.compile(r"\s*([UDX_](?: [UDX_]){0,35})\s*$")


@fmt(
    "dcgmi-nvlink",
    "dcgmi nvlink -s",
    gives=("dcgm.nvlinks",),
    opens=r"\|\s+NvLink Link Status\s+\|",
    continues=r"\+-|GPUs:|NvSwitches:|\s+(?:gpuId|physicalId) \d|\s+[UDX_](?: [UDX_])*\s*$"
    r"|\s*$|Key:|\s+No .{0,40}found",
    command=r"\bdcgmi\s+nvlink\b.*\s-{1,2}(?:s|link-status)\b",
)
def dcgm_nvlink(output: Output, facts: FactSink) -> None:
    """Count links by state for each GPU."""
    records: list[dict[str, int]] = []
    gpu: int | None = None
    first = 0
    for index, text in enumerate(output.lines):
        owner, links = _LINKS_OF.match(text), _LINKS.match(text)
        if owner:
            gpu = int(owner[1])
        elif links and gpu is not None:
            first = first or output.first_line + index
            letters = links[1]
            records.append(
                {"gpu": gpu, "up": letters.count("U"), "down": letters.count("D"), "disabled": letters.count("X")}
            )
        elif text.strip():
            gpu = None
    if records:
        facts.put(NODE, "dcgm.nvlinks", tuple(records), first)
