"""What the checks on logs share: the line that decided, the words for a group of lines, and what a log can prove."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hwcheck.checks.relation import Given
from hwcheck.facts import Origin

Record = dict[str, Any]


def origin_of(given: Given, name: str, record: Record) -> Origin:
    """Return the line of a record as the evidence of a finding."""
    base = given.origin(name)
    source = base.source if base is not None else "kernel.log"
    return Origin(source, record["file"], record["line"], record["text"], record["time"])


def times_of(records: Iterable[Record]) -> str:
    """Say how often and when: ``1 line``, ``5 lines``, ``5 lines from A to B``."""
    found = list(records)
    count = sum(record["count"] for record in found)
    first, last = found[0]["time"], found[-1]["last_time"]
    words = f"{count} line{'s' if count != 1 else ''}"
    if not first:
        return words
    return f"{words} from {first} to {last}" if last and last != first else f"{words} at {first}"


def proves(given: Given, kind: str) -> str:
    """
    Tell whether the kernel log proves the absence of a kind (xid, sxid, kernel).

    Returns:
        The time it covers, in words for a message; "" when it proves nothing. A posted excerpt proves nothing: nobody
        knows what was left out. A log that shows a boot is whole from there on; so is one that hwcheck collected.
    """
    window = given.maybe("kernel.log.window")
    if window is None:
        return ""
    if kind not in window["proves"] and not (given.maybe("evidence.collected") and window["whole"]):
        return ""
    if not window["lines"]:
        return "in the kernel log"
    covered = f" from {window['time']} to {window['last_time']}" if window["time"] and window["last_time"] else ""
    return f"in the kernel log{covered}"


EXCERPT = "the lines are an excerpt: they do not prove that there was none"
"""Why a log without an error is no pass."""
