"""
Processes that hold GPU or RDMA devices, and processes that hang.

Source: /proc/PID/fd, stat, stack; one line a process:
    ``pid=.. state=.. ppid=.. uid=.. age=.. devices=.. wait=.. comm=..``.
Shape: ``process.holders`` and ``process.hung`` of the node, tuples of records. Hung is who was in state D in two looks
    0.3 s apart and did not run in between; wait names the functions, innermost first.
Units: age in seconds.
Missing: ``!denied`` (open files of other users' processes) and ``!truncated`` (too many processes) stand at the end:
    the list of holders is then incomplete. The last line, ``processes=N``, shows that none was cut off.
"""

from __future__ import annotations

import re
from typing import Any

from hwcheck.evidence import Output
from hwcheck.facts import NODE, Reason
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_ROW = re.compile(
    r"^pid=(?P<pid>\d{1,10}) state=(?P<state>\S) ppid=(?P<parent>\d{1,10}) uid=(?P<user>\S{1,10}) age=(?P<age>\S{1,12})"
    r" devices=(?P<devices>\S{1,4096}) wait=(?P<wait>\S{1,600}) comm=(?P<name>.{0,64})$"
)
_GIVES = ("process.holders", "process.hung")
_KEPT = 500


@fmt("proc.holders", "/proc/PID/fd", gives=_GIVES, opens=r"pid=\d+ state=\S ppid=\d+ uid=\S+ age=\S+ devices=")
def proc_holders(output: Output, facts: FactSink) -> None:
    """Read one process a line."""
    holders, hung = [], []
    denied = odd = ""
    whole = False
    for number, text in enumerate(output.lines, output.first_line):
        match = _ROW.match(text[:5000])
        if match and match["wait"] != "-":
            hung.append(_record(match))
        if match and match["devices"] != "-":
            holders.append(_record(match))
        elif text.startswith("!denied"):
            denied = text[1:100]
        elif text.startswith("!truncated"):
            facts.cut_off(text[1:100], _GIVES)
        elif re.fullmatch(r"processes=\d{1,10}", text):
            whole = True
        elif not match and text.strip():
            odd = odd or f"line {number} is not understood"
    if odd or not whole:
        facts.cut_off(odd or "ends without the number of processes", _GIVES)
    if denied and not holders:
        facts.missing(NODE, "process.holders", Reason.DENIED, denied, output.first_line)
    elif whole or holders:
        facts.put(NODE, "process.holders", tuple(holders[:_KEPT]), output.first_line)
    if whole or hung:
        facts.put(NODE, "process.hung", tuple(hung[:_KEPT]), output.first_line)


def _record(match: re.Match[str]) -> dict[str, Any]:
    return {
        "pid": int(match["pid"]), "name": match["name"], "user": match["user"], "parent": int(match["parent"]),
        "age": int(match["age"]) if match["age"].isdecimal() else None,
        "devices": () if match["devices"] == "-" else tuple(match["devices"].split(",")[:64]),
        "wait": match["wait"],
    }  # fmt: skip
