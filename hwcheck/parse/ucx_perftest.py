"""
ucx_perftest between two nodes, as hwcheck runs it (``-f``: final numbers only).

Source: openucx/ucx 1.13 (Debian's ucx-utils), the client's output for ``tag_bw`` and ``tag_lat`` over TCP; the lines of
    JSON around it are hwcheck's (:mod:`hwcheck.parse.pair`).
Shape: measurement ``hwcheck.ucx@<client>><server>`` with the overall bandwidth, or ``hwcheck.ucx.latency@...`` with the
    middle latency (percentile of 50).
Units: MB/s are 2**20 B/s → Gb/s of 10**9 bit/s; latency in us.
Missing: no row of final numbers means that the run broke off; the last line becomes the condition ``error``.

Raises: nothing.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import number, real
from hwcheck.parse.format import fmt
from hwcheck.parse.pair import PairText, last_words, put_figure, read_pair
from hwcheck.parse.sink import FactSink

GIVES = ("result.line_rate", "result.latency")
_ROW = re.compile(r"(?:Final:)?\s+(\d{1,12})((?:\s+[0-9.]{1,20}){7})\s*")
_LATENCY, _OVERALL = 0, 4
"""Columns behind the iterations: percentile, average and overall time, then average and overall MB/s."""


@fmt(
    "ucx_perftest",
    "ucx_perftest",
    gives=GIVES,
    opens=r'\{"test": "ucx',
    continues=r"[+|]|\s|\{|Final:|\[",
    command=r"\bucx_perftest\b",
)
def ucx_perftest(output: Output, facts: FactSink) -> None:
    """Read the row of final numbers."""
    pair: PairText | None = None
    row: re.Match[str] | None = None
    for line, text in enumerate(output.lines, output.first_line):
        if text.startswith('{"'):
            pair = read_pair(text, line, pair)
        else:
            row = _ROW.fullmatch(text) or row
    if pair is None or pair.role == "serve":
        return
    name = "result.latency" if pair.test.endswith("latency") else "result.line_rate"
    conditions, value = dict(pair.conditions), None
    if row is None:
        conditions["error"] = last_words(output)
    else:
        columns = [real(word) for word in row[2].split()]
        value = columns[_LATENCY] if name == "result.latency" else round(columns[_OVERALL] * 2**20 * 8 / 1e9, 3)
        conditions["samples"] = int(number(row[1]))
        if not value > 0:
            conditions["error"], value = f"no figure: {value}", None
    put_figure(facts, pair.subject, name, value, conditions, pair.line)
