"""
Error counters of the memory controllers.

Source: kernel ABI sysfs-devices-edac: ``/sys/devices/system/edac/mc``; the node program or ``grep . FILES``.
Shape: ``memory.edac.*`` of the node; modules that have errors by label.
Units: counts since ``seconds_since_reset``.
Missing: no folder: the controller's driver is not loaded, or firmware keeps the errors to itself (firmware first). A
counter that cannot be read makes its sum missing: a part is no whole.
"""

from __future__ import annotations

import re
from typing import Any

from hwcheck.evidence import Output
from hwcheck.facts import NODE, Missing, Reason, count
from hwcheck.parse.flattened import attributes, gap, truncated
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_FILE = re.compile(r"^(mc\d{1,4})/(?:((?:dimm|rank)\d{1,4})/)?(\w{2,30})$")
_SUMS = {"ce_count": "memory.edac.corrected", "ue_count": "memory.edac.uncorrected"}
_OF_MODULE = {"dimm_ce_count": "corrected", "dimm_ue_count": "uncorrected"}


@fmt(
    "sysfs.edac",
    "/sys/devices/system/edac",
    gives=("memory.edac.*",),
    opens=r"/sys/devices/system/edac/mc/mc\d+/[\w/]{1,60}:",
    continues=r"^/sys/devices/system/edac/",
)
def edac(output: Output, facts: FactSink) -> None:
    """Add up the controllers, and name the modules that have errors."""
    controllers: set[str] = set()
    rows: dict[str, list[tuple[int, str]]] = {}
    modules: dict[tuple[str, str], dict[str, str]] = {}
    for line, path, value in attributes(output, "/sys/devices/system/edac/mc/"):
        found = _FILE.match(path)
        if not found:
            continue
        controllers.add(found[1])
        if found[2]:
            modules.setdefault((found[1], found[2]), {})[found[3]] = value[:100]
        else:
            rows.setdefault(found[3], []).append((line, value))
    if not controllers:
        return
    if truncated(output):
        facts.cut_off("more counters than the limit", ("memory.edac.*",))
        return
    facts.put(NODE, "memory.edac.controllers", len(controllers), output.first_line)
    for file, name in _SUMS.items():
        _sum(facts, name, rows.get(file, []), len(controllers))
    seconds = [int(value) for _, value in rows.get("seconds_since_reset", ()) if re.fullmatch(r"\d{1,12}", value)]
    if seconds:
        facts.put(NODE, "memory.edac.seconds", min(seconds), rows["seconds_since_reset"][0][0])
    bad = tuple(record for key, files in modules.items() if (record := _module(key, files)))
    facts.put(NODE, "memory.edac.modules", bad[:200], output.first_line)


def _sum(facts: FactSink, name: str, rows: list[tuple[int, str]], controllers: int) -> None:
    total, worst, at = 0, -1, rows[0][0] if rows else 0
    for line, value in rows:
        try:
            number = count(value)
        except ValueError:
            facts.put(NODE, name, Missing(gap(value) or Reason.UNPARSABLE, value[:60]), line)
            return
        total += number
        if number > worst:
            worst, at = number, line
    if len(rows) == controllers:
        facts.put(NODE, name, total, at)
    elif rows:
        facts.missing(NODE, name, Reason.UNPARSABLE, f"{len(rows)} of {controllers} controllers have this counter", at)


def _module(key: tuple[str, str], files: dict[str, str]) -> dict[str, Any] | None:
    """Describe a module that has errors; None for one without."""
    numbers = {
        word: int(files[file]) for file, word in _OF_MODULE.items() if re.fullmatch(r"\d{1,12}", files.get(file, ""))
    }
    if not any(numbers.values()):
        return None
    place = " ".join((*key, files.get("dimm_location", ""))).strip()
    label = files.get("dimm_label", "")
    return {"name": label if label and not gap(label) else place, "corrected": 0, "uncorrected": 0, **numbers}
