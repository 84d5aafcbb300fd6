"""
nvbandwidth: copy bandwidth and latency between CPU and GPUs and among GPUs, as text.

Source: NVIDIA/nvbandwidth v0.5 to v0.10, ``nvbandwidth`` or ``nvbandwidth -t TEST``.
Shape: one measurement a test, ``nvbandwidth.<test>``; the value is the slowest cell of its matrix (statistic min), or
    the SUM line where a paste holds only those (statistic sum: it says nothing about the single GPU or pair). GPU names
    and PCI addresses from the ``Device N:`` lines; N is a CUDA ordinal and no nvidia-smi index.
Units: GB/s are 10**9 B/s; latency in ns becomes us.
Missing: ``N/A`` on the diagonal is no figure; ``Waived`` is absent (the test does not apply: one GPU). A matrix of
    another shape than the listed GPUs, or a test without a result, is unparsable; the other tests go on.

Raises: nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from hwcheck.evidence import Output
from hwcheck.facts import NODE, Reason, Subject, gpu_at, number, pci_address
from hwcheck.parse.format import fmt
from hwcheck.parse.json_document import line_with, load_document
from hwcheck.parse.matrix import GPUS_MAX, NOT_INITIALIZED, Namer, cells, note_names, spread
from hwcheck.parse.sink import FactSink

GIVES = ("result.bandwidth", "result.latency")
_DEVICE = re.compile(r"Device \d{1,3}: ([^(\"\s][^(\"]{0,79}?) ?(?:\(([0-9A-Fa-f:.]{7,16})\))?\s*$")
_RUNNING = re.compile(r"Running (\w{3,80})\.\s*$")
_SUM = re.compile(r"SUM (\w{3,80})\s+(\S{1,40})")
_WAIVED = re.compile(r"Waived:?\s*(\w*)")
_UNIT = re.compile(r"(?:memcpy|memory latency|latency)\b.{0,80}\((GB/s|ns|us)\)\s*$")
_DRIVER = re.compile(r"Driver Version:\s+([\d.]{3,20})\s*$")
_CUDA = re.compile(r"CUDA Driver Version(?: \(API\))?:\s+(?:(\d+\.\d+)|(\d{4,6}))\b")
_NAMES = r"(?:host_to|device_to|all_to|one_to|host_device|device_local)\w*"


@dataclass(slots=True)
class _Test:
    """One test while it is read."""

    name: str
    line: int
    unit: str = "GB/s"
    columns: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    sum: str = ""
    waived: bool = False


@fmt(
    "nvbandwidth",
    "nvbandwidth",
    gives=GIVES,
    opens=rf"nvbandwidth Version:|Built from Git version:|Running {_NAMES}\.|SUM {_NAMES}\s|memcpy (?:CE|SM) \S+\(row\)"
    r'|Waived:|Device \d+: [^"(\s][^"(]{0,79}(?:\([0-9A-Fa-f:.]{7,16}\))?\s*$',
    command=r"\bnvbandwidth\b",
    rank=45,
)
def nvbandwidth(output: Output, facts: FactSink) -> None:
    """Read every test of an nvbandwidth run."""
    names: list[str] = []
    tests: dict[str, _Test] = {}
    done: list[_Test] = []
    current: _Test | None = None
    for index, text in enumerate(output.lines):
        line = output.first_line + index
        running, total, device = _RUNNING.match(text), _SUM.match(text), _DEVICE.match(text)
        begins = running or (total if total and (total[1] not in tests or tests[total[1]].sum) else None)
        if begins:
            current = tests[begins[1]] = _Test(begins[1], line)
            done.append(current)
        if total:
            tests[total[1]].sum = total[2]
            current = None
        elif device:
            names.append(device[1])
            _note_gpu(device, facts, line)
        elif current is not None and not running:
            _read_line(current, text)
        _read_head(text, facts, line)
    note_names(facts, names, output.first_line)
    namer = Namer(output)
    for test in done:
        _record(test, len(names), namer.subject(f"nvbandwidth.{test.name}", test.line), facts)


def _note_gpu(device: re.Match[str], facts: FactSink, line: int) -> None:
    if device[2] and pci_address(device[2]):
        facts.put(gpu_at(device[2]), "gpu.name", device[1].strip(), line)


def _read_head(text: str, facts: FactSink, line: int) -> None:
    driver, cuda = _DRIVER.match(text), _CUDA.match(text)
    if driver:
        facts.put(NODE, "driver.version", driver[1], line)
    elif cuda:
        # v0.6 prints 12040, v0.10 prints 13.2 (13020)
        version = cuda[1] or f"{int(cuda[2]) // 1000}.{int(cuda[2]) % 1000 // 10}"
        facts.put(NODE, "driver.cuda_version", version, line)
    elif NOT_INITIALIZED in text:
        facts.put(NODE, "cuda.init_error", NOT_INITIALIZED, line)


def _read_line(test: _Test, text: str) -> None:
    unit, tokens = _UNIT.match(text), text.split()
    if unit:
        test.unit = unit[1]
    elif _WAIVED.match(text):
        test.waived = not test.rows
    elif tokens and all(token.isdigit() for token in tokens) and not test.columns:
        test.columns = tokens
    elif test.columns and len(tokens) > 1 and tokens[0].isdigit() and len(test.rows) <= GPUS_MAX:
        test.rows.append(tokens[1:])


def _record(test: _Test, gpus: int, subject: Subject, facts: FactSink) -> None:
    latency = test.unit in ("ns", "us") or "latency" in test.name
    name = "result.latency" if latency else "result.bandwidth"
    if test.waived and not test.sum:
        facts.missing(subject, name, Reason.ABSENT, "waived by nvbandwidth: does not apply to this machine", test.line)
        return
    factor = {"ns": 1e-3, "us": 1.0}.get(test.unit, 1e-3 if latency else 1.0)
    try:
        conditions = _figures(test, gpus, slowest_is_highest=latency)
    except ValueError as error:
        facts.missing(subject, name, Reason.UNPARSABLE, f"{test.name}: {error}", test.line)
        return
    for key in {"value", "min", "median", "max"} & set(conditions):
        conditions[key] = round(float(conditions[key]) * factor, 6)
    value = conditions.pop("value")
    conditions["counts"] = "both-ways" if "bidirectional" in test.name else "one-way"
    facts.put(subject, name, value, test.line)
    facts.put(subject, "result.conditions", conditions, test.line)


def _figures(test: _Test, gpus: int, *, slowest_is_highest: bool) -> dict[str, Any]:
    """
    Sum up the matrix or take the SUM line.

    Raises:
        ValueError: neither is there, or the matrix does not fit the GPUs.
    """
    if not test.columns:
        if not test.sum:
            raise ValueError("no result")
        return {"value": number(test.sum), "statistic": "sum"}
    width = len(test.columns)
    square = test.name.startswith("device_to_device")
    if gpus and width != gpus:
        raise ValueError(f"the matrix has {width} columns, but {gpus} GPU(s) are listed")
    if any(len(row) != width for row in test.rows):
        raise ValueError("a row is not complete")
    if square and len(test.rows) != width:
        raise ValueError(f"the matrix has {len(test.rows)} rows and {width} columns")
    found = spread([cells(row) for row in test.rows])
    if not found:
        raise ValueError("no figure in the matrix")
    return {"value": found["max" if slowest_is_highest else "min"], "gpus": width, **found}


@fmt("nvbandwidth.json", "nvbandwidth -j", gives=GIVES, opens='json:"bandwidth_matrix"')
def nvbandwidth_json(output: Output, facts: FactSink) -> None:
    """Read the JSON form (v0.6 and later): the same tests, matrices as lists of texts."""
    root = load_document(output, facts, GIVES).get("nvbandwidth")
    cases = root.get("testcases") if isinstance(root, dict) else None
    namer = Namer(output)
    for case in cases if isinstance(cases, list) else ():
        if not isinstance(case, dict) or not isinstance(case.get("name"), str):
            continue
        name = case["name"][:80]
        line = line_with(output, f'"{name}"')
        test = _Test(name, line, waived=str(case.get("status", "")).lower() == "waived")
        matrix = case.get("bandwidth_matrix")
        rows = [row for row in matrix if isinstance(row, list)][:GPUS_MAX] if isinstance(matrix, list) else []
        test.unit = "ns" if "latency" in name else "GB/s"
        test.rows = [[str(cell)[:40] for cell in row] for row in rows]
        test.columns = [str(i) for i in range(len(test.rows[0]))] if test.rows else []
        test.sum = str(case["sum"])[:40] if isinstance(case.get("sum"), (int, float, str)) else ""
        _record(test, 0, namer.subject(f"nvbandwidth.{name}", line), facts)
