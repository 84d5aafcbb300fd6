"""
The kernel's own clock state.

Source: ``adjtimex(2)``: fields of struct timex as ``name=value`` lines; status bits of ``linux/timex.h``.
Shape: ``time.kernel.*`` of the node.
Units: maxerror and esterror are microseconds; seconds in the facts.
Missing: a clock that no daemon ever set says status bit 0x40, state 5 and 16 s of error.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import NODE
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_UNSYNCHRONISED = 0x0040
_LINE = re.compile(r"^([a-z_]{2,12})=(-?\d{1,19})\s*$")


@fmt(
    "adjtimex",
    "adjtimex",
    gives=("time.kernel.*",),
    opens=r"state=[0-5]\s*$",
    continues=r"^[a-z_]{2,12}=-?\d{1,19}\s*$",
)
def adjtimex(output: Output, facts: FactSink) -> None:
    """Read status, errors and the TAI offset; an output without status is no answer."""
    values: dict[str, tuple[int, int]] = {}
    for number, line in enumerate(output.lines, output.first_line):
        found = _LINE.match(line[:60])
        if found:
            values[found[1]] = int(found[2]), number
    if "status" not in values:
        facts.cut_off("no status line", ("time.kernel.*",))
        return
    status, line_number = values["status"]
    facts.put(NODE, "time.kernel.synchronised", not status & _UNSYNCHRONISED, line_number)
    for field, name in (("maxerror", "time.kernel.max_error"), ("esterror", "time.kernel.est_error")):
        if field in values:
            facts.put(NODE, name, values[field][0] / 1e6, values[field][1])
    if "tai" in values:
        facts.put(NODE, "time.kernel.tai", *values["tai"])
