"""
``nvfwupd show_version``: firmware of the board's components against an update package.

Source: ``nvfwupd ... show_version`` of NVIDIA, JSON and table; the user guide and a public output of a DGX H100.
Shape: one entry a component; the subject is the component by the name the tool prints (``HGX_FW_GPU_SXM_1``).
Units: none.
Missing: ``Pkg Version: N/A`` is a component that the package has no image for: absent, and ``Up-To-Date: No`` then says
    nothing. A JSON text that ends early gives the entries before the break and is cut off.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from hwcheck.errors import ParseError
from hwcheck.evidence import Output
from hwcheck.facts import Missing, Reason, Subject
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_GIVES = ("firmware.component.version", "firmware.component.package", "firmware.component.current")
_ENTRY = re.compile(r'\{[^{}]{0,2000}?"AP Name"[^{}]{0,2000}?\}')
_NAME = re.compile(r"^[\w.:() -]{1,80}$")
_ABSENT = ("N/A", "NA", "-", "")


@fmt("nvfwupd", "nvfwupd show_version (JSON)", gives=_GIVES, opens=r'json:"AP Name"')
def parse_nvfwupd(output: Output, facts: FactSink) -> None:
    """Read every component of the document, wherever it is nested."""
    text = output.text
    try:
        entries = list(_entries(json.loads(text), 0))
    except (ValueError, RecursionError):
        entries = [json.loads(found) for found in _ENTRY.findall(text) if _is_json(found)]
        if not entries:
            raise ParseError("no valid JSON of nvfwupd", output.first_line) from None
        facts.cut_off("the JSON of nvfwupd is broken or ends early", _GIVES)
    lines = _lines_of_names(output)
    for entry in entries:
        values = [entry.get(key) for key in ("AP Name", "Sys Version", "Pkg Version", "Up-To-Date")]
        _put(facts, values, lines.get(str(values[0]), 0))


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _entries(value: Any, depth: int) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict) and "AP Name" in value:
        yield value
    elif isinstance(value, (dict, list)) and depth < 8:
        for item in value.values() if isinstance(value, dict) else value:
            yield from _entries(item, depth + 1)


def _lines_of_names(output: Output) -> dict[str, int]:
    found: dict[str, int] = {}
    for index, text in enumerate(output.lines):
        for match in re.finditer(r'"AP Name":\s{0,4}"([^"]{1,80})"', text):
            found.setdefault(match[1], output.first_line + index)
    return found


@fmt(
    "nvfwupd.table",
    "nvfwupd show_version (table)",
    gives=_GIVES,
    opens=r"\s*AP Name\s+Sys Version\s+Pkg Version\s+Up-To-Date",
    continues=r"\s*(?:AP Name|-{3}|[\w.:()-]{1,80}\s{2,}\S+\s+\S+\s+(?:Yes|No)\s*$)",
)
def parse_nvfwupd_table(output: Output, facts: FactSink) -> None:
    """Read the rows: name, version, package version, Yes or No."""
    for index, text in enumerate(output.lines):
        parts = text.split()
        if len(parts) == 4 and parts[3] in ("Yes", "No"):
            _put(facts, parts, output.first_line + index)


def _put(facts: FactSink, values: list[Any], line: int) -> None:
    name, system, package, current = values
    if not isinstance(name, str) or not _NAME.match(name):
        return
    component = Subject("component", name)
    for fact, value in zip(_GIVES[:2], (system, package), strict=True):
        if isinstance(value, str) and value.strip().upper() in _ABSENT:
            facts.put(component, fact, Missing(Reason.ABSENT, value.strip()), line)
        elif isinstance(value, str) and len(value) <= 80 and value.isprintable():
            facts.put(component, fact, value.strip(), line)
        else:
            facts.unparsable(component, fact, repr(value)[:80], line)
    if isinstance(system, str) and system.strip().upper() not in _ABSENT:
        build = {"kind": re.sub(r"_\d{1,4}$", "", name), "version": system.strip()[:80]}
        facts.put(component, "firmware.component.build", build, line)
    if current in ("Yes", "No"):
        facts.put(component, _GIVES[2], current == "Yes", line)
    else:
        facts.unparsable(component, _GIVES[2], repr(current)[:80], line)
