"""
Clock sources of the kernel, PTP hardware clocks, and how far these are from the system clock.

Source: kernel ABI sysfs-devices-system-clocksource and sysfs-ptp; offsets by the ioctl PTP_SYS_OFFSET, a line a clock.
Shape: ``time.clocksource*`` of the node; ``time.phc.*`` of each clock ``ptp0``.
Units: ns.
Missing: a clock that answers with an error has a failed offset.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import NODE, Reason, Subject
from hwcheck.parse.flattened import attributes, gap
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_SOURCES = "clocksource/clocksource0/"
_OFFSET = re.compile(r"^/dev/(ptp\d{1,4}): offset from CLOCK_REALTIME is (-?\d{1,19})ns, read in (\d{1,19})ns$")
_ERROR = re.compile(r"^/dev/(ptp\d{1,4}): !error (.{1,100})$")


@fmt(
    "sysfs.time",
    "clock sources and PTP clocks",
    gives=("time.clocksource", "time.clocksource.others", "time.phc.name"),
    opens=r"/sys/devices/system/clocksource/\w+/\w+:|/sys/class/ptp/ptp\d+/\w+:",
    continues=r"^/sys/devices/system/clocksource/|^/sys/class/ptp/",
)
def sysfs_time(output: Output, facts: FactSink) -> None:
    """Read the clock source in use and the names of the hardware clocks."""
    for line, path, value in attributes(output, "/sys/devices/system/"):
        reason = gap(value)
        if path == _SOURCES + "current_clocksource" and reason:
            facts.missing(NODE, "time.clocksource", reason, value[:60], line)
        elif path == _SOURCES + "current_clocksource" and value:
            facts.put(NODE, "time.clocksource", value[:40], line)
        elif path == _SOURCES + "available_clocksource" and not reason:
            facts.put(NODE, "time.clocksource.others", tuple(value[:400].split()[:20]), line)
    for line, path, value in attributes(output, "/sys/class/ptp/"):
        clock, _, file = path.partition("/")
        if file == "clock_name" and re.fullmatch(r"ptp\d{1,4}", clock) and value and not gap(value):
            facts.put(Subject("clock", clock), "time.phc.name", value[:60], line)


@fmt(
    "phc.offset",
    "PTP hardware clocks against the system clock",
    gives=("time.phc.offset", "time.phc.delay"),
    opens=r"/dev/ptp\d+: (?:offset from CLOCK_REALTIME is -?\d|!error )",
    continues=r"^/dev/ptp\d+: ",
)
def phc_offset(output: Output, facts: FactSink) -> None:
    """Read one clock a line."""
    for number, line in enumerate(output.lines, output.first_line):
        found, error = _OFFSET.match(line[:200]), _ERROR.match(line[:200])
        if found:
            facts.put(Subject("clock", found[1]), "time.phc.offset", int(found[2]), number)
            facts.put(Subject("clock", found[1]), "time.phc.delay", int(found[3]), number)
        elif error:
            facts.missing(Subject("clock", error[1]), "time.phc.offset", Reason.FAILED, error[2], number)
