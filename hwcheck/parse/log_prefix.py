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
"""

from __future__ import annotations

import re
from calendar import month_abbr
from datetime import UTC, datetime

_UPTIME = r"\[\s*\d{1,12}\.\d{1,9}\]"
_CTIME = r"\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}\]"
_HUMAN = r"\[(?:[A-Z][a-z]{2} ?\d{1,2} \d\d:\d\d|\s+[+]\s?\d{1,8}\.\d{1,9})\]"
_ISO = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
_SYSLOG = r"[A-Z][a-z]{2} [ \d]?\d \d\d:\d\d:\d\d(?:\.\d{1,9})?"
_LEVEL = r"(?:kern|user|daemon|syslog)\s{0,4}:[a-z]{3,6}\s{0,4}: "
_KERNEL = r"[^\s:]{1,64} kernel: "

# Facility words and priorities of dmesg -x and of the raw buffer stand in front of the time.
_PREFIX = re.compile(
    rf"\s{{0,8}}(?:{_LEVEL})?(?:<\d{{1,3}}>)?"
    rf"(?P<time>{_UPTIME}|{_CTIME}|{_HUMAN}|{_ISO}|{_SYSLOG}|\d{{1,3}},\d{{1,12}},\d{{1,16}},[^;]{{1,8}};)?"
    rf"\s?(?:{_KERNEL})?(?:{_UPTIME} ?)?"
)

KERNEL_LINE = (
    rf"\s{{0,8}}(?:{_LEVEL}|<\d{{1,3}}>\[|{_UPTIME}\s|{_CTIME}\s|{_HUMAN}\s"
    rf"|{_ISO}\s{_KERNEL}|\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{{6}}[+-]\d\d:\d\d\s"
    rf"|{_SYSLOG}\s{_KERNEL}|\d{{1,3}},\d{{1,12}},\d{{1,16}},[^;\s]{{1,8}};)"
)
"""Pattern of a line that carries one of the prefixes; for ``opens`` of the kernel log."""

_MONTHS = {name: n for n, name in enumerate(month_abbr) if name}
_WORDS = re.compile(
    r"(?:[A-Z][a-z]{2} )?([A-Z][a-z]{2}) {1,2}(\d{1,2}) (?:(\d{4}) )?(\d\d):(\d\d):(\d\d)(?:\.\d{1,9})?(?: (\d{4}))?"
)
_ISO_PARTS = re.compile(r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)")


def split_prefix(line: str) -> tuple[str, str]:
    """
    Split a line of a kernel log.

    Returns:
        The time as printed, without brackets ("" when there is none), and the message.
    """
    match = _PREFIX.match(line)
    if match is None:
        return "", line
    return (match["time"] or "").strip("[] ;"), line[match.end() :]


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
    if match is not None and match[1] in _MONTHS:
        year = match[3] or match[7]
        parts = (int(year or 2000), _MONTHS[match[1]], *map(int, match.group(2, 4, 5, 6)))
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
