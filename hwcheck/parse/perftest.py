"""
perftest: ``ib_write_bw``, ``ib_read_bw``, ``ib_send_bw``, ``ib_atomic_bw`` and their ``_lat`` sisters.

Source: linux-rdma/perftest 4.5 to 6.x, either side's terminal output.
Shape: one measurement a table, ``perftest.<ib_write_bw ...>``; the value is the best average over message sizes, or for
    latency the typical one at the smallest size. Device, queue pairs and link type are conditions.
Units: Gb/sec are 10**9 bit/s. MB/sec and MiB/sec are both 2**20 B/s: old versions printed the same number under the
    wrong label. Latency in us.
    Where lines of JSON name two nodes (:mod:`hwcheck.parse.pair`), the measurement is
    ``hwcheck.rdma.write@<client>/<device>><server>/<device>``, and raw samples of ``-U`` give ``hwcheck.warmup@...``.
Missing: no row under the header means that the run broke off; the tool's message becomes ``result.error``, and where
    GPU memory could not be registered ``rdma.gpu_memory_error``.

Raises: nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from hwcheck.evidence import Output
from hwcheck.facts import NODE, number, real
from hwcheck.parse.format import fmt
from hwcheck.parse.matrix import NOT_INITIALIZED, Namer, note_names
from hwcheck.parse.pair import PairText, last_words, put_figure, put_warmup, raw_samples, read_pair
from hwcheck.parse.sink import FactSink

GIVES = ("result.line_rate", "result.latency", "result.error", "rdma.gpu_memory_error")
_TITLE = re.compile(
    r"\s*(?:RDMA_)?(Write|Read|Send|Atomic|Raw Ethernet \w+)(?: Post List)?\s+(Bidirectional )?(BW|Latency) Test\s*$",
    re.IGNORECASE,
)
_COMMAND = re.compile(r"\b(?:ib_(write|read|send|atomic)_(bw|lat))\b")
_FIELD = re.compile(r"\s*(Device|Number of qps|Link type|Mtu|Transport type)\s*:\s*(\S+)")
_DEVICE = re.compile(r".{0,60}\bDevice\s+: (\S{1,40})\s*$")
_HEADER = re.compile(r"\s*#bytes\s+#iterations\s")
_UNIT = re.compile(r"BW average\[(Gb/sec|MB/sec|MiB/sec)\]")
_CUDA = re.compile(r"initializing CUDA|creating CUDA Ctx|allocated GPU buffer|Using (?:DMA-BUF|CUDA)", re.IGNORECASE)
_GPU_NAME = re.compile(r"\[pid = \d+, dev = \d+\] device name = \[([^\]]{1,80})\]")
_NO_REGION = re.compile(r"\s*Couldn't allocate MR(?: with error=(\d{1,4}))?")
_BROKEN = re.compile(
    r"\s*(?:Completion with error at|Failed status \d+|Couldn't (?!allocate MR)\w.{0,80}|Unable to \w.{0,80}"
    r"|Failed to (?!create)\w.{0,80}|ethernet_read_keys: .{0,80}|Unexpected CM event .{0,60}"
    r"|IB device \S{1,40} not found.{0,40}|Did not detect devices.{0,60})"
)
_SMALLEST_LARGE = 4096
"""Below this message size a bandwidth test measures the message rate."""


@dataclass(slots=True)
class _Run:
    name: str = ""
    line: int = 0
    unit: str = ""
    columns: list[str] = field(default_factory=list)
    rows: list[tuple[int, float]] = field(default_factory=list)
    conditions: dict[str, Any] = field(default_factory=dict)
    gpu: bool = False
    bad: str = ""
    pair: PairText | None = None
    said: str = ""
    broken: bool = False
    iterations: int = 0


@fmt(
    "perftest",
    "perftest (ib_write_bw and others)",
    gives=GIVES,
    opens=r"\s+(?:RDMA_(?:Write|Read)|Send|Atomic) (?:Post List )?(?:Bidirectional )?(?:BW|Latency) Test\s*$"
    r"|\s*#bytes\s+#iterations\s+(?:BW peak|t_min|t_avg)|WARNING: BW peak won't be measured"
    r"|Perftest doesn't supports CUDA|\* Waiting for client to connect|initializing CUDA|\s*Couldn't allocate MR",
    command=r"\bib_(?:write|read|send|atomic)_(?:bw|lat)\b",
)
def perftest(output: Output, facts: FactSink) -> None:
    """Read every table of a perftest log, and how a run broke off."""
    namer = Namer(output)
    command = output.command
    run = _begin(command)
    for index, text in enumerate(output.lines):
        line = output.first_line + index
        title = _TITLE.match(text)
        if text.startswith('{"'):
            run.pair = read_pair(text, line, run.pair)
        elif title:
            if (run.rows or run.bad) and run.pair is None:
                _finish(run, namer, facts)
                run = _begin(command)
            run.name, run.line = _title_name(title), line
            run.conditions["counts"] = "both-ways" if title[2] else "one-way"
        elif not _read_failure(run, text, command, namer, facts, line):
            _read_line(run, text, line)
            name = _GPU_NAME.match(text)
            if name:
                note_names(facts, [name[1]], line)
    if run.pair is None:
        _finish(run, namer, facts)
    elif run.pair.role != "serve":
        _finish_pair(run, run.pair, output, facts)


def _begin(command: str) -> _Run:
    found = _COMMAND.search(command)
    return _Run(f"ib_{found[1]}_{found[2]}" if found else "", gpu="--use_cuda" in command)


def _title_name(title: re.Match[str]) -> str:
    return f"ib_{title[1].lower().replace(' ', '_')}_{'bw' if title[3].lower() == 'bw' else 'lat'}"


def _read_failure(run: _Run, text: str, command: str, namer: Namer, facts: FactSink, line: int) -> bool:
    """Record how a run broke off; True when the line says so."""
    region, broken = _NO_REGION.match(text), _BROKEN.match(text)
    if region and run.gpu:
        way = "with --use_cuda_dmabuf" if "dmabuf" in command else "without --use_cuda_dmabuf"
        code = f"error {region[1]}" if region[1] else "no error number"
        run.said = f"GPU memory could not be registered ({code})"
        if run.pair is None or run.pair.role != "heard":  # else it is the other end's memory
            facts.put(NODE, "rdma.gpu_memory_error", f"{code}, {way if command else 'command not shown'}", line)
    elif run.broken and broken:
        return True  # only the first message tells the cause; what follows is the way out
    elif run.pair is not None and (region or broken):
        run.said = text.strip()[:120]
    elif region or broken:
        facts.put(namer.subject(f"perftest.{run.name or 'run'}", line), "result.error", text.strip()[:120], line)
    elif NOT_INITIALIZED in text:
        facts.put(NODE, "cuda.init_error", NOT_INITIALIZED, line)
    else:
        return False
    run.broken = True
    return True


def _read_line(run: _Run, text: str, line: int) -> None:
    known = _FIELD.match(text)
    device = _DEVICE.match(text)
    if device:
        run.conditions["device"] = device[1]
    if known and known[1] in ("Number of qps", "Link type"):
        _note_field(run, known[1], known[2])
    elif _CUDA.match(text.strip()):
        run.gpu = True
    elif "CPU Frequency is not max" in text:
        run.conditions["cpu_frequency_doubted"] = True
    elif _HEADER.match(text):
        unit = _UNIT.search(text)
        run.unit = unit[1] if unit else "us"
        run.columns = text.replace("% percentile", "%percentile").replace("BW ", "BW_").split()
        run.line = run.line or line
    elif run.columns and text[:24].strip()[:1].isdigit():
        _read_row(run, text)


def _note_field(run: _Run, key: str, text: str) -> None:
    if key == "Link type":
        run.conditions["link_type"] = text
    elif text.isdigit():
        run.conditions["qps"] = int(text[:6])


def _read_row(run: _Run, text: str) -> None:
    wanted = "BW_average" if run.unit != "us" else "t_typical"
    place = next((i for i, column in enumerate(run.columns) if column.startswith(wanted)), None)
    if place is None:  # duration runs (-D) print only an average
        place = next((i for i, column in enumerate(run.columns) if column.startswith("t_avg")), None)
    tokens = text.split()
    if place is None or len(tokens) <= place:
        run.bad = text
        return
    try:
        run.rows.append((int(number(tokens[0])), real(tokens[place])))
        run.iterations = int(number(tokens[1]))
    except ValueError:
        run.bad = text


def _finish_pair(run: _Run, pair: PairText, output: Output, facts: FactSink) -> None:
    """Record the measurement between two nodes; one without a row says what the tool said last."""
    name = "result.latency" if pair.test.endswith("latency") else "result.line_rate"
    conditions = {**run.conditions, **pair.conditions}
    if "link_type" in run.conditions:
        conditions["transport"] = run.conditions["link_type"]
    if pair.conditions.get("memory") == "gpu":
        conditions["gpudirect"] = run.gpu
    value = None
    if run.rows:
        size, value = _best(run, latency=name == "result.latency")
        conditions |= {"size": size, "samples": run.iterations}
    else:
        conditions["error"] = run.said or last_words(output)
    put_figure(facts, pair.subject, name, value, conditions, pair.line)
    put_warmup(facts, pair, raw_samples(output.lines), str(conditions.get("link_type", "")), pair.line)


def _best(run: _Run, *, latency: bool) -> tuple[int, float]:
    """Return message size and value of the row that counts."""
    if latency:
        return min(run.rows)
    large = [row for row in run.rows if row[0] >= _SMALLEST_LARGE] or run.rows
    size, value = max(large, key=lambda row: row[1])
    return size, round(value if run.unit == "Gb/sec" else value * 2**20 * 8 / 1e9, 3)


def _finish(run: _Run, namer: Namer, facts: FactSink) -> None:
    """Record the measurement of a table."""
    if not run.rows and not run.bad:
        return
    latency = run.unit == "us"
    subject = namer.subject(f"perftest.{run.name or ('ib_latency' if latency else 'ib_bandwidth')}", run.line)
    name = "result.latency" if latency else "result.line_rate"
    if not run.rows:
        facts.unparsable(subject, name, run.bad, run.line)
        return
    size, value = _best(run, latency=latency)
    facts.put(subject, name, round(value, 3), run.line)
    conditions = {**run.conditions, "size": size, "memory": "gpu" if run.gpu else "host"}
    facts.put(subject, "result.conditions", conditions, run.line)
