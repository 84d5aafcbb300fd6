"""
The table that ``nvidia-smi`` prints without arguments.

Source: ``nvidia-smi``; layouts of drivers 418 (79 columns, no MIG line) to 595 (91 columns), Linux and Windows.
Shape: per GPU, named by its Bus-Id: what three lines of three cells hold. Driver and CUDA version of the node from the
header. A GPU block without a header (cut out of a longer paste) is read too.
Units: as printed (MiB, W, C, %). The Cap column is the power limit in force. The ECC column is a count; ``Off`` and
``On`` in it are the ECC mode, without a count (MIG).
Missing: ``N/A``, ``Not Supported`` absent · ``ERR!``, ``Unknown Error`` failed · a name shortened with ``...`` absent.
A block that ends after its first line, and a table with a header that lacks its closing border, are cut off.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from hwcheck.errors import ParseError
from hwcheck.evidence import Output
from hwcheck.facts import NODE, Missing, Reason, Subject, gpu_index, number, pci_address
from hwcheck.parse.format import fmt
from hwcheck.parse.gpu_block import CSV_INDEX, GpuBlock
from hwcheck.parse.sink import FactSink

GIVES = (
    "driver.version", "driver.cuda_version", "gpu.index", "gpu.name", "gpu.persistence_mode", "gpu.driver_model",
    "gpu.ecc.mode", "gpu.ecc.volatile.uncorrected", "gpu.temperature", "gpu.performance_state", "gpu.power.draw",
    "gpu.power.limit", "gpu.memory.used", "gpu.memory.total", "gpu.utilization", "gpu.compute_mode", "gpu.mig.mode",
    "gpu.mig.pending", "gpu.processes",
)  # fmt: skip
WIDEST = 400
"""Columns; the widest table has 91. Longer lines are none of it, and are not searched."""

_ADDRESS = r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]"
_MODE = r"On|Off|N/A|ERR!|TCC|WDDM|MCDM"
_CTIME = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}\s*$"
_ROW = rf"\|\s{{1,4}}\d{{1,3}}\s+\S.{{0,60}}\s(?:{_MODE})\s*\|\s*(?:{_ADDRESS}|ERR!)\s"

_VERSION = re.compile(r"NVIDIA-SMI\s+([\d.]+)\S*\s+Driver Version:\s*(\S+)(?:\s+CUDA Version:\s*(\S+))?")
_FIRST = re.compile(rf"\s*(\d{{1,3}})\s+(\S.*?)\s+({_MODE})\s*$")
_BUS = re.compile(rf"\s*({_ADDRESS}|\S+)\s+(?:On|Off|N/A|ERR!)\s*$")
_SECOND = re.compile(r"\s*(\S+)\s+(\S+)\s+(\S+)\s+(\S[^/]*(?:/A)?)\s*/\s*(\S.*?)\s*$")
_MEMORY = re.compile(r"\s*(\S+)\s*/\s*(\S+)\s*$")
_LOAD = re.compile(r"\s*(\S+)\s+(\S.*?)\s*$")
_PROCESS = re.compile(
    r"\s+(\d{1,3})\s+(?:(?:\d+|N/A)\s+(?:\d+|N/A)\s+)?(\d{1,10})\s+([A-Z](?:\+[A-Z])*)\s+(\S.*?)\s+\S+\s*$"
)
_COMPUTE = {"E. Process": "Exclusive_Process", "E. Thread": "Exclusive_Thread"}


@dataclass(slots=True)
class _Gpu:
    """One GPU of the table while it is read: ``rows`` of its three lines seen so far."""

    index: int
    subject: Subject
    line: int
    block: GpuBlock = field(default_factory=lambda: GpuBlock(CSV_INDEX))
    rows: int = 1
    shortened: str = ""


@fmt(
    "nvidia-smi.table",
    "nvidia-smi",
    gives=GIVES,
    opens=rf"\s*\|\s*NVIDIA-SMI \d|\s*{_ROW}|{_CTIME}|\+-(?:{'-' * 76}|{'-' * 88})\+\s*$",
    continues=rf"\s*[|+]|\s*$|{_CTIME}",
    command=r"\bnvidia-smi(?:\.exe)?(?:\s+(?:-i|--id)[ =]\S+)?\s*$",
    rank=60,
)
def parse_smi_table(output: Output, facts: FactSink) -> None:
    """Read the table line by line; a GPU block begins where a line has an index, a name and a bus id."""
    gpus: list[_Gpu] = []
    header = False
    for offset, text in enumerate(output.lines):
        line = output.first_line + offset
        cells = _cells(text)
        if not cells:
            continue
        version = _VERSION.search(cells[0]) if len(cells) == 1 else None
        if version:
            header = True
            _put_versions(version, facts, line)
        elif len(cells) == 3:
            _read_gpu_line(cells, gpus, line)
    for gpu in gpus:
        _put(gpu, facts)
    _put_processes(output, gpus, facts)
    if output.command and not gpus and not header and any(text.strip() for text in output.lines):
        raise ParseError("nvidia-smi printed something else than its table", output.first_line)
    _say_if_cut(output, gpus, header, facts)


def _cells(text: str) -> list[str]:
    """Split a table line at its bars; [] for borders and for lines of something else."""
    bare = text.strip() if len(text) <= WIDEST else ""
    if len(bare) < 3 or not bare.startswith("|") or not bare.endswith("|") or bare[1] in "-=":
        return []
    return bare[1:-1].split("|")


def _put_versions(version: re.Match[str], facts: FactSink, line: int) -> None:
    for name, text in (("driver.version", version[2]), ("driver.cuda_version", version[3])):
        if text is not None:
            facts.put(NODE, name, Missing(Reason.FAILED, text) if "ERR" in text else text, line)


def _read_gpu_line(cells: list[str], gpus: list[_Gpu], line: int) -> None:
    first, bus = _FIRST.match(cells[0]), _BUS.match(cells[1])
    if first and bus:
        gpus.append(_begin(first, bus[1], cells[2], line))
    elif gpus and gpus[-1].rows == 1:
        gpus[-1].rows = 2
        _read_second(gpus[-1], cells, line)
    elif gpus and gpus[-1].rows == 2 and not cells[0].strip():
        gpus[-1].rows = 3
        _read_mig(gpus[-1], cells[2].strip(), line)


def _begin(first: re.Match[str], bus: str, ecc: str, line: int) -> _Gpu:
    index = int(first[1])
    address = pci_address(bus)
    gpu = _Gpu(index, Subject("gpu", address) if address else gpu_index(index), line)
    feed = gpu.block.feed
    feed("index", first[1], line)
    if first[2].endswith("..."):
        gpu.shortened = first[2]
    else:
        feed("name", first[2], line)
    if first[3] in ("TCC", "WDDM", "MCDM"):
        feed("driver_model.current", first[3], line)
        feed("persistence_mode", "N/A", line)
    else:
        feed("persistence_mode", first[3], line)
    ecc = ecc.strip()
    counted = ecc.isascii() and ecc.isdigit()
    feed("ecc.mode.current", "On" if counted else ecc, line)
    feed("ecc.errors.uncorrected.volatile.total", "N/A" if ecc in ("On", "Off") else ecc, line)
    return gpu


def _read_second(gpu: _Gpu, cells: list[str], line: int) -> None:
    """Temperature, power, memory and load; what does not look like the table's line is said to be not understood."""
    heat, memory, load = _SECOND.match(cells[0]), _MEMORY.match(cells[1]), _LOAD.match(cells[2])
    values = {
        "temperature.gpu": heat[2] if heat else cells[0],
        "pstate": heat[3] if heat else cells[0],
        "power.draw": heat[4] if heat else cells[0],
        "enforced.power.limit": heat[5] if heat else cells[0],
        "memory.used": memory[1] if memory else cells[1],
        "memory.total": memory[2] if memory else cells[1],
        "utilization.gpu": load[1] if load else cells[2],
        "compute_mode": _COMPUTE.get(load[2], load[2]) if load else cells[2],
    }
    for place, text in values.items():
        gpu.block.feed(place, text if text.strip() else "?", line)


def _read_mig(gpu: _Gpu, text: str, line: int) -> None:
    """MIG mode; an asterisk says that the other mode comes with the next reset."""
    mode = text.rstrip("*")
    gpu.block.feed("mig.mode.current", mode, line)
    if text.endswith("*") and mode in ("Enabled", "Disabled"):
        gpu.block.feed("mig.mode.pending", "Disabled" if mode == "Enabled" else "Enabled", line)


def _put(gpu: _Gpu, facts: FactSink) -> None:
    gpu.block.put(facts, gpu.subject)
    if gpu.shortened:
        facts.missing(gpu.subject, "gpu.name", Reason.ABSENT, f"the table shortens it: {gpu.shortened}", gpu.line)


def _put_processes(output: Output, gpus: list[_Gpu], facts: FactSink) -> None:
    """Put the list of processes on each GPU of the table, where the table has one."""
    start = next((i for i, text in enumerate(output.lines) if text.strip().startswith("| Processes:")), None)
    if start is None:
        return
    found: dict[int, list[dict[str, object]]] = {gpu.index: [] for gpu in gpus}
    lines: dict[int, int] = {}
    said = False
    for offset, text in enumerate(output.lines[start:], start):
        cells = _cells(text)
        inner = "|".join(cells)
        said = said or "No running processes found" in inner
        match = _PROCESS.match(inner) if cells else None
        if match and int(match[1]) in found:
            index = int(match[1])
            found[index].append({"pid": number(match[2]), "type": match[3], "name": match[4]})
            lines.setdefault(index, output.first_line + offset)
    if not said and not any(found.values()):
        return
    for gpu in gpus:
        line = lines.get(gpu.index, output.first_line + start)
        facts.put(gpu.subject, "gpu.processes", tuple(found[gpu.index]), line)


def _say_if_cut(output: Output, gpus: list[_Gpu], header: bool, facts: FactSink) -> None:  # noqa: FBT001 - as found
    last = next((text.strip() for text in reversed(output.lines) if text.strip()), "")
    if any(gpu.rows == 1 for gpu in gpus):
        facts.cut_off("the block of a GPU has only its first line", GIVES)
    elif header and not gpus:
        facts.cut_off("no GPU under the header of the table", GIVES)
    elif header and not re.fullmatch(r"\+[-+]+\+", last):
        facts.cut_off("the table ends without its closing border", GIVES)
