"""
p2pBandwidthLatencyTest: the CUDA sample that copies between all pairs of GPUs.

Source: NVIDIA/cuda-samples, ``p2pBandwidthLatencyTest``; every version prints the same matrices.
Shape: one measurement a matrix, ``p2pbandwidth.<way>_<enabled|disabled>`` over the pairs, and
    ``p2pbandwidth.local_copy`` from the diagonal of the first enabled (else first) matrix. P2P=Disabled goes over
    host memory and says nothing of NVLink. GPU names and PCI addresses from the ``Device:`` lines (numbers are hex
    there); the number in front is a CUDA ordinal.
Units: GB/s are 10**9 B/s; the diagonal counts bytes read and bytes written. Latency in us.
Missing: a matrix with a row that is not complete is unparsable; the other matrices go on.

Raises: nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from hwcheck.evidence import Output
from hwcheck.facts import gpu_at
from hwcheck.parse.format import fmt
from hwcheck.parse.matrix import GPUS_MAX, Namer, cells, note_names, spread
from hwcheck.parse.sink import FactSink

GIVES = ("result.bandwidth", "result.latency")
_BANDWIDTH = re.compile(r"(Unidirectional|Bidirectional) P2P=(Enabled|Disabled) Bandwidth .{0,40}\(GB/s\)")
_LATENCY = re.compile(r"P2P=(Enabled|Disabled) Latency .{0,40}\(us\)")
_DEVICE = re.compile(
    r"Device: ?\d{1,3}, (.{1,80}?), pciBusID: ([0-9a-f]{1,2}), pciDeviceID: ([0-9a-f]{1,2}), "
    r"pciDomainID: ?([0-9a-f]{1,8})\s*$"
)
_ROW = re.compile(r"\s*\d{1,3}\s+[\d.N]")


@dataclass(slots=True)
class _Matrix:
    name: str
    line: int
    latency: bool
    enabled: bool
    columns: int = 0
    rows: list[list[str]] = field(default_factory=list)
    host_rows: bool = False


@fmt(
    "p2pbandwidth",
    "p2pBandwidthLatencyTest",
    gives=GIVES,
    opens=r"\[P2P \(Peer-to-Peer\) GPU Bandwidth Latency Test\]|P2P Connectivity Matrix"
    r"|(?:Uni|Bi)directional P2P=(?:Enabled|Disabled) Bandwidth|P2P=(?:Enabled|Disabled) Latency"
    r"|Device: ?\d{1,3}, .{1,80}pciBusID:",
    command=r"\bp2pBandwidthLatencyTest\b",
)
def p2p_bandwidth(output: Output, facts: FactSink) -> None:
    """Read the bandwidth and latency matrices."""
    matrices: list[_Matrix] = []
    names: list[str] = []
    for index, text in enumerate(output.lines):
        line = output.first_line + index
        device = _DEVICE.match(text)
        opened = _open(text, line)
        if opened:
            matrices.append(opened)
        elif device:
            names.append(device[1])
            facts.put(
                gpu_at(f"{int(device[4], 16):04x}:{device[2]:0>2}:{device[3]:0>2}.0"), "gpu.name", device[1], line
            )
        elif matrices:
            _read_line(matrices[-1], text)
    note_names(facts, names, output.first_line)
    namer = Namer(output)
    for matrix in matrices:
        _record(matrix, namer, facts)
    _record_local(matrices, namer, facts)


def _open(text: str, line: int) -> _Matrix | None:
    copy, latency = _BANDWIDTH.match(text), _LATENCY.match(text)
    if copy:
        return _Matrix(f"{copy[1].lower()}_{copy[2].lower()}", line, latency=False, enabled=copy[2] == "Enabled")
    if latency:
        return _Matrix(f"latency_{latency[1].lower()}", line, latency=True, enabled=latency[1] == "Enabled")
    return None


def _read_line(matrix: _Matrix, text: str) -> None:
    tokens = text.split()
    if tokens[:1] in (["D\\D"], ["GPU"]):
        matrix.columns = len(tokens) - 1
    elif tokens[:1] == ["CPU"]:
        matrix.host_rows = True  # latency as the CPU sees it: another thing than the GPU's, not kept
    elif (
        matrix.columns
        and not matrix.host_rows
        and len(matrix.rows) < min(matrix.columns, GPUS_MAX)
        and _ROW.match(text)
    ):
        matrix.rows.append(tokens[1:])


def _values(matrix: _Matrix) -> list[list[float | None]]:
    """
    Turn the rows into figures.

    Raises:
        ValueError: a cell is no figure, or the matrix is not square.
    """
    if not matrix.columns or len(matrix.rows) != matrix.columns:
        raise ValueError(f"the matrix has {len(matrix.rows)} rows and {matrix.columns} columns")
    if any(len(row) != matrix.columns for row in matrix.rows):
        raise ValueError("a row is not complete")
    return [cells(row) for row in matrix.rows]


def _record(matrix: _Matrix, namer: Namer, facts: FactSink) -> None:
    subject = namer.subject(f"p2pbandwidth.{matrix.name}", matrix.line)
    name = "result.latency" if matrix.latency else "result.bandwidth"
    try:
        found = spread(_values(matrix), diagonal=False)
    except ValueError as error:
        facts.unparsable(subject, name, str(error), matrix.line)
        return
    if not found:
        return  # one GPU: there are no pairs
    ways = "both-ways" if matrix.name.startswith("bi") else "one-way"
    facts.put(subject, name, float(found["max" if matrix.latency else "min"]), matrix.line)
    conditions = {"gpus": matrix.columns, "counts": ways, "p2p": matrix.enabled, **found}
    facts.put(subject, "result.conditions", conditions, matrix.line)


def _record_local(matrices: list[_Matrix], namer: Namer, facts: FactSink) -> None:
    """Record the copy within one GPU: the diagonal."""
    whole = []
    for matrix in matrices:
        if matrix.latency:
            continue
        try:
            whole.append((matrix, spread(_values(matrix), diagonal=True)))
        except ValueError:
            continue
    whole.sort(key=lambda item: not item[0].enabled)
    if whole and whole[0][1]:
        matrix, found = whole[0]
        subject = namer.subject("p2pbandwidth.local_copy", matrix.line)
        facts.put(subject, "result.bandwidth", float(found["min"]), matrix.line)
        facts.put(subject, "result.conditions", {"gpus": matrix.columns, "counts": "read+write", **found}, matrix.line)
