"""
Software RAID.

Source: ``/proc/mdstat`` (md(4)).
Shape: ``storage.md.*`` of each array ``md0``.
Units: counts of members.
Missing: raid0 and linear have no ``[n/m]``: they have no members to spare, and no such facts.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import Subject
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_ARRAY = re.compile(
    r"^(md[\w.-]{0,40}) : (active(?: \((?:auto-)?read-only\))?|inactive)"
    r"(?: (raid\d{1,2}|linear|multipath|faulty))?(?: (.*))?$"
)
_MEMBERS = re.compile(r"\[(\d{1,4})/(\d{1,4})\] \[[U_]{1,4000}\]")
_ACTIVITY = re.compile(
    r"^\s+(?:\[[=>.]{1,40}\]\s+)?(recovery|resync|check|reshape|repair)\s?=\s?(\d{1,3}\.\d%|DELAYED|PENDING)"
)


@fmt(
    "proc.mdstat",
    "/proc/mdstat",
    gives=("storage.md.*",),
    opens=r"Personalities : |md[\w.-]{0,40} : (?:active|inactive) ",
    continues=r"^md[\w.-]{0,40} : |^\s|^$|^unused devices:",
    ends=r"^unused devices:",
    command=r"\bcat\s+/proc/mdstat\b",
)
def mdstat(output: Output, facts: FactSink) -> None:
    """Read each array's first line, the members behind it, and what is going on."""
    array: Subject | None = None
    for number, line in enumerate((text[:4096] for text in output.lines), output.first_line):
        head, members, activity = _ARRAY.match(line), _MEMBERS.search(line), _ACTIVITY.match(line)
        if head:
            array = Subject("disk", head[1])
            failed = re.findall(r"([\w!-]{1,40})\[\d{1,4}\]\(F\)", head[4] or "")
            facts.put(array, "storage.md.state", head[2], number)
            facts.put(array, "storage.md.level", head[3] or "", number)
            facts.put(array, "storage.md.failed", tuple(failed[:100]), number)
            facts.put(array, "storage.md.activity", "", number)
        elif array and members:
            facts.put(array, "storage.md.members", int(members[1]), number)
            facts.put(array, "storage.md.working", int(members[2]), number)
        elif array and activity:
            facts.put(array, "storage.md.activity", f"{activity[1]} {activity[2]}", number)
