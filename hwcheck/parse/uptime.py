"""
Time since boot: the ``uptime`` command and ``/proc/uptime``.

Source: uptime of procps 3 and 4 and of busybox; proc(5).
Shape: `` 10:04:31 up 67 days,  6:12,  3 users,  load average: ...``; also ``up 12 min``, ``up 5:07``,
    ``up 1 day, 3 min``; ``uptime -p`` gives ``up 9 weeks, 4 days``. /proc/uptime: two numbers, since boot and idle.
Units: seconds; the uptime command rounds down to the minute.
Missing: a text with none of these is unparsable.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import NODE, real
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

NAME = "kernel.uptime"
_SECONDS = {"min": 60, "hour": 3600, "day": 86400, "week": 7 * 86400, "year": 365 * 86400}
_PART = re.compile(r"(\d{1,6}) (min|hour|day|week|year)")
_CLOCK = re.compile(r"(?:^|[ ,])(\d{1,2}):(\d\d)(?:,|$)")


@fmt(
    "uptime",
    "uptime",
    gives=(NAME,),
    opens=r" ?\d{1,2}:\d\d(?::\d\d)?(?:am|pm)? +up +\d+",
    continues=r"(?!)",
    command=r"^(?:\S*/)?uptime\b|/proc/uptime\b",
)
def parse_uptime(output: Output, facts: FactSink) -> None:
    """Read the first line that is not empty."""
    for index, line in enumerate(output.lines):
        if not line.strip():
            continue
        seconds = _seconds(line[:200])
        place = output.first_line + index
        if seconds is None:
            facts.unparsable(NODE, NAME, line, place)
        else:
            facts.put(NODE, NAME, seconds, place)
        return


def _seconds(line: str) -> float | None:
    before, up, rest = f" {line}".partition(" up ")
    if not up:
        parts = before.split()  # /proc/uptime: since boot, idle
        try:
            return real(parts[0]) if len(parts) == 2 else None
        except ValueError:
            return None
    rest = re.split(r",\s+\d+ user|,\s+load average", rest)[0].strip()
    total = float(sum(int(count) * _SECONDS[unit] for count, unit in _PART.findall(rest)))
    clock = _CLOCK.search(rest)
    if clock:
        total += int(clock[1]) * 3600 + int(clock[2]) * 60
    return total if clock or _PART.search(rest) else None
