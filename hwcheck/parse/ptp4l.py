"""
Logs of the PTP daemons.

Source: ``ptp4l`` and ``phc2sys`` of linuxptp 2.0 to 4.4: on a terminal (``ptp4l[198.082]: ...``), with a tag
(``ptp4l[198.082]: [ptp4l.0.config] ...``), and behind a journal or syslog prefix (``ptp4l[4711]: [198.082] ...``).
Shape: ``time.ptp.*`` per clock: the interface where the log names it, else ``ptp4l``; what phc2sys steers otherwise.
The last state counts; earlier faults are counted beside it.
Units: offsets in ns; the time stamps are seconds since boot.
Missing: a log without an offset line has no offset: nothing is said about it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hwcheck.evidence import Output
from hwcheck.facts import Subject
from hwcheck.parse.format import fmt
from hwcheck.parse.log_prefix import DAEMON_LINE
from hwcheck.parse.sink import FactSink

_PREFIX = (
    rf"{DAEMON_LINE}(ptp4l|phc2sys)(?:\[(\d{{1,10}}(?:\.\d{{1,6}})?)\])?: "
    r"(?:\[(\d{1,10}\.\d{1,6})\]:? )?(?:\[[\w.:-]{1,60}\] )?"
)
_LINE = re.compile(rf"^{_PREFIX}(.*)$")
_STATE = re.compile(r"^port (\d{1,3})(?: \(([\w.@-]{1,32})\))?: ([A-Z_]{4,20}) to ([A-Z_]{4,20}) on ([A-Z_]{3,40})")
_LINK_DOWN = re.compile(r"port (\d{1,3})(?: \(([\w.@-]{1,32})\))?: link down")
_RMS = re.compile(r"^(?:([\w/.:-]{1,40}) )?rms\s+(\d{1,18}) max\s+(\d{1,18})")
_OFFSET = re.compile(
    r"(?:^|\s)(?:([\w/.:-]{1,40}) )?(?:master offset|(?:phc|sys|rms) offset)\s+(-?\d{1,18}) (s[0-3])\b"
)


@dataclass(slots=True)
class _Port:
    """What the log has said of one port so far."""

    state: str = ""
    faults: int = 0
    left: float | None = None
    without: float = 0.0
    cause: str = ""
    line: int = 0
    fault_line: int = 0
    offset: tuple[float, str, int] | None = None


@fmt(
    "ptp4l",
    "ptp4l and phc2sys log",
    gives=("time.ptp.*",),
    opens=rf"{DAEMON_LINE}(?:ptp4l|phc2sys)(?:\[\d{{1,10}}(?:\.\d{{1,6}})?\])?: ",
    lines=True,
    rank=20,
)
def ptp4l(output: Output, facts: FactSink) -> None:
    """Follow each port's states; keep the last offset since the last change of state."""
    ports: dict[str, _Port] = {}
    current = "ptp4l"
    for number, line in enumerate(output.lines, output.first_line):
        found = _LINE.match(line[:600])
        if not found:
            continue
        program, pid_or_time, time, text = found.groups()
        state, down = _STATE.match(text), _LINK_DOWN.match(text)
        if state or down:
            current = _port_name(state or down)
            port = ports.setdefault(current, _Port())
            ports.pop("ptp4l", None)  # offsets before the first change of state; it drops them anyway
            if state:
                _follow(port, (state[3], state[4], state[5]), _seconds(time or pid_or_time), number)
            else:
                port.cause = "link down"
        else:
            _offset(ports.setdefault(current if program == "ptp4l" else "phc2sys", _Port()), text, number)
    for name, port in ports.items():
        _report(facts, Subject("clock", name), port)


def _port_name(found: re.Match[str] | None) -> str:
    """Name a port by its interface; the short line form has its number only."""
    return "" if found is None else found[2] or f"port {found[1]}"


def _follow(port: _Port, change: tuple[str, str, str], stamp: float | None, line: int) -> None:
    old, new, why = change
    port.state, port.line, port.offset = new, line, None
    if new == "FAULTY":
        port.faults += 1
        port.fault_line = line
        port.cause = port.cause or why
    if old == "SLAVE":
        port.left = stamp
    elif new == "SLAVE" and port.left is not None and stamp is not None:
        port.without += max(stamp - port.left, 0.0)
        port.left = None


def _offset(port: _Port, text: str, line: int) -> None:
    rms, offset = _RMS.match(text), _OFFSET.search(text)
    if rms:
        port.offset = (float(rms[2]), "", line)
    elif offset:
        port.offset = (float(offset[2]), offset[3], line)


def _report(facts: FactSink, clock: Subject, port: _Port) -> None:
    if port.offset:
        value, servo, line = port.offset
        facts.put(clock, "time.ptp.offset", value, line)
        if servo:
            facts.put(clock, "time.ptp.servo", servo, line)
    if not port.state:
        return
    facts.put(clock, "time.ptp.state", port.state, port.line)
    facts.put(clock, "time.ptp.faults", port.faults, port.fault_line or port.line)
    facts.put(clock, "time.ptp.without_sync", round(port.without, 3), port.line)
    if port.faults:
        facts.put(clock, "time.ptp.cause", port.cause, port.fault_line)


def _seconds(text: str | None) -> float | None:
    return float(text) if text and "." in text else None
