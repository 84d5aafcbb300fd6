"""
The ``nvidia-smi`` commands that print a line per GPU and, below it, lines per link or MIG device.

Source: ``nvidia-smi -L``, ``nvlink -s``, ``-e``, ``-c``, ``-p``, ``-gt``, ``-info``, ``c2c -s``, ``c2c -e``; seen of
drivers 450 to 595.
Shape: per GPU, named by its index: UUID, name, links with speed, error counters. ``-L`` tells nothing of links. New
drivers have other counter names than "Replay", "Recovery" and "CRC" on Blackwell; names are kept as printed.
Units: GB/s of one link and one direction, raw signalling.
Missing: ``<inactive>`` is a link that is down, and "all links are inActive" is all of them · "not supported for Devices
in MIG mode", "No Devices support C2C" absent · a link line that is not understood makes the links of this GPU so ·
a last GPU without lines where the others have some: cut off.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from hwcheck.evidence import Output
from hwcheck.facts import Missing, Reason, Subject, gpu_index, number, quantity
from hwcheck.parse.format import fmt
from hwcheck.parse.gpu_values import gap
from hwcheck.parse.sink import FactSink

LINK_FACTS = ("nvlink.links", "nvlink.active_count", "nvlink.errors", "c2c.links")
GIVES = ("gpu.index", "gpu.uuid", "gpu.name", "gpu.mig.mode", *LINK_FACTS)
WIDEST = 300
"""Columns; longer lines are none of these commands'."""

_GPU = re.compile(r"GPU\s+(\d{1,3}):\s*([^(]*?)\s*(?:\(UUID:\s*([^)\s]*)\s*\))?\s*$")
_LINK = re.compile(r"\s+(C2C )?Link (\d{1,3}): (.*)$")
_CUT = re.compile(r"\s+(?:C2C )?Link\s*\d{0,3}:?$")
_COUNTER = re.compile(r"([A-Z][A-Za-z0-9 /-]{0,60}): ([0-9][0-9,]{0,24}(?:\.\d{1,4})?(?:[eE][+-]?\d{1,3})?)$")
_MIG = re.compile(r"\s+MIG\s+\S+\s+Device\s+\d+:")
_UUID = re.compile(r"GPU-[0-9a-fA-F-]{8,}$")
_OTHER_FORMS = re.compile(r"Remote Device|Data |Raw |[A-Z][\w ]+: ")
_ALL_DOWN = "all links are inactive"
_NOT_IN_MIG = "queries are not supported for devices in mig mode"


@dataclass(slots=True)
class _Gpu:
    """What stands under one GPU line; ``first`` is the line of the first link, or of the first one that is down."""

    subject: Subject
    line: int
    links: dict[int, dict[str, Any]] = field(default_factory=dict)
    c2c: dict[int, dict[str, Any]] = field(default_factory=dict)
    counters: dict[tuple[int, str], dict[str, Any]] = field(default_factory=dict)
    gaps: dict[str, Missing] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    all_down: bool = False


@fmt(
    "nvidia-smi.gpu-lines",
    "nvidia-smi -L, nvlink or c2c",
    gives=GIVES,
    opens=r"GPU\s+\d{1,3}: [^(]{1,100}\(UUID: (?:GPU|MIG)-|GPU\s+\d{1,3}: (?:NVIDIA|Tesla|GH200)\b[^:(]{0,80}$",
    continues=r"GPU\s+\d{1,3}: |\s+(?:C2C )?Link \d|\s+MIG |\s*$|\s*NVML: |Nvlink queries|No Devices support"
    r"|\s+(?:NVLE|Firmware Version|MSE|NETIR[A-Z ]*):",
    command=r"\bnvidia-smi(?:\.exe)?\s+(?:-L\b|--list-gpus\b|nvlink\b(?!.*\s-h)|c2c\b(?!.*\s-h))",
)
def parse_gpu_lines(output: Output, facts: FactSink) -> None:
    """Gather the lines under each GPU line, then put what they tell."""
    gpus: dict[int, _Gpu] = {}
    current: _Gpu | None = None
    for offset, text in enumerate(output.lines):
        line = output.first_line + offset
        bare = text.rstrip() if len(text) <= WIDEST else ""
        header = _GPU.match(bare)
        if header:
            current = gpus.setdefault(int(header[1]), _Gpu(gpu_index(header[1]), line))
            _put_identity(current, header, facts, line)
        elif current is not None and bare:
            _read_line(current, bare, facts, line)
    _say_if_cut(list(gpus.values()), facts)
    for gpu in gpus.values():
        _put(gpu, facts)


def _put_identity(gpu: _Gpu, header: re.Match[str], facts: FactSink, line: int) -> None:
    facts.put(gpu.subject, "gpu.index", int(header[1]), line)
    if header[2] and header[2].isprintable():
        missing = gap(header[2])
        facts.put(gpu.subject, "gpu.name", header[2] if missing is None else missing, line)
    if header[3] and _UUID.match(header[3]):
        facts.put(gpu.subject, "gpu.uuid", header[3], line)


def _read_line(gpu: _Gpu, text: str, facts: FactSink, line: int) -> None:
    link = _LINK.match(text)
    if link:
        _read_link(gpu, link, line)
    elif _MIG.match(text):
        facts.put(gpu.subject, "gpu.mig.mode", value=True, line=line)
    elif _ALL_DOWN in text.lower():
        gpu.all_down = True
        gpu.lines["nvlink.links"] = line
    elif _NOT_IN_MIG in text.lower():
        gpu.gaps["nvlink.links"] = Missing(Reason.ABSENT, text.strip()[:80])
    elif text.strip().startswith("NVML:") or _CUT.match(text):
        name = "c2c.links" if "C2C" in text else "nvlink.links"
        missing = gap(text)
        gpu.gaps[name] = Missing(Reason.UNPARSABLE, text.strip()[:80]) if missing is None else missing


def _read_link(gpu: _Gpu, match: re.Match[str], line: int) -> None:
    """Read one line of a link: its state, one of its counters, or something of no use here (remote device, traffic)."""
    index, text = int(match[2]), match[3].strip()
    counter = _COUNTER.match(text)
    if counter and not match[1]:
        _read_counter(gpu, index, counter, line)
    if counter or _OTHER_FORMS.match(text):
        return
    name, links = ("c2c.links", gpu.c2c) if match[1] else ("nvlink.links", gpu.links)
    try:
        record = _link(index, text)
    except ValueError:
        missing = gap(text)
        gpu.gaps[name] = Missing(Reason.UNPARSABLE, f"link {index}: {text[:40]!r}") if missing is None else missing
        return
    if not record["active"] and all(link["active"] for link in links.values()):
        gpu.lines[name] = line
    gpu.lines.setdefault(name, line)
    links[index] = record


def _read_counter(gpu: _Gpu, index: int, counter: re.Match[str], line: int) -> None:
    gpu.lines.setdefault("nvlink.errors", line)
    try:
        gpu.counters[index, counter[1]] = {"link": index, "counter": counter[1], "value": number(counter[2])}
    except ValueError:
        gpu.gaps["nvlink.errors"] = Missing(Reason.UNPARSABLE, f"link {index}: {counter[0][:60]!r}")


def _link(index: int, text: str) -> dict[str, Any]:
    """
    Read ``26.562 GB/s`` or ``<inactive>``.

    Raises:
        ValueError: neither; a number without its unit is a line cut off.
    """
    if text.lower() == "<inactive>":
        return {"link": index, "active": False, "speed": None}
    if not text.endswith("B/s"):
        raise ValueError(f"no speed: {text[:40]!r}")
    return {"link": index, "active": True, "speed": float(quantity(text, "GB/s"))}


def _put(gpu: _Gpu, facts: FactSink) -> None:
    for name, links in (("nvlink.links", gpu.links), ("c2c.links", gpu.c2c)):
        line = gpu.lines.get(name, gpu.line)
        if name in gpu.gaps:
            facts.put(gpu.subject, name, gpu.gaps[name], line)
        elif links or (gpu.all_down and name == "nvlink.links"):
            facts.put(gpu.subject, name, tuple(links[index] for index in sorted(links)), line)
    line = gpu.lines.get("nvlink.links", gpu.line)
    if "nvlink.links" in gpu.gaps:
        facts.put(gpu.subject, "nvlink.active_count", gpu.gaps["nvlink.links"], line)
    elif gpu.links or gpu.all_down:
        facts.put(gpu.subject, "nvlink.active_count", sum(link["active"] for link in gpu.links.values()), line)
    if "nvlink.errors" in gpu.gaps:
        facts.put(gpu.subject, "nvlink.errors", gpu.gaps["nvlink.errors"], gpu.lines["nvlink.errors"])
    elif gpu.counters:
        counters = tuple(gpu.counters[key] for key in sorted(gpu.counters))
        facts.put(gpu.subject, "nvlink.errors", counters, gpu.lines["nvlink.errors"])


def _say_if_cut(gpus: list[_Gpu], facts: FactSink) -> None:
    """A last GPU with fewer links than every GPU before it, none of them said to be down, is cut off."""
    if len(gpus) < 2:
        return
    *before, last = gpus
    for name, links in (("nvlink.links", "links"), ("c2c.links", "c2c")):
        fewest = min(len(getattr(gpu, links)) for gpu in before)
        if fewest > len(getattr(last, links)) and not last.all_down and name not in last.gaps:
            last.gaps[name] = Missing(Reason.UNPARSABLE, "the listing ends before all links")
            facts.cut_off("the last GPU has fewer links than the others", LINK_FACTS)
