"""
What hwcheck's own measurements of tier load tell: one JSON object a line.

Source: hwcheck/sources/load_*.py. ``{"test": "h2d", "on": "0000:18:00.0", "value": 55.2, "unit": "GB/s", "samples":
    [...], "conditions": {...}}``; before it ``{"test": ..., "on": ..., "begins": true}``; in its place ``{"test": ...,
    "on": ..., "error": "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (2)"}``; ``{"init": ...}`` where CUDA does not start.
Shape: measurement ``hwcheck.<test>@<on>`` with its value by unit, and ``result.conditions``; the samples stand in them
    as ``values``. A measurement without a figure has the condition ``error`` and no value. Where the conditions name
    two nodes (``client``, ``server``), the record ``result.pair`` stands beside it.
Units: GB/s (10**9 B/s), Gb/s, us.
Missing: one that began and did not end has an error that says so. Zero, negative, infinite or no number is no figure.
    Conditions of a name or type that is not known are left out.

Raises: nothing.
"""

from __future__ import annotations

import json
import re
from typing import Any

from hwcheck.evidence import Output
from hwcheck.facts import NODE, Subject
from hwcheck.parse.conditions import TEXT_MAX, is_number, known_conditions, some
from hwcheck.parse.cuda_sanity import WORDS
from hwcheck.parse.format import fmt
from hwcheck.parse.pair import note_pair
from hwcheck.parse.sink import FactSink

GIVES = ("result.bandwidth", "result.latency", "result.line_rate")
_UNITS = {"GB/s": "result.bandwidth", "us": "result.latency", "Gb/s": "result.line_rate"}
_TEST = re.compile(r"[a-z][a-z0-9_]{0,19}(?:\.[a-z0-9_]{1,19}){0,2}")
_ON = re.compile(r"[\w.:>/+-]{0,200}")
_LINES_MAX = 4096


@fmt(
    "hwcheck.load",
    "measurements of hwcheck",
    gives=GIVES,
    opens=r'\{"test": "(?!rdma|ucx)[a-z]|\{"init": "cu',
    continues=r'\{"test": "[a-z]|\{"init": "|\s*$',
)
def parse_load(output: Output, facts: FactSink) -> None:
    """Put each figure with its conditions, and what kept one from being had."""
    begun: dict[Subject, tuple[int, dict[str, Any]]] = {}
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
            begun[subject] = line, known_conditions(record.get("conditions"))
            continue
        begun.pop(subject, None)
        _put(record, subject, facts, line)
    for subject, (line, conditions) in begun.items():
        conditions["error"] = "began and did not end" + (f": {output.detail}" if output.detail else "")
        facts.put(subject, "result.conditions", conditions, line)
        note_pair(facts, subject, "", None, conditions, line)
    facts.only_about(())  # what was measured stands; the rest is said of the source


def _record(text: str) -> dict[str, Any]:
    try:
        record = json.loads(text) if text.startswith("{") else {}
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _put(record: dict[str, Any], subject: Subject, facts: FactSink, line: int) -> None:
    conditions = known_conditions(record.get("conditions"))
    name = _UNITS.get(str(record.get("unit")))
    value = record.get("value")
    if isinstance(record.get("error"), str):
        conditions["error"] = record["error"][:TEXT_MAX]
    elif name is None:
        conditions["error"] = f"unit not known: {str(record.get('unit'))[:20]!r}"
    elif not is_number(value) or value <= 0:
        conditions["error"] = f"no figure: {str(value)[:20]}"
    else:
        conditions["values"] = [float(item) for item in some(record.get("samples")) if is_number(item)]
        facts.put(subject, name, float(value), line)
    facts.put(subject, "result.conditions", conditions, line)
    figure = float(value) if "error" not in conditions and is_number(value) else None
    note_pair(facts, subject, name or "", figure, conditions, line)
