"""
The locked-memory limit of a shell or a process.

Source: ``ulimit -a`` (bash, dash, zsh), ``ulimit -l``, ``/proc/PID/limits``.
Shape: ``limits.memlock`` of the node, "unlimited" or KiB as text.
Units: bash says kbytes, /proc says bytes; both become KiB.
Missing: another text in place of the number is unparsable.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import NODE
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_MEMLOCK = re.compile(
    r"^(?:max locked memory\s+\((?P<unit>kbytes|kB|kb|bytes), -l\)"  # bash
    r"|-l: locked[- ](?:in[- ])?memory(?: size)? \((?P<zsh>kbytes|kb|kB)\)"  # zsh
    r"|locked memory\s*\((?P<dash>kbytes)\)"  # dash
    r"|Max locked memory(?P<proc>))\s+(?P<value>\S{1,30})"
)


@fmt(
    "ulimit",
    "ulimit",
    gives=("limits.memlock",),
    opens=r"(?:core file size|real-time non-blocking time)\s+\([a-z]+, -[cR]\)|max locked memory\s+\(k?[a-zB]+, -l\)"
    r"|-t: cpu time \(seconds\)|Limit\s+Soft Limit\s+Hard Limit\s+Units|Max locked memory\s+\S+\s+\S+\s+bytes",
    continues=r"^(?:[A-Za-z][A-Za-z -]{2,60}\([A-Za-z0-9 ,-]{1,40}\)|-[a-zA-Z]: |Max )",
    command=r"(?:^|[;&|(]\s*|\bc\s+['\"]?)ulimit\s+-[SH]?[al]|\bcat\s+/proc/\S+/limits\b",
)
def ulimit(output: Output, facts: FactSink) -> None:
    """Read the limit; the answer to ``ulimit -l`` is a bare word."""
    for number, line in enumerate(output.lines, output.first_line):
        found = _MEMLOCK.match(line[:200])
        if found:
            _put(facts, found["value"], 1024 if found["proc"] is not None or found["unit"] == "bytes" else 1, number)
            return
        if re.search(r"ulimit\s+-[SH]?l", output.command) and line.strip():
            _put(facts, line.strip(), 1, number)
            return


def _put(facts: FactSink, value: str, divisor: int, line: int) -> None:
    if value == "unlimited":
        facts.put(NODE, "limits.memlock", value, line)
    elif re.fullmatch(r"\d{1,20}", value):
        facts.put(NODE, "limits.memlock", str(int(value) // divisor), line)
    else:
        facts.unparsable(NODE, "limits.memlock", value, line)
