"""
Answers of PTP clocks to management requests.

Source: ``pmc`` of linuxptp: CURRENT_DATA_SET, TIME_STATUS_NP, PORT_DATA_SET (_NP).
Shape: ``time.pmc.*`` per clock, subject is the port identity as printed. With ``-b 1`` several clocks answer: the one
with stepsRemoved 0 is the master itself and its offset 0.0 says nothing about the others.
Units: offsets in ns.
Missing: a block without a value has no fact; a value that is no number is unparsable.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import Subject, count, real
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_HEAD = re.compile(r"^\s+([0-9a-f]{6}\.[0-9a-f]{4}\.[0-9a-f]{6}-\d{1,5}) seq \d+ RESPONSE MANAGEMENT (\w{3,40})")
_NUMBERS = {
    "offsetFromMaster": "time.pmc.offset",
    "master_offset": "time.pmc.offset",
    "meanPathDelay": "time.pmc.path_delay",
}


@fmt(
    "pmc",
    "pmc",
    gives=("time.pmc.*",),
    opens=r"sending: GET \w+|\s+[0-9a-f]{6}\.[0-9a-f]{4}\.[0-9a-f]{6}-\d{1,5} seq \d+ RESPONSE MANAGEMENT ",
    continues=r"^\s+\S|^sending: ",
    command=r"(?:^|[\s/|;&])pmc\s+-",
)
def pmc(output: Output, facts: FactSink) -> None:
    """Read each clock's block on its own."""
    clock: Subject | None = None
    for line_number, line in enumerate(output.lines, output.first_line):
        head = _HEAD.match(line[:300])
        if head:
            clock = Subject("clock", head[1])
            continue
        parts = line[:300].split()
        if clock is None or len(parts) != 2:
            continue
        _value(facts, clock, parts[0], parts[1], line_number)


def _value(facts: FactSink, clock: Subject, key: str, text: str, line: int) -> None:
    if key in _NUMBERS:
        facts.read(clock, _NUMBERS[key], real, text, line)
    elif key == "stepsRemoved":
        facts.read(clock, "time.pmc.steps_removed", count, text, line)
    elif key == "portState":
        facts.put(clock, "time.pmc.port_state", text[:20], line)
    elif key == "gmPresent" and text in ("true", "false"):
        facts.put(clock, "time.pmc.gm_present", text == "true", line)
