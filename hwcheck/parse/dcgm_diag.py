"""
``dcgmi diag``: its text table and its JSON, of DCGM 2, 3 and 4.

Source: NVIDIA/DCGM, ``dcgmi diag -r N`` and ``-j``. The table is cut into cells of fixed width in the middle of
    words, so the pieces of a cell are joined without a blank.
Shape: one node fact ``dcgm.tests``, a record a test: name, outcome (the worst over its GPUs), gpus (those with that
    outcome, as DCGM numbers them; "" for all), text (warnings, else infos), line. DCGM's GPU ids are its own
    numbering.
Units: none.
Missing: ``Skip`` is a test that was not run. ``null`` in place of a test (DCGM 3.1) is none. JSON that ends early is
    cut off.

Raises: nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from hwcheck.evidence import Output
from hwcheck.facts import NODE, Reason
from hwcheck.parse.format import fmt
from hwcheck.parse.json_document import line_with, load_document
from hwcheck.parse.matrix import NOT_INITIALIZED
from hwcheck.parse.sink import FactSink

GIVES = ("dcgm.tests",)
_WORDS = {"pass": "pass", "fail": "fail", "skip": "skip", "warn": "warn", "warning": "warn", "error": "fail"}
_ORDER = ("skip", "pass", "warn", "fail")
_TEXT_MAX = 2000
_TESTS_MAX = 500
_CELLS = re.compile(r"\s*\|([^|]{1,60})\|(.*)\|\s*$")
_OUTCOME = re.compile(r"\s*(?:(\w{1,12}): )?(Pass|Fail|Skip|Warn)\b(?: - (?:GPUs?: )?(\S.{0,120}?))?\s*$")
_NOTES = re.compile(r"(Warning|Info|Error)(?:: ?\S{1,16})?$")
_DRIVER = re.compile(r"Driver Version Detected$")


@dataclass(slots=True)
class _Test:
    name: str
    line: int
    outcomes: list[tuple[str, str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    infos: list[str] = field(default_factory=list)

    def record(self, output: Output) -> dict[str, Any]:
        """Sum up: the worst outcome, whom it is about, and the line that says so."""
        worst = max((outcome for outcome, _ in self.outcomes), key=_ORDER.index)
        gpus = [who for outcome, who in self.outcomes if outcome == worst and who and who != "All"]
        text = " ".join(note.rstrip() for note in self.warnings or self.infos)[:_TEXT_MAX]
        return {
            "name": self.name,
            "outcome": worst,
            "gpus": ", ".join(dict.fromkeys(gpus)),
            "text": text,
            "line": self.line,
            "excerpt": output.excerpt(self.line),
        }


@fmt(
    "dcgmi-diag",
    "dcgmi diag",
    gives=GIVES,
    opens=r"Successfully ran diagnostic for group|\| Diagnostic\s+\| Result",
    continues=r"\s*[|+]|\s*$|Successfully ran|Error\b",
    command=r"\bdcgmi\s+diag\b(?!.*\s(?:-j|--json)\b)",
)
def dcgm_diag(output: Output, facts: FactSink) -> None:
    """Read the table of test results."""
    tests: list[_Test] = []
    notes: list[str] | None = None
    for index, text in enumerate(output.lines):
        found = _CELLS.match(text)
        if text.startswith("Error"):
            facts.missing(NODE, "dcgm.tests", Reason.FAILED, text.strip()[:120], output.first_line + index)
        if not found or found[1].strip("- ") in ("Metadata", "Diagnostic") or len(tests) > _TESTS_MAX:
            continue
        line = output.first_line + index
        name, cell = found[1].strip(), found[2]
        if _DRIVER.match(name):
            facts.put(NODE, "driver.version", cell.strip()[:20], line)
        elif not name and notes is not None:
            notes[-1] += _piece(cell)
        elif tests and _NOTES.match(name):
            notes = tests[-1].infos if name.startswith("Info") else tests[-1].warnings
            notes.append(_piece(cell))
        else:
            notes = None
            _read_outcome(name, cell, tests, line)
    _record(tests, facts)
    filled = [text for text in output.lines if text.strip()]
    if any("Diagnostic" in text for text in filled) and not filled[-1].lstrip().startswith("+"):
        facts.cut_off("the table ends early", GIVES)


def _piece(cell: str) -> str:
    """Take the text of a cell: one blank stands in front of it, two behind, and its own blanks count."""
    return cell[1:-2] if len(cell) > 3 else cell.strip()


def _read_outcome(name: str, cell: str, tests: list[_Test], line: int) -> None:
    found = _OUTCOME.match(cell)
    if not found:
        return
    if name:
        tests.append(_Test(name, line))
    if tests:
        tests[-1].outcomes.append((_WORDS[found[2].lower()], found[1] or found[3] or ""))


@fmt(
    "dcgmi-diag.json",
    "dcgmi diag -j",
    gives=GIVES,
    opens='json:"test_categories"',
)
def dcgm_diag_json(output: Output, facts: FactSink) -> None:
    """Read the JSON document of test results."""
    document = load_document(output, facts, GIVES)
    diagnostics = [value for key, value in document.items() if key.startswith("DCGM ") and isinstance(value, dict)]
    tests: list[_Test] = []
    for diagnostic in diagnostics:
        for category in _records(diagnostic.get("test_categories")):
            tests.extend(_json_test(test, output) for test in _records(category.get("tests")))
        problem = diagnostic.get("runtime_error")
        if isinstance(problem, str) and problem:
            tests.append(_Test("run", output.first_line, [("fail", "")], [problem]))
    _record([test for test in tests if test.outcomes][:_TESTS_MAX], facts)
    driver = _find(document, "driver_version", "Driver Version Detected", "Driver Version")
    if driver and re.fullmatch(r"[\d.]{3,20}", driver):
        facts.put(NODE, "driver.version", driver, output.first_line)


def _records(value: Any) -> Iterable[dict[str, Any]]:
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def _json_test(test: dict[str, Any], output: Output) -> _Test:
    name = str(test.get("name", ""))[:80]
    found = _Test(name, line_with(output, json.dumps(name)))
    for result in _records(test.get("results")):
        outcome = _WORDS.get(str(result.get("status", "")).strip().lower())
        if outcome is None:
            continue
        who = result.get("gpu_ids", result.get("entity_id", ""))
        found.outcomes.append((outcome, str(who)[:200]))
        found.infos.extend(_texts(result.get("info")))
        found.warnings.extend(_texts(result.get("warnings", result.get("warning"))))
    return found


def _texts(value: Any) -> list[str]:
    """Collect messages: a text, a list of texts, or records with ``warning`` (DCGM 3 and 4)."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return _texts(value.get("warning", value.get("message")))
    return [text for item in value for text in _texts(item)] if isinstance(value, list) else []


def _find(document: dict[str, Any], *keys: str) -> str:
    """Look for a text under one of the keys, at most three levels down."""
    level: list[dict[str, Any]] = [document]
    for _ in range(3):
        for item in level:
            for key in keys:
                if isinstance(item.get(key), str):
                    return str(item[key])
        level = [value for item in level for value in item.values() if isinstance(value, dict)]
    return ""


def _record(tests: list[_Test], facts: FactSink) -> None:
    records = tuple(test.record(facts.output) for test in tests if test.outcomes)
    if not records:
        return
    facts.put(NODE, "dcgm.tests", records, records[0]["line"])
    for record in records:
        if NOT_INITIALIZED in record["text"]:
            facts.put(NODE, "cuda.init_error", NOT_INITIALIZED, record["line"])
            return
