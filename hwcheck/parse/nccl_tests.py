"""
nccl-tests: ``all_reduce_perf`` and its sisters, as text.

Source: NVIDIA/nccl-tests, ``src/common.cu`` of 2.10 to 2.17; run alone, under mpirun, or with srun --label.
Shape: one measurement a table, ``nccl.<collective>``. The collective is in the command or in newer headers; else it
    follows from redop, root and busbw / algbw, which is 2(n-1)/n for all-reduce and (n-1)/n for reduce-scatter,
    all-gather and all-to-all. The value is the better of out-of-place and in-place at the largest size: small messages
    measure latency, and the average line mixes both.
Units: GB/s are 10**9 B/s, as ours; sizes in B; times in us are not kept.
Missing: ``N/A`` under #wrong is "not validated", never zero. The line "Out of bounds values : 0 OK" is printed also
    when nothing was checked, so OK says nothing; FAILED counts, whatever the columns say, and also where the table is
    not in the text. A head that is cut off leaves the hosts unknown.

Raises: nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from hwcheck.evidence import Output
from hwcheck.facts import NODE, real
from hwcheck.parse.format import fmt
from hwcheck.parse.matrix import NOT_INITIALIZED, Namer, note_names
from hwcheck.parse.nccl_env import parse_nccl_log
from hwcheck.parse.sink import FactSink

GIVES = ("result.busbw", "result.error")
COLLECTIVES = (
    "all_reduce|all_gather|reduce_scatter|broadcast|reduce|alltoall|alltoallv|sendrecv|gather|scatter|hypercube"
)
_PREFIX = re.compile(r"\s*\d{1,6}: ?")  # srun --label, where the reader has left it
_COMMAND = re.compile(rf"\b({COLLECTIVES})_perf\b")
_RANK = re.compile(
    r"#\s+Rank\s+(\d{1,6})\s+(?:Group\s+\d+\s+)?Pid\s+\d+ on\s+(\S+)\s+device\s+\d+\s+\[[^\]]{1,20}\]\s*(.*)"
)
_FAILURE = re.compile(r"(?:\S+: )?\s*Test (CUDA|NCCL) failure \S+:\d+ '([^']{0,200})")
_FAILED = re.compile(r"#\s*Out of bounds values\s*:\s*(\S{1,20}\s+)?FAILED\b", re.IGNORECASE)
_HEADER = re.compile(r"#\s+size\s+count\s+type\s+redop\b")
_ROW = re.compile(r"\s*\d{1,20}\s+\d{1,20}\s+\w+\s+\w+\s+(?:-?\d+\s+)?[\d.]+\s+[\d.]+\s+[\d.]+\s+\S+")
_COLUMNS = (
    "size",
    "count",
    "type",
    "redop",
    "root",
    "time",
    "algbw",
    "busbw",
    "#wrong",
    "time",
    "algbw",
    "busbw",
    "#wrong",
)

_CHANNEL = re.compile(r"NCCL INFO Channel \d{1,3}.{0,80} via ([A-Z][A-Z0-9]{1,11}\S{0,60})")


@dataclass(slots=True)
class _Row:
    size: int
    redop: str
    dtype: str
    root: str
    algbw: float
    busbw: float
    wrong: int | None


@dataclass(slots=True)
class _Run:
    """One table with what stood above it."""

    collective: str = ""
    ranks: dict[int, str] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    columns: tuple[str, ...] = _COLUMNS
    rows: list[_Row] = field(default_factory=list)
    bad: list[tuple[int, str]] = field(default_factory=list)
    average: float | None = None
    failed: str = ""
    line: int = 0
    via: set[str] = field(default_factory=set)


@fmt(
    "nccl-tests",
    "nccl-tests",
    gives=GIVES,
    opens=r"(?:\s*\d{1,6}: ?)?(?:# nThread \d+ nGpus|#\s+nccl-tests version|# Using devices"
    r"|#\s+Rank\s+\d+\s+(?:Group\s+\d+\s+)?Pid"
    r"|#\s+size\s+count\s+type\s+redop|#\s+out-of-place\s+in-place|# Collective test starting"
    r"|#\s*Out of bounds values\s*:"
    r"|(?:\S+: )?\s*Test (?:CUDA|NCCL) failure )",
    command=rf"\b(?:{COLLECTIVES})_perf\b",
    rank=40,
)
def nccl_tests(output: Output, facts: FactSink) -> None:
    """Read every table of an nccl-tests log, and how a run broke off."""
    namer = Namer(output)
    run = _Run(_collective_of(output.command))
    via: set[str] = set()
    for index, raw in enumerate(output.lines):
        if channel := _CHANNEL.search(raw[:400]):
            via.add(channel[1])
            run.via = via  # channels are set up once, for all tables of the run
            continue
        prefix = _PREFIX.match(raw)
        text = raw[prefix.end() :] if prefix else raw
        line = output.first_line + index
        if run.rows and (text.startswith(("# nThread", "# Using devices", "# Collective")) or _HEADER.match(text)):
            _finish(run, namer, facts)
            run = _Run(_collective_of(output.command), ranks=dict(run.ranks), names=list(run.names), via=via)
        if text.startswith("# Using devices"):
            run.ranks, run.names = {}, []
        _read_line(run, text, line)
        failure = _FAILURE.match(text)
        if failure:
            _note_failure(failure, namer, facts, line)
    _finish(run, namer, facts)
    if any("NCCL INFO" in text for text in output.lines):
        parse_nccl_log(output, facts)


def _collective_of(command: str) -> str:
    found = _COMMAND.search(command)
    return found[1] if found else ""


def _read_line(run: _Run, text: str, line: int) -> None:
    rank = _RANK.match(text)
    if rank:
        run.ranks[int(rank[1])] = rank[2]
        run.names.append(rank[3])
        run.line = run.line or line
    elif _HEADER.match(text):
        run.columns = tuple(text.lstrip("# ").split())
        run.line = line
    elif text.startswith("#"):
        _read_remark(run, text, line)
    elif _ROW.match(text):
        row = _read_row(text.split(), run.columns)
        if row is None:
            run.bad.append((line, text))
        else:
            run.rows.append(row)
            run.line = run.line or line


def _read_remark(run: _Run, text: str, line: int) -> None:
    named, failed = _COMMAND.search(text), _FAILED.match(text)
    if named:
        run.collective = named[1]
    elif failed:
        run.failed = f"{(failed[1] or '').strip()} FAILED".strip()
        run.line = run.line or line
    elif "Avg bus bandwidth" in text:
        run.average = _figure((text.rpartition(":")[2].split() or [""])[0])  # OK or FAILED may stand behind it


def _figure(text: str) -> float | None:
    try:
        return real(text)
    except ValueError:
        return None


def _read_row(tokens: list[str], columns: tuple[str, ...]) -> _Row | None:
    """Read a row by the names of its columns; None when it does not fit them."""
    if len(tokens) != len(columns):
        return None
    places: dict[str, list[str]] = {}
    for name, token in zip(columns, tokens, strict=True):
        places.setdefault(name, []).append(token)
    wrongs = places.get("#wrong") or places.get("error") or []
    busbw = [_figure(token) for token in places.get("busbw", [])]
    algbw = [_figure(token) for token in places.get("algbw", [])]
    told = [(bus, alg) for bus, alg in zip(busbw, algbw, strict=False) if bus is not None and alg is not None]
    size = _figure(places["size"][0]) if "size" in places else None
    if not told or size is None:
        return None
    best, alg = max(told)
    counts = [_figure(token) for token in wrongs]
    checked = bool(counts) and all(count is not None for count in counts)
    wrong = int(sum(count or 0 for count in counts)) if checked and "#wrong" in places else None
    return _Row(
        int(size),
        places.get("redop", [""])[0],
        places.get("type", [""])[0],
        places.get("root", ["-1"])[0],
        alg,
        best,
        wrong,
    )


def _note_failure(failure: re.Match[str], namer: Namer, facts: FactSink, line: int) -> None:
    words = failure[2].strip(" /")
    if NOT_INITIALIZED in words:
        facts.put(NODE, "cuda.init_error", words, line)
        return
    facts.put(namer.subject("nccl", line), "result.error", f"nccl-tests stopped: {failure[1]} failure: {words}", line)


def _finish(run: _Run, namer: Namer, facts: FactSink) -> None:
    """Record the measurement of a table."""
    note_names(facts, run.names, run.line)
    if not run.rows:
        if run.bad:
            line, text = run.bad[0]
            facts.unparsable(namer.subject(f"nccl.{run.collective or 'collective'}", line), "result.busbw", text, line)
        if run.failed:
            subject = namer.subject(f"nccl.{run.collective or 'collective'}", run.line)
            facts.put(subject, "result.conditions", {"failed": run.failed}, run.line)
        return
    last = max(run.rows, key=lambda row: row.size)
    ranks, hosts = _ranks(run, last)
    name = run.collective or _guess(last, ranks)
    subject = namer.subject(f"nccl.{name}", run.line)
    facts.put(subject, "result.busbw", last.busbw, run.line)
    facts.put(subject, "result.conditions", _conditions(run, last, ranks, hosts), run.line)


def _ranks(run: _Run, last: _Row) -> tuple[int | None, int | None]:
    """Count ranks and hosts; hosts only from a complete list."""
    if run.ranks:
        total = max(run.ranks) + 1
        return total, len(set(run.ranks.values())) if len(run.ranks) == total else None
    ratio = last.busbw / last.algbw if last.algbw > 1 else 0.0
    # all-reduce only: 2(n-1)/n names n within rounding as long as n is small
    return (round(2 / (2 - ratio)) if 1.01 < ratio < 1.9995 and last.redop != "none" else None), None


def _guess(row: _Row, ranks: int | None) -> str:
    """Name the collective of a table whose command is not there; "collective" where several fit."""
    ratio = row.busbw / row.algbw if row.algbw > 1 else 0.0
    if row.redop != "none" and row.root in ("-1", "0"):
        if ratio > 1.01:
            return "all_reduce"
        if row.root == "-1" and 0 < ratio < 0.99 and ranks != 1:
            return "reduce_scatter"
    return "collective"


def _conditions(run: _Run, last: _Row, ranks: int | None, hosts: int | None) -> dict[str, Any]:
    peak = max(run.rows, key=lambda row: row.busbw)
    wrongs = [row.wrong for row in run.rows]
    validated = all(wrong is not None for wrong in wrongs)
    conditions: dict[str, Any] = {
        "ranks": ranks,
        "hosts": hosts,
        "size": last.size,
        "dtype": last.dtype,
        "validated": validated,
        "wrong": sum(wrong or 0 for wrong in wrongs) if any(wrong is not None for wrong in wrongs) else None,
        "peak": peak.busbw,
        "peak_size": peak.size,
        "gpu_names": sorted(set(run.names)),
    }
    if run.average is not None:
        conditions["average"] = run.average
    if run.failed:
        conditions["failed"] = run.failed
    return conditions | _path(run.via)


def _path(via: set[str]) -> dict[str, Any]:
    """Say what carried the data, by the channels of NCCL's log: the slowest kind of them, and GPUDirect over NICs."""
    found: dict[str, Any] = {}
    kinds = {channel.partition("/")[0] for channel in via}
    if kinds:
        found["transport"] = next((kind for kind in ("NET", "SHM", "P2P") if kind in kinds), min(kinds))
    over_nics = [channel for channel in via if channel.startswith("NET/IB")]
    if over_nics:
        found["gpudirect"] = all("GDRDMA" in channel for channel in over_nics)
    return found
