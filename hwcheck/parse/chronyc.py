"""
Time synchronisation by chrony.

Source: ``chronyc tracking``, ``chronyc sources``, ``chronyc activity``, each for people and as CSV (``-c``); chrony 3.x
and 4.x. The CSV has no header: 14 fields for tracking, 10 for sources, 5 for activity.
Shape: ``time.chrony.*`` of the node.
Units: seconds. Sign of the offset: positive is fast. For people the word fast or slow tells; in the CSV a positive
system time means *slow* (chrony's own convention), so it is turned round.
Missing: a daemon that never synchronised prints offset 0.000000000 and exits 0: leap status, stratum and reference id
tell, never the offset alone. ``506 Cannot talk to daemon`` is ``time.chrony.error``.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import NODE, number
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_SECONDS = re.compile(r"([+-]?\d{1,12}(?:\.\d{1,12})?) seconds(?: (fast|slow) of NTP time)?$")
_LABELS = {
    "System time": "time.chrony.offset",
    "RMS offset": "time.chrony.rms_offset",
    "Root delay": "time.chrony.root_delay",
    "Root dispersion": "time.chrony.root_dispersion",
}
_TRACKING = ("time.chrony.refid", "time.chrony.stratum", "time.chrony.leap", *_LABELS.values())
_LEAPS = ("Normal", "Insert second", "Delete second", "Not synchronised")


@fmt(
    "chronyc.tracking",
    "chronyc tracking",
    gives=(*_TRACKING, "time.chrony.error"),
    opens=r"Reference ID\s+: [0-9A-F]{8} \(|506 Cannot talk to daemon",
    continues=r"^[A-Z][A-Za-z ()]{3,20}\s*: ",
    ends=r"^Leap status\s+:",
    command=r"(?:^|[\s/|;&])chronyc\s+(?:-[nchv46]\s+)*tracking\b",
)
def chronyc_tracking(output: Output, facts: FactSink) -> None:
    """Read the report for people, or the one CSV line."""
    seen = set()
    for line_number, line in enumerate((text[:500].strip() for text in output.lines), output.first_line):
        if line.startswith("506 Cannot talk to daemon"):
            facts.put(NODE, "time.chrony.error", line, line_number)
            return
        fields = line.split(",")
        if len(fields) == 14:
            _csv(fields, facts, line_number)
            return
        label, colon, value = line.partition(":")
        if colon:
            seen.add(label.strip())
            _tracking_line(label.strip(), value.strip(), facts, line_number)
    if "Leap status" not in seen:
        facts.cut_off("no Leap status line", _TRACKING)


def _tracking_line(label: str, value: str, facts: FactSink, line: int) -> None:
    if label == "Reference ID":
        _text(facts, "time.chrony.refid", value.split(" ", maxsplit=1)[0], r"[0-9A-F]{8}", line)
    elif label == "Stratum":
        _stratum(facts, value, line)
    elif label == "Leap status":
        _leap(facts, value, line)
    elif label in _LABELS:
        found = _SECONDS.match(value)
        if found:
            seconds = float(found[1])
            facts.put(NODE, _LABELS[label], -seconds if found[2] == "slow" else seconds, line)
        else:
            facts.unparsable(NODE, _LABELS[label], value, line)


def _csv(fields: list[str], facts: FactSink, line: int) -> None:
    _text(facts, "time.chrony.refid", fields[0], r"[0-9A-F]{8}", line)
    _stratum(facts, fields[2], line)
    _leap(facts, fields[13], line)
    for name, index, sign in (
        ("time.chrony.offset", 4, -1),
        ("time.chrony.rms_offset", 6, 1),
        ("time.chrony.root_delay", 10, 1),
        ("time.chrony.root_dispersion", 11, 1),
    ):
        try:
            facts.put(NODE, name, sign * float(number(fields[index])), line)
        except ValueError:
            facts.unparsable(NODE, name, fields[index], line)


def _text(facts: FactSink, name: str, value: str, pattern: str, line: int) -> None:
    if re.fullmatch(pattern, value):
        facts.put(NODE, name, value, line)
    else:
        facts.unparsable(NODE, name, value, line)


def _stratum(facts: FactSink, value: str, line: int) -> None:
    if re.fullmatch(r"\d{1,3}", value):
        facts.put(NODE, "time.chrony.stratum", int(value), line)
    else:
        facts.unparsable(NODE, "time.chrony.stratum", value, line)


def _leap(facts: FactSink, value: str, line: int) -> None:
    if value in _LEAPS:
        facts.put(NODE, "time.chrony.leap", value, line)
    else:
        facts.unparsable(NODE, "time.chrony.leap", value, line)


_SOURCE = re.compile(r"^([\^=#])([*+?x~-])\s+(\S{1,100})\s+(\d{1,2})\s+(-?\d{1,3})\s+([0-7]{1,3})\s")
_SOURCE_CSV = re.compile(r"^([\^=#]),([*+?x~-]),([^,]{1,100}),(\d{1,2}),(-?\d{1,3}),(\d{1,3}),")


@fmt(
    "chronyc.sources",
    "chronyc sources",
    gives=("time.chrony.sources",),
    opens=r"MS Name/IP address\s+Stratum Poll Reach|(?:210 )?Number of sources = \d",
    continues=r"^(?:={20,}|[\^=#][*+?x~-]\s|MS Name/IP)",
    command=r"(?:^|[\s/|;&])chronyc\s+(?:-[nchv46]\s+)*sources\b",
)
def chronyc_sources(output: Output, facts: FactSink) -> None:
    """Read one source a line; reach is octal for people and decimal in the CSV."""
    sources, first = [], 0
    for line_number, line in enumerate(output.lines, output.first_line):
        table, csv = _SOURCE.match(line[:300] + " "), _SOURCE_CSV.match(line[:300])
        row = table or csv
        if row:
            first = first or line_number
            mode, state, name, stratum, _, reach = row.groups()
            record = {"mode": mode, "state": state, "name": name, "stratum": int(stratum)}
            sources.append({**record, "reach": int(reach, 8 if table else 10)})
    if sources or any(line.startswith("MS Name/IP") for line in output.lines):
        facts.put(NODE, "time.chrony.sources", tuple(sources), first or output.first_line)


@fmt(
    "chronyc.activity",
    "chronyc activity",
    gives=("time.chrony.activity",),
    opens=r"\d{1,5} sources online\s*$|200 OK\s*$",
    continues=r"^\d{1,5} sources? ",
    command=r"(?:^|[\s/|;&])chronyc\s+(?:-[nchv46]\s+)*activity\b",
)
def chronyc_activity(output: Output, facts: FactSink) -> None:
    """Read the counts; online only means "not marked offline", not reachable."""
    counts, first = {}, 0
    for line_number, line in enumerate(output.lines, output.first_line):
        found = re.match(r"(\d{1,5}) sources? (online|offline|with unknown address)", line[:100])
        if found:
            first = first or line_number
            counts[found[2].replace("with unknown address", "unknown")] = int(found[1])
    if counts:
        facts.put(NODE, "time.chrony.activity", counts, first)
