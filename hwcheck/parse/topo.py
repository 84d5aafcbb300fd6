"""
``nvidia-smi topo -m``: how GPUs and NICs reach each other.

Source: ``nvidia-smi topo -m``; drivers 450 to 590; columns by tabs as printed, or by blanks after a paste.
Shape: one matrix of the node; per GPU, named by index, its CPU and NUMA affinity. NIC columns are called ``NICn``, with
a legend that names the RDMA devices (the numbers need not match), or by the device itself. ``topo -p2p`` prints a
matrix of the same form with other words in it; it gives nothing.
Units: NV18 is a bonded set of 18 NVLinks.
Missing: NIC rows end before the affinity columns · ``N/A`` affinity absent · a row with fewer cells than the header has
columns, or a GPU column without a row: cut off.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from hwcheck.evidence import Output
from hwcheck.facts import NODE, gpu_index
from hwcheck.parse.format import fmt
from hwcheck.parse.gpu_values import gap
from hwcheck.parse.sink import FactSink

GIVES = ("topo.matrix", "topo.cpu_affinity", "topo.numa_affinity", "topo.gpu_numa", "gpu.index")
CELL = r"(?:X|NV\d{1,2}|SYS|NODE|PHB|PXB|PIX|SOC)"
WIDEST = 4000
"""Columns; 16 GPUs and 32 NICs need 400."""

_TAIL = ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID")
_HEADER = re.compile(r"\s*(GPU\d{1,3}(?:\s+[\w.:-]+)*)$")
_GPU = re.compile(r"GPU\d{1,3}$")
_CELL = re.compile(rf"{CELL}$")
_NIC_NAME = re.compile(r"\s*(NIC\d{1,3}): (\S{1,40})\s*$")
_PEER_WORDS = {"OK", "NS", "CNS", "GNS", "TNS", "DR", "U"}


@dataclass(slots=True)
class _Matrix:
    """The matrix while it is read: cells of a row by column, and the lines of the rows."""

    columns: list[str]
    tail: list[str]
    line: int
    cells: dict[str, dict[str, str]] = field(default_factory=dict)
    nics: dict[str, str] = field(default_factory=dict)
    short: list[str] = field(default_factory=list)
    peer: bool = False

    @property
    def gpus(self) -> list[str]:
        """Names of the GPU columns."""
        return [column for column in self.columns if _GPU.match(column)]


@fmt(
    "nvidia-smi.topo",
    "nvidia-smi topo -m",
    gives=GIVES,
    opens=r"\s*GPU\d{1,3}\s[^|]{0,4000}\bCPU Affinity\b"
    r"|\s*GPU\d{1,3}(?:\s+GPU\d{1,3})+(?:\s+(?:NIC\d{1,3}|mlx5_\w{1,20}))*\s*$",
    continues=rf"\s*$|\s*[\w.:-]+\s+{CELL}(?:\s|$)|\s*GPU\d{{1,3}}\s|\s*(?:NIC )?Legend:|\s*NIC\d{{1,3}}: "
    r"|\s*(?:X|SYS|NODE|PHB|PXB|PIX|NV#|SOC|OK|CNS|GNS|TNS|NS|DR|U)\s+= ",
    command=r"\bnvidia-smi(?:\.exe)?\s+topo\b(?!.*\s-h)",
)
def parse_topo(output: Output, facts: FactSink) -> None:
    """Read header, rows and NIC legend; a second matrix in the same text replaces the first."""
    matrix: _Matrix | None = None
    for offset, text in enumerate(output.lines):
        line = output.first_line + offset
        if len(text) > WIDEST or not text.strip():
            continue
        header = _header(text, line)
        if header is not None:
            matrix = header
        elif matrix is not None:
            _read_line(matrix, text, facts, line)
    if matrix is not None and not matrix.peer:
        _put(matrix, facts)


def _header(text: str, line: int) -> _Matrix | None:
    """Read the line of column names; None for any other line."""
    tail = [name for name in _TAIL if name in text]
    names = text.partition(tail[0])[0] if tail else text
    match = _HEADER.match(names.rstrip())
    columns = match[1].split() if match else []
    if not columns or any(_CELL.match(column) or column in _PEER_WORDS for column in columns):
        return None
    return _Matrix(columns, tail, line)


def _read_line(matrix: _Matrix, text: str, facts: FactSink, line: int) -> None:
    legend = _NIC_NAME.match(text)
    if legend:
        matrix.nics[legend[1]] = legend[2]
        return
    label, *words = text.split()
    if label not in matrix.columns or ":" in label or words[:1] == ["="]:
        return
    width = len(matrix.columns)
    cells = words[:width]
    if any(word in _PEER_WORDS for word in cells):
        matrix.peer = True
        return
    if len(cells) < width:
        matrix.short.append(label)
    matrix.cells[label] = dict(zip(matrix.columns, cells, strict=False))
    if _GPU.match(label):
        _put_affinity(matrix, label, words[width:], facts, line)


def _put_affinity(matrix: _Matrix, label: str, words: list[str], facts: FactSink, line: int) -> None:
    """Put what stands behind the cells; with an empty column, blanks tell only the first."""
    gpu = gpu_index(label[3:])
    facts.put(gpu, "gpu.index", int(label[3:]), line)
    values = dict(zip(matrix.tail, words if len(words) == len(matrix.tail) else words[:1], strict=False))
    for column, name in zip(_TAIL[:2], ("topo.cpu_affinity", "topo.numa_affinity"), strict=True):
        text = values.get(column)
        if text is None:
            continue
        missing = gap(text)
        if missing is not None:
            facts.put(gpu, name, missing, line)
        elif re.fullmatch(r"[0-9,-]{1,400}", text):
            facts.put(gpu, name, text, line)
        else:
            facts.unparsable(gpu, name, text, line)
    text = values.get(_TAIL[2], "")
    if re.fullmatch(r"\d{1,4}", text):
        facts.put(gpu, "topo.gpu_numa", int(text), line)


def _put(matrix: _Matrix, facts: FactSink) -> None:
    """Put the matrix where every GPU has a row over all GPU columns; say it where a row is short."""
    gpus = matrix.gpus
    lacking = [gpu for gpu in gpus if any(column not in matrix.cells.get(gpu, {}) for column in gpus)]
    if lacking or matrix.short:
        facts.cut_off(f"the row of {(lacking or matrix.short)[0]} is not whole", GIVES)
    if lacking:
        return
    nics = {name: matrix.nics.get(name, name) for name in matrix.columns if not _GPU.match(name)}
    facts.put(NODE, "topo.matrix", {"gpus": tuple(gpus), "nics": nics, "cells": matrix.cells}, matrix.line)
