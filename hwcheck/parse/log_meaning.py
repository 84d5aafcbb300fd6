"""What lines of a kernel log mean together: which are history, how an Xid is spread, what an empty answer proves."""

from __future__ import annotations

import re

from hwcheck.parse.log_groups import Record
from hwcheck.parse.log_prefix import clock
from hwcheck.parse.xid_lines import XidLine

_APART = 300.0  # seconds between unrelated jobs
_PARTIAL = re.compile(r"[&>]|\s-\w{0,6}[vnx]|--since|--until|-b ?-|--boot=")  # hides errors, or parts of the log
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")


def is_before(record: Record, time: str) -> bool:
    """Tell whether an event was over before a later start; by dated times only, since uptimes begin anew."""
    start, happened = clock(time), clock(record["last_time"])
    if start is None or happened is None or start[0] == "uptime":
        return False
    return start[0] == happened[0] and start[1] > happened[1]


class Spread:
    """Over how many programs and places of one GPU an Xid is spread."""

    __slots__ = ("_pid", "_since", "places", "programs")

    def __init__(self) -> None:
        self.programs: set[str] = set()
        self.places: set[str] = set()
        self._pid = ""
        self._since: tuple[str, float] | None = None

    def add(self, read: XidLine, time: str) -> None:
        """
        Count a line.

        The processes of one job die together, and a job that is started over and over has one name: only another name
        some minutes later is another job.
        """
        if read.place and len(self.places) < 1024:
            self.places.add(read.place)
        if not read.name or read.pid == self._pid:
            return
        now = clock(time)
        last = self._since
        apart = now is not None and last is not None and now[0] == last[0] and now[1] - last[1] >= _APART
        if (not self.programs or apart) and len(self.programs) < 64:
            self.programs.add(read.name)
            self._pid, self._since = read.pid, now


def asked_for(command: str) -> set[str]:
    """Tell what a ``dmesg | grep -i xid`` asked for: an empty answer proves the absence of that and nothing else."""
    stages = _QUOTED.sub("x", command).split("|")
    if len(stages) != 2 or not re.match(r"\s{0,8}e?grep\s", stages[1]) or _PARTIAL.search(command):
        return set()
    pattern = command.partition("|")[2]
    folded = re.search(r"\s-\w{0,6}i", pattern) is not None or "--ignore-case" in pattern
    # without -i, "xid" finds no Xid: the driver writes a capital X
    xid, switch = (r"(?i:\bxid|nvrm)", r"(?i:s?xid)") if folded else (r"\bXid|NVRM", r"SXid|\bXid")
    return {kind for kind, wanted in (("xid", xid), ("sxid", switch)) if re.search(wanted, pattern)}
