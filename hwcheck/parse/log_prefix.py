"""
The prefixes in front of kernel messages, and the times in them.

One message, as people post it::

    [ 4031.557120] MESSAGE                                   dmesg
    [Tue Mar  4 09:12:55 2025] MESSAGE                       dmesg -T
    [Mar 4 09:12] MESSAGE        [  +0.000123] MESSAGE       dmesg -H
    kern  :err   : 2025-03-04T09:12:55,557120+00:00 MESSAGE  dmesg -x --time-format=iso
    2025-03-04T09:12:55,557120+00:00 MESSAGE                 dmesg --time-format=iso
    Mar 04 09:12:55 host kernel: MESSAGE                     syslog, journalctl
    Mar 04 09:12:55.557120 host kernel: [ 4031.557] MESSAGE  journalctl -o short-precise, rsyslog
    2025-03-04T09:12:55+0000 host kernel: MESSAGE            journalctl -o short-iso
    <4>[ 4031.557120] MESSAGE      4,1021,4031557120,-;MESSAGE   raw ring buffer, /dev/kmsg
    <4>1 2025-03-04T09:12:55.557Z host kernel - - - MESSAGE      RFC 5424
    2025-03-04T09:12:55.557Z stderr F [ 4031.557120] MESSAGE     log of a container
    2025/03/04 09:12:55 host kernel: MESSAGE                     daemons and log shippers
    {"MESSAGE":"...","_TRANSPORT":"kernel",...}                  journalctl -o json

Names of months may be of any language. In front of all these may stand what a tool or a person adds: a file name (grep
-H), a line number (grep -n), a login prompt (serial console), a bullet, a backtick.
"""

from __future__ import annotations

import json
import re
from calendar import month_abbr
from datetime import UTC, datetime

ANYWHERE = 90
"""Rank of the log format whose lines are known by their message alone; what stands in front may be anything."""

_UPTIME = r"\[\s*\d{1,9}\.\d{1,9}\]"  # ten digits are no uptime: programs such as UCX print seconds since 1970
_MONTH = r"(?:[^\W\d_]{1,6}\.?|\d{1,2}[^\W\d_])"  # Mar, Mär, févr., 3月
_CTIME = rf"\[[^\W\d_]{{1,5}}\.? {_MONTH} [ \d]\d \d\d:\d\d:\d\d \d{{4}}\]"
_HUMAN = rf"\[(?:{_MONTH} ?\d{{1,2}} \d\d:\d\d|\s+[+]\s?\d{{1,8}}\.\d{{1,9}})\]"
_ISO = r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
_SYSLOG = rf"{_MONTH} [ \d]?\d \d\d:\d\d:\d\d(?:\.\d{{1,9}})?"
_LEVEL = r"(?:kern|user|daemon|syslog)\s{0,4}:[a-z]{3,6}\s{0,4}: "
_KERNEL = r"(?:[^\s:]{1,64} )?kernel: "
_FRAME = r"[^\s:]{1,64} kernel (?:\S{1,48} ){2}(?:-|\[[^\]]{0,200}\]) "
"""RFC 5424 behind the time: host, program, process, kind of message, data."""
_STREAM = r"std(?:out|err) [FP] "
_RAW = r"\d{1,3},\d{1,12},\d{1,16},[^;\s]{1,8};"

_FILE = (
    r"(?:[\w.+@-]{0,80}/[\w./+@-]{1,160}|[\w-]{1,60}(?:\.[\w-]{1,20}){0,3}\.(?:log|txt|gz|out|\d{1,3})"
    r"|(?:messages|syslog|dmesg|kern)(?:-\d{8})?)"
)
_NUMBER = r"(?!\d{4}[-/]\d\d[-/]\d\d[T ])\d{1,8}[:-](?=\S)"
_CARRIER = rf"(?:[-*•] {{1,4}}|`{{1,3}}|{_NUMBER}|{_FILE}:(?=\S)|[\w.-]{{1,64}} login: )"
"""What a tool or a person puts in front of a line. A host name as ``pdsh`` puts it is none: the reader takes it."""

# Facility words and priorities of dmesg -x and of the raw buffer stand in front of the time.
_PREFIX = re.compile(
    rf"\s{{0,8}}(?:{_CARRIER}\s{{0,4}}){{0,4}}(?:{_LEVEL})?(?:<\d{{1,3}}>(?:1 )?)?"
    rf"(?P<time>{_UPTIME}|{_CTIME}|{_HUMAN}|{_ISO}|{_SYSLOG}|{_RAW})?"
    rf"\s?(?:{_STREAM})?(?:{_KERNEL}|{_FRAME})?(?:{_UPTIME} ?)?"
)
_SHORT_CUT = re.compile(r"\[\s*(?P<time>\d{1,9}\.\d{1,9})\] ")
"""The prefix of plain dmesg, of which a log holds millions."""

_STARTS = (
    rf"(?:{_LEVEL}|<\d{{1,3}}>\[|{_UPTIME}\s|{_CTIME}\s|{_HUMAN}\s"
    rf"|(?:<\d{{1,3}}>(?:1 )?)?(?:{_ISO}|{_SYSLOG})\s(?:{_STREAM}{_UPTIME}\s|{_KERNEL}|{_FRAME})"
    rf"|\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{{6}}[+-]\d\d:\d\d\s|{_RAW})"
)
TIME = rf"(?:(?:{_ISO}|{_SYSLOG})\s(?:{_STREAM})?)"
KERNEL_LINE = rf"\s{{0,8}}(?:{_STARTS}|(?:{_CARRIER}\s{{0,4}}){{1,4}}{_STARTS})"
"""Pattern of a line that carries one of the prefixes; for ``opens`` of the kernel log."""

DAEMON_LINE = r"(?:[A-Z][a-z]{2} [ \d]\d [\d:.]{8,15} \S{1,80} |\d{4}-\d\d-\d\dT\S{8,30} \S{1,80} )?"
"""Pattern of the time and host that syslog or the journal may put in front of a daemon's line."""

_MONTHS = {
    **{name.lower(): n for n, name in enumerate(month_abbr) if name},
    **{f"{n}{sign}": n for n in range(1, 13) for sign in ("月", "월")},
    "mär": 3, "mai": 5, "okt": 10, "dez": 12, "janv": 1, "févr": 2, "mars": 3, "avr": 4, "juin": 6, "juil": 7,
    "août": 8, "sept": 9, "déc": 12, "ene": 1, "abr": 4, "ago": 8, "dic": 12, "gen": 1, "mag": 5, "giu": 6, "lug": 7,
    "set": 9, "ott": 10, "fev": 2, "out": 10,
}  # fmt: skip
"""Short names of months as C, German, French, Spanish, Italian, Portuguese, Chinese, Japanese and Korean have them."""
_WORDS = re.compile(
    rf"(?:[^\W\d_]{{1,5}}\.? )?({_MONTH}) {{1,2}}(\d{{1,2}}) (?:(\d{{4}}) )?(\d\d):(\d\d):(\d\d)(?:\.\d{{1,9}})?"
    r"(?: (\d{4}))?"
)
_ISO_PARTS = re.compile(r"(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d):(\d\d):(\d\d)")


def split_prefix(line: str) -> tuple[str, str]:
    """
    Split a line of a kernel log.

    Returns:
        The time as printed, without brackets ("" when there is none), and the message.
    """
    match = _SHORT_CUT.match(line) or _PREFIX.match(line)
    if match is None:
        return "", line
    return (match["time"] or "").strip("[] ;"), line[match.end() :]


def from_journal(line: str) -> str | None:
    """
    Turn a line of ``journalctl -o json``, or of a container's log in JSON, into one with a prefix.

    Returns:
        Time and message; None when the text is no such line.
    """
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    told = [entry.get(key) for key in ("MESSAGE", "message", "msg", "log")] if isinstance(entry, dict) else []
    text = next((one for one in told if isinstance(one, str)), None)
    if text is None:
        return None
    stamp = str(entry.get("__REALTIME_TIMESTAMP", ""))
    message = " ".join(text.split())
    if not re.fullmatch(r"[0-9]{10,17}", stamp):
        return message
    try:
        time = datetime.fromtimestamp(int(stamp) / 1e6, UTC)
    except (ValueError, OverflowError, OSError):
        return message
    return f"{time:%Y-%m-%dT%H:%M:%S+00:00} {message}"


def clock(time: str) -> tuple[str, float] | None:
    """
    Read a time, for comparing it with others of the same log.

    Args:
        time: as :func:`split_prefix` gives it, or ``Mar 04 2025 09:12:55`` of Fabric Manager.

    Returns:
        The scale (``uptime``, ``date`` or ``yearless``; only times of one scale compare) and seconds; None when the
        text is no time. Zones are not read: one log has one zone.
    """
    match = _ISO_PARTS.match(time)
    if match is not None:
        return _seconds("date", *map(int, match.groups()))
    match = _WORDS.fullmatch(time)
    month = _MONTHS.get(match[1].lower().rstrip(".")) if match is not None else None
    if match is not None and month is not None:
        year = match[3] or match[7]
        parts = (int(year or 2000), month, *map(int, match.group(2, 4, 5, 6)))
        return _seconds("date" if year else "yearless", *parts)
    try:
        return ("uptime", float(time)) if len(time) < 24 and not time.startswith("+") else None
    except ValueError:
        return None


def _seconds(scale: str, *parts: int) -> tuple[str, float] | None:
    """Count seconds; ``parts`` are year, month, day, hour, minute, second."""
    year, month, day, hour, minute, second = parts
    try:
        return scale, datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()
    except ValueError:
        return None
