"""
What is told around a measurement between two nodes: who was client and server, and what their ports ran at.

Declares no format. The text of a tool (perftest, ucx_perftest) has lines of JSON before and behind it: ``{"test":
"rdma.write", "on": "gpu-001/mlx5_0>gpu-002/mlx5_0", "role": "call", "conditions": {...}}``. Hwcheck's own tests have
the same conditions in each line. Roles: ``call``, the client's text; ``serve``, the server's, which has no figure of
its own; ``heard``, the client's text as the server's node keeps it. The record ``result.pair`` is what pairs of nodes
are compared by; ``marked`` in it is the end whose port ran at less than the rail's rate, "" when that is none or both.
"""

from __future__ import annotations

import json
import re
import statistics
from dataclasses import dataclass, field
from typing import Any

from hwcheck.evidence import Output
from hwcheck.facts import Subject
from hwcheck.parse.conditions import known_conditions
from hwcheck.parse.sink import FactSink

UNITS = {"result.bandwidth": "GB/s", "result.line_rate": "Gb/s", "result.latency": "us"}
_TEST = re.compile(r"[a-z][a-z0-9_]{0,19}(?:\.[a-z0-9_]{1,19}){0,2}")
_ON = re.compile(r"[\w.:>/+-]{1,200}")
_SAMPLE = re.compile(r"\s*(\d{1,7}), ([0-9.eE+-]{1,20})\s*")
SAMPLES_HEAD = "#, usec"
_FIRST = 20  # raw samples that are kept: the warm-up is over by then


@dataclass(slots=True)
class PairText:
    """
    The lines of JSON around the text of a tool.

    Attributes:
        test, on: name of the measurement.
        role: ``call``, ``serve`` or ``heard``.
        line: of the first.
        conditions: of both ends, the later line over the earlier.
    """

    test: str
    on: str
    role: str
    line: int
    conditions: dict[str, Any] = field(default_factory=dict)

    @property
    def subject(self) -> Subject:
        """The measurement."""
        return Subject("measurement", f"hwcheck.{self.test}@{self.on}")

    def named(self, test: str) -> Subject:
        """Return another measurement of the same two ends."""
        return Subject("measurement", f"hwcheck.{test}@{self.on}")


def read_pair(text: str, line: int, before: PairText | None = None) -> PairText | None:
    """Read a line of JSON; a text that is none leaves what was read before."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return before
    if not isinstance(record, dict):
        return before
    test, on = record.get("test"), record.get("on")
    if not (isinstance(test, str) and isinstance(on, str) and _TEST.fullmatch(test) and _ON.fullmatch(on)):
        return before
    conditions = known_conditions(record.get("conditions"))
    if before is None or (test, on) != (before.test, before.on):
        return PairText(test, on, str(record.get("role"))[:10], line, conditions)
    before.conditions |= conditions
    return before


def last_words(output: Output) -> str:
    """Return why a run gave no figure: how its source ended, or the last line that the tool printed."""
    said = [text.strip() for text in output.lines if text.strip("+-|= \t") and not text.startswith('{"')]
    return (output.detail or (said[-1] if said else "it said nothing"))[:200]


def put_figure(
    facts: FactSink, subject: Subject, name: str, value: float | None, conditions: dict[str, Any], line: int
) -> None:
    """
    Put a figure between two nodes, or why there is none.

    Args:
        facts: where to.
        subject: the measurement.
        name: ``result.line_rate`` or ``result.latency``.
        value: in its unit; None where ``conditions["error"]`` says why there is none.
        conditions: with ``client`` and ``server``.
        line: where it stands.
    """
    if value is not None:
        facts.put(subject, name, value, line)
    facts.put(subject, "result.conditions", conditions, line)
    note_pair(facts, subject, name, value, conditions, line)


def note_pair(
    facts: FactSink, subject: Subject, name: str, value: float | None, conditions: dict[str, Any], line: int
) -> None:
    """Put the record by which pairs of nodes are compared; nothing where the conditions name no two nodes."""
    client, server = conditions.get("client"), conditions.get("server")
    if not client or not server:
        return
    rate, ends = conditions.get("link_rate", 0), {client: "client_rate", server: "server_rate"}
    marked = [node for node, key in ends.items() if 0 < conditions.get(key, 0) < rate]
    record = {
        "test": subject.id.partition("@")[0].removeprefix("hwcheck."), "client": client, "server": server,
        "rail": conditions.get("rail", ""), "value": value, "unit": UNITS.get(name, ""),
        "marked": marked[0] if len(marked) == 1 else "",
    }  # fmt: skip
    facts.put(subject, "result.pair", record, line)


def first_against_steady(samples: list[float]) -> dict[str, Any]:
    """
    Compare the first sample with the median of the others.

    Returns:
        ``first_us``, ``steady_us``, ``ratio``; {} for fewer than three samples or a median of zero.
    """
    if len(samples) < 3 or (steady := statistics.median(samples[1:])) <= 0:
        return {}
    return {
        "first_us": samples[0], "steady_us": steady, "ratio": round(samples[0] / steady, 3), "samples": len(samples),
        "values": samples[:_FIRST],
    }  # fmt: skip


def put_warmup(facts: FactSink, text: PairText, samples: list[float], transport: str, line: int) -> None:
    """Put how the first message compares with the others, where there are enough."""
    told = first_against_steady(samples)
    if told:
        conditions = {**text.conditions, **told, "transport": transport}
        put_figure(facts, text.named("warmup"), "result.latency", told["first_us"], conditions, line)


def raw_samples(lines: list[str]) -> list[float]:
    """
    Return the samples that perftest prints with ``-U``: half a round trip each, in the order they were sent.

    Source: perftest, print_report_lat: ``#, usec``, then ``NUMBER, VALUE`` a line; sorted ones may follow.
    """
    found: list[float] = []
    start = next((place for place, line in enumerate(lines) if SAMPLES_HEAD in line), len(lines))
    for line in lines[start + 1 :]:
        match = _SAMPLE.fullmatch(line)
        if match is None or int(match[1]) != len(found) + 1:
            break
        try:
            found.append(float(match[2]))
        except ValueError:
            break
    return found
