"""
State of systemd units.

Source: ``systemctl status UNIT...``, ``systemctl is-active``, ``is-enabled``, ``list-units``, ``--failed``; systemd 219
to 258.
Shape: ``service.*`` per unit; the subject is the unit's full name. Journal lines below a status block belong to it and
are not read here.
Units: none.
Missing: ``Unit X could not be found`` is no gap: loaded is "not-found".
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import Subject
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_UNIT = r"[\w@:.\\-]{1,100}\.(?:service|socket|target|timer|mount|path|slice)"
_MARK = r"(?:[\u25cf\u25cb\u00d7\u21bb*x] )"
_HEAD = re.compile(rf"^{_MARK}({_UNIT})(?: - .*)?$")
_LOADED = re.compile(r"^\s*Loaded: ([\w-]{1,20})(?: \((.*?)\))?")
_ACTIVE = re.compile(r"^\s*Active: ([\w-]{1,20})(?: \(([^)]{1,40})\))?")
_NOT_FOUND = re.compile(rf"^Unit ({_UNIT}) could not be found\.")
_ROW = re.compile(
    rf"^\s{{0,4}}{_MARK}?\s{{0,4}}({_UNIT})\s+(loaded|not-found|masked|error|bad-setting)\s+([a-z]+)\s+([a-z-]+)\s"
)
_STATES = ("active", "inactive", "failed", "activating", "deactivating", "reloading", "unknown")
_FILE_STATES = (
    "enabled",
    "disabled",
    "static",
    "masked",
    "indirect",
    "generated",
    "alias",
    "enabled-runtime",
    "not-found",
)


@fmt(
    "systemctl.status",
    "systemctl status",
    gives=("service.*",),
    opens=rf"{_MARK}{_UNIT}(?: - |\s*$)|Unit {_UNIT} could not be found\.",
    continues=rf"^\s|^$|^[A-Z][a-z]{{2}} [ \d]\d \d\d:\d\d:\d\d |^{_MARK}{_UNIT}|^Unit {_UNIT} could",
    command=r"(?:^|[\s/|;&])systemctl\s+(?:-\S+\s+)*status\b",
)
def systemctl_status(output: Output, facts: FactSink) -> None:
    """Read the head of each block; the first Active line after a unit's name is the unit's."""
    unit: Subject | None = None
    for number, line in enumerate((text[:500] for text in output.lines), output.first_line):
        head, absent = _HEAD.match(line), _NOT_FOUND.match(line)
        if head:
            unit = Subject("unit", head[1])
        elif absent:
            facts.put(Subject("unit", absent[1]), "service.loaded", "not-found", number)
        elif unit is not None:
            loaded, active = _LOADED.match(line), _ACTIVE.match(line)
            if loaded:
                facts.put(unit, "service.loaded", loaded[1], number)
                enabled = [part.strip() for part in (loaded[2] or "").split(";") if part.strip() in _FILE_STATES]
                if enabled:
                    facts.put(unit, "service.enabled", enabled[0], number)
            elif active:
                facts.put(unit, "service.active", active[1], number)
                if active[2]:
                    facts.put(unit, "service.sub", active[2], number)


@fmt(
    "systemctl.units",
    "systemctl list-units",
    gives=("service.*",),
    opens=rf"\s{{0,4}}{_MARK}?\s{{0,4}}{_UNIT}\s+(?:loaded|not-found|masked|error)\s+(?:active|inactive|failed|activating)\s+[a-z-]+\s",
    continues=rf"^\s{{0,4}}{_MARK}?\s{{0,4}}{_UNIT}\s+(?:loaded|not-found|masked|error|bad-setting)\s",
    command=r"(?:^|[\s/|;&])systemctl\s+(?:-\S+\s+)*(?:list-units\b|--failed\b)",
)
def systemctl_units(output: Output, facts: FactSink) -> None:
    """Read one unit a line."""
    for number, line in enumerate(output.lines, output.first_line):
        row = _ROW.match(line[:500] + " ")
        if row:
            unit = Subject("unit", row[1])
            for name, value in zip(("service.loaded", "service.active", "service.sub"), row.groups()[1:], strict=True):
                facts.put(unit, name, value, number)


@fmt(
    "systemctl.is",
    "systemctl is-active",
    gives=("service.active", "service.enabled"),
    command=r"(?:^|[\s/|;&])systemctl\s+(?:-\S+\s+)*is-(?:active|enabled|failed)\s",
)
def systemctl_is(output: Output, facts: FactSink) -> None:
    """Read one word a unit, in the order of the command; another number of words than units is not understood."""
    found = re.search(r"systemctl\s+(?:-\S+\s+)*is-(active|enabled|failed)\s+([^|;&]{1,1000})", output.command[:2000])
    if not found:
        return
    name = "service.enabled" if found[1] == "enabled" else "service.active"
    known = _FILE_STATES if found[1] == "enabled" else _STATES
    units = [
        unit if "." in unit else f"{unit}.service"
        for unit in found[2].split()
        if re.fullmatch(r"[\w@:.\\-]{1,110}", unit) and unit[0] != "-"
    ]
    words = [(number, line.strip()) for number, line in enumerate(output.lines, output.first_line) if line.strip()]
    if len(words) != len(units):
        return
    for unit, (number, word) in zip(units, words, strict=True):
        if word in known:
            facts.put(Subject("unit", unit), name, word, number)
        else:
            facts.unparsable(Subject("unit", unit), name, word, number)
