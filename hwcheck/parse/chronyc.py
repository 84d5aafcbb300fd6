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
from collections.abc import Callable
from typing import Any

from hwcheck.evidence import Output
from hwcheck.facts import NODE, count, real
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_SECONDS = re.compile(r"([+-]?\d{1,12}(?:\.\d{1,12})?) seconds(?: (fast|slow) of NTP time)?$")
_LEAPS = ("Normal", "Insert second", "Delete second", "Not synchronised")


def _refid(text: str) -> str:
    word = text.partition(" ")[0]
    if not re.fullmatch(r"[0-9A-F]{8}", word):
        raise ValueError("not eight hexadecimal digits")
    return word


def _leap(text: str) -> str:
    if text not in _LEAPS:
        raise ValueError("not a leap status")
    return text


def _seconds(text: str) -> float:
    found = _SECONDS.match(text)
    if not found:
        raise ValueError("no seconds")
    return -float(found[1]) if found[2] == "slow" else float(found[1])


def _behind(text: str) -> float:
    """Read the offset of the CSV form, which is positive for a clock that is slow."""
    return -real(text)


_READ: dict[str, tuple[str, Callable[[str], Any]]] = {
    "Reference ID": ("time.chrony.refid", _refid),
    "Stratum": ("time.chrony.stratum", count),
    "Leap status": ("time.chrony.leap", _leap),
    "System time": ("time.chrony.offset", _seconds),
    "RMS offset": ("time.chrony.rms_offset", _seconds),
    "Root delay": ("time.chrony.root_delay", _seconds),
    "Root dispersion": ("time.chrony.root_dispersion", _seconds),
}
_CSV: tuple[tuple[str, int, Callable[[str], Any]], ...] = (
    ("time.chrony.refid", 0, _refid),
    ("time.chrony.stratum", 2, count),
    ("time.chrony.offset", 4, _behind),
    ("time.chrony.rms_offset", 6, real),
    ("time.chrony.root_delay", 10, real),
    ("time.chrony.root_dispersion", 11, real),
    ("time.chrony.leap", 13, _leap),
)
_TRACKING = tuple(name for name, _ in _READ.values())


@fmt(
    "chronyc.tracking",
    "chronyc tracking",
    gives=(*_TRACKING, "time.chrony.error"),
    opens=(
        r"Reference ID\s+: [0-9A-F]{8} \(|506 Cannot talk to daemon"
        r"|[0-9A-F]{8},[^,\s]{0,100},\d{1,2}(?:,-?[\d.]{1,24}){10},"
        r"(?:Normal|(?:Insert|Delete) second|Not synchronised)\s*$"
    ),
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
            for name, index, reader in _CSV:
                facts.read(NODE, name, reader, fields[index], line_number)
            return
        label, colon, value = (part.strip() for part in line.partition(":"))
        if colon:
            seen.add(label)
        if colon and label in _READ:
            facts.read(NODE, *_READ[label], value, line_number)
    if "Leap status" not in seen:
        facts.cut_off("no Leap status line", _TRACKING)


_SOURCE = re.compile(r"^([\^=#])([*+?x~-])\s+(\S{1,100})\s+(\d{1,2})\s+(-?\d{1,3})\s+([0-7]{1,3})\s")
_SOURCE_CSV = re.compile(r"^([\^=#]),([*+?x~-]),([^,]{1,100}),(\d{1,2}),(-?\d{1,3}),(\d{1,3}),")


@fmt(
    "chronyc.sources",
    "chronyc sources",
    gives=("time.chrony.sources",),
    opens=(
        r"MS Name/IP address\s+Stratum Poll Reach|(?:210 )?Number of sources = \d"
        r"|[\^=#],[*+?x~-],[^,\s]{1,100},\d{1,2},-?\d{1,3},\d{1,3},\d{1,10}(?:,-?[\d.]{1,24}){3}\s*$"
    ),
    continues=r"^(?:={20,}|[\^=#],?[*+?x~-][\s,]|MS Name/IP)",
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


_ACTIVITY_CSV = re.compile(r"(\d{1,5}),(\d{1,5}),\d{1,5},\d{1,5},(\d{1,5})\s*$")  # two are bursts


@fmt(
    "chronyc.activity",
    "chronyc activity",
    gives=("time.chrony.activity",),
    opens=r"\d{1,5} sources online\s*$|200 OK\s*$",
    continues=r"^\d{1,5} sources? |^\d{1,5}(?:,\d{1,5}){4}\s*$",
    command=r"(?:^|[\s/|;&])chronyc\s+(?:-[nchv46]\s+)*activity\b",
)
def chronyc_activity(output: Output, facts: FactSink) -> None:
    """Read the counts; online only means "not marked offline", not reachable. The CSV is known by its command only."""
    counts, first = {}, 0
    for line_number, line in enumerate(output.lines, output.first_line):
        found = re.match(r"(\d{1,5}) sources? (online|offline|with unknown address)", line[:100])
        if fields := _ACTIVITY_CSV.match(line[:100]):
            first = first or line_number
            counts = {"online": int(fields[1]), "offline": int(fields[2]), "unknown": int(fields[3])}
        elif found:
            first = first or line_number
            counts[found[2].replace("with unknown address", "unknown")] = int(found[1])
    if counts:
        facts.put(NODE, "time.chrony.activity", counts, first)
