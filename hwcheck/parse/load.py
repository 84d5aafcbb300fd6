"""
What hwcheck's own measurements of tier load tell: one JSON object a line.

Source: hwcheck/sources/load_*.py. ``{"test": "h2d", "on": "0000:18:00.0", "value": 55.2, "unit": "GB/s", "samples":
    [...], "conditions": {...}}``; before it ``{"test": ..., "on": ..., "begins": true}``; in its place ``{"test": ...,
    "on": ..., "error": "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (2)"}``; ``{"init": ...}`` where CUDA does not start.
Shape: measurement ``hwcheck.<test>@<on>`` with its value by unit, and ``result.conditions``; the samples stand in them
    as ``values``. A measurement without a figure has the condition ``error`` and no value.
Units: GB/s (10**9 B/s), Gb/s, us.
Missing: one that began and did not end has an error that says so. Zero, negative, infinite or no number is no figure.
    Conditions of a name or type that is not known are left out.

Raises: nothing.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, TypeGuard

from hwcheck.evidence import Output
from hwcheck.facts import NODE, Subject
from hwcheck.parse.cuda_sanity import WORDS
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

GIVES = ("result.bandwidth", "result.latency", "result.line_rate")
_UNITS = {"GB/s": "result.bandwidth", "us": "result.latency", "Gb/s": "result.line_rate"}
_TEST = re.compile(r"[a-z][a-z0-9_]{0,19}(?:\.[a-z0-9_]{1,19}){0,2}")
_ON = re.compile(r"[\w.:>/+-]{0,100}")
_VALUES_MAX, _LINES_MAX, _TEXT_MAX = 200, 4096, 300
_NUMBERS = frozenset((
    "size", "spread", "seconds", "sm_clock", "sm_clock_max", "memory_clock", "memory_clock_max", "pcie_gen",
    "pcie_gen_max", "pcie_width", "pcie_width_max", "temperature", "looks", "ecc_errors", "remapped_rows", "numa_node",
    "busy", "load_average", "samples", "count", "threads", "p50", "p99", "p999", "max", "host_p50", "host_p99",
    "host_p999", "host_max", "depth",
))  # fmt: skip
_FLAGS = frozenset(("numa_bound", "retested", "p2p", "gpudirect"))
_TEXTS = frozenset((
    "counts", "memory", "unwatched", "log_unread", "numa_unknown", "numa_refused", "governor", "transport",
    "transport_expected", "where",
))  # fmt: skip
_LISTS = frozenset(("throttled", "strangers", "xids"))
_SERIES = frozenset(("series",))
_TABLES = frozenset(("interrupts",))


@fmt(
    "hwcheck.load",
    "measurements of hwcheck",
    gives=GIVES,
    opens=r'\{"test": "[a-z]|\{"init": "cu',
    continues=r'\{"test": "[a-z]|\{"init": "|\s*$',
)
def parse_load(output: Output, facts: FactSink) -> None:
    """Put each figure with its conditions, and what kept one from being had."""
    begun: dict[Subject, int] = {}
    for line, text in enumerate(output.lines[:_LINES_MAX], output.first_line):
        record = _record(text)
        if isinstance(record.get("init"), str):
            error = record["init"][:160]
            words = next((f"{words}: " for name, words in WORDS.items() if name in error), "")
            facts.put(NODE, "cuda.init_error", words + error, line)
        test, on = record.get("test"), record.get("on")
        if not (isinstance(test, str) and isinstance(on, str) and _TEST.fullmatch(test) and _ON.fullmatch(on)):
            continue
        subject = Subject("measurement", f"hwcheck.{test}" + (f"@{on}" if on else ""))
        if record.get("begins") is True:
            begun[subject] = line
            continue
        begun.pop(subject, None)
        _put(record, subject, facts, line)
    for subject, line in begun.items():
        why = f": {output.detail}" if output.detail else ""
        facts.put(subject, "result.conditions", {"error": f"began and did not end{why}"}, line)
    facts.only_about(())  # what was measured stands; the rest is said of the source


def _record(text: str) -> dict[str, Any]:
    try:
        record = json.loads(text) if text.startswith("{") else {}
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _put(record: dict[str, Any], subject: Subject, facts: FactSink, line: int) -> None:
    conditions = _conditions(record.get("conditions"))
    name = _UNITS.get(str(record.get("unit")))
    value = record.get("value")
    if isinstance(record.get("error"), str):
        conditions["error"] = record["error"][:_TEXT_MAX]
    elif name is None:
        conditions["error"] = f"unit not known: {str(record.get('unit'))[:20]!r}"
    elif not _is_number(value) or value <= 0:
        conditions["error"] = f"no figure: {str(value)[:20]}"
    else:
        conditions["values"] = [float(item) for item in _some(record.get("samples")) if _is_number(item)]
        facts.put(subject, name, float(value), line)
    facts.put(subject, "result.conditions", conditions, line)


def _conditions(told: Any) -> dict[str, Any]:
    """Take the conditions whose name and type are known."""
    found: dict[str, Any] = {}
    for key, value in told.items() if isinstance(told, dict) else ():
        if (
            (key in _NUMBERS and _is_number(value))
            or (key in _FLAGS and isinstance(value, bool))
            or (key in _TEXTS and isinstance(value, str))
        ):
            found[key] = value[:_TEXT_MAX] if isinstance(value, str) else value
        elif key in _LISTS and isinstance(value, list):
            found[key] = [str(item)[:_TEXT_MAX] for item in value[:_VALUES_MAX]]
        elif key in _SERIES:
            found[key] = [item for item in _some(value) if _is_number(item)]
        elif key in _TABLES and isinstance(value, dict):
            rows = [(str(name)[:60], count) for name, count in list(value.items())[:20] if _is_number(count)]
            found[key] = dict(rows)
    return found


def _some(value: Any) -> list[Any]:
    return value[:_VALUES_MAX] if isinstance(value, list) else []


def _is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
