"""
``nvidia-smi --query-gpu=... --format=csv`` (also noheader with the command in sight, and nounits).

Source: ``nvidia-smi --help-query-gpu``; drivers 510 to 590.
Shape: facts of :mod:`hwcheck.parse.gpu_table` per row; several rows of one GPU (``-l``) are readings of it, the last
one counts.
Units: as the header says in brackets; without one, those of the table (nounits prints the same numbers).
Missing: ``[N/A]``, ``[Not Supported]`` absent · ``[Insufficient Permissions]`` denied · ``[Unknown Error]``, ``[GPU
requires reset]`` failed. A row with another number of fields than the header is cut off.
"""

from __future__ import annotations

import re

from hwcheck.errors import ParseError
from hwcheck.evidence import Output
from hwcheck.facts import NODE, Subject, gpu_at, pci_address
from hwcheck.parse.format import fmt
from hwcheck.parse.gpu_block import CSV_INDEX, GpuBlock
from hwcheck.parse.gpu_table import GIVES, NODE_FIELDS
from hwcheck.parse.gpu_values import gap
from hwcheck.parse.sink import FactSink

_HEADER = re.compile(r"^([A-Za-z0-9_.]+)(?:\s*\[([^\]]{1,12})\])?$")
_QUERY = re.compile(r"--query-gpu=([A-Za-z0-9_.,]+)")
_NODE_COLUMNS = {row[2]: name for name, row in NODE_FIELDS.items() if row[2]}
_ADDRESS = ("pci.bus_id", "gpu_bus_id")
_COLUMN = r"[a-zA-Z0-9_.]+(?: \[[^\]]{1,12}\])?"
_KNOWN = r"(index|name|gpu_name|uuid|gpu_uuid|pci\.bus_id|gpu_bus_id|driver_version|temperature\.gpu|serial|timestamp)"


@fmt(
    "nvidia-smi.csv",
    "nvidia-smi --query-gpu (CSV)",
    gives=GIVES,
    opens=rf"(?=(?:.*, ?|){_KNOWN}(?:,|\s*$)){_COLUMN}(?:, ?{_COLUMN})+\s*$",
    continues=r"[^,]+(?:,[^,]*)+$",
    command=r"nvidia-smi\b.*--query-gpu",
    rank=20,
)
def parse_smi_csv(output: Output, facts: FactSink) -> None:
    """Read header and rows; a header in the middle begins anew."""
    columns: list[str] = []
    query = _QUERY.search(output.command)
    if query and "noheader" in output.command:
        columns = query[1].split(",")
    seen: dict[Subject, str] = {}
    for number, line in enumerate(output.lines, output.first_line):
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split(",")]
        header = [_HEADER.match(cell) for cell in cells]
        if all(header) and any(cell and cell[1] in CSV_INDEX for cell in header) and not _is_row(cells, columns):
            columns = [cell[1] for cell in header if cell]
            continue
        if not columns:
            raise ParseError("no header, and no --query-gpu in the command", number)
        if len(cells) != len(columns):
            facts.cut_off(f"line {number} has {len(cells)} fields, the header {len(columns)}", GIVES)
            continue
        _row(dict(zip(columns, cells, strict=True)), number, facts, seen)
    if seen:
        facts.put(NODE, "gpu.listed_count", len(seen))


def _is_row(cells: list[str], columns: list[str]) -> bool:
    return len(cells) == len(columns) and any(cell[:1].isdigit() for cell in cells)


def _row(cells: dict[str, str], number: int, facts: FactSink, seen: dict[Subject, str]) -> None:
    block = GpuBlock(CSV_INDEX)
    for column, text in cells.items():
        name = _NODE_COLUMNS.get(column)
        if name is not None and gap(text) is None:
            if name == "gpu.attached_count":
                if text.isascii() and text.isdigit() and len(text) < 5:
                    facts.put(NODE, name, int(text), number)
            elif text.isprintable():
                facts.put(NODE, name, text[:60], number)
        block.feed(column, text, number)
    address = next((cells[column] for column in _ADDRESS if pci_address(cells.get(column, ""))), "")
    subject = block.subject(address)
    if subject is None:
        return
    index = cells.get("index", "")
    if seen.setdefault(subject, index) != index:
        _duplicate(subject, number, facts)
        return
    block.put(facts, gpu_at(address) if address else subject)


def _duplicate(subject: Subject, number: int, facts: FactSink) -> None:
    """One address under two indices: the listing was edited or is of two nodes; the second row is not believed."""
    known = facts.seen(NODE, "gpu.duplicates") or ()
    facts.put(NODE, "gpu.duplicates", (*known, subject.id), number)
