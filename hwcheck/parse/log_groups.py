"""
Like lines of a log, counted together within bounds.

A storm writes the same error ten thousand times, and a hostile log a new one with every line; what is kept of a log is
bounded for both.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from hwcheck.evidence import Output
from hwcheck.facts import Subject
from hwcheck.parse.sink import FactSink

TEXT_LENGTH = 200
DEVICES = 256
GROUPS_PER_DEVICE = 64

Record = dict[str, Any]


class Log(Protocol):
    """What is kept of a log while it is read."""

    def feed(self, text: str, number: int) -> None:
        """Take one line and its number in the file."""

    def finish(self, facts: FactSink) -> None:
        """Put the facts."""


def put_log(output: Output, facts: FactSink, kind: type[Log]) -> None:
    """Put the facts of a log that the reader has fed line by line, or read one that is in memory."""
    log = output.digest
    if not isinstance(log, kind):
        log = kind()
        for number, text in enumerate(output.lines, output.first_line):
            log.feed(text, number)
    log.finish(facts)


class Groups:
    """
    Records of like lines, by device.

    Attributes:
        dropped: lines that fit no group when all allowed ones were taken.
    """

    __slots__ = ("_devices", "dropped")

    def __init__(self) -> None:
        self._devices: dict[str, dict[tuple[Any, ...], Record]] = {}
        self.dropped = 0

    def again(self, at: str, key: tuple[Any, ...], time: str, line: int) -> Record | None:
        """Count a line whose group there is already, and return its record; else None."""
        groups = self._devices.get(at)
        record = groups.get(key) if groups is not None else None
        if record is not None:
            record["count"] += 1
            record["last_time"], record["last_line"] = time, line
        return record

    def add(self, at: str, key: tuple[Any, ...], time: str, line: int, text: str, **first: Any) -> Record | None:
        """
        Count a line.

        Args:
            at: the device: PCI address, or whatever name the log gives.
            key: what makes two lines of this device alike.
            time: as printed.
            line: 1-based line in the file.
            text: the message.
            first: further keys of the record, taken from the first line of the group.

        Returns:
            The record, or None when no more groups are kept.
        """
        record = self.again(at, key, time, line)
        if record is not None:
            return record
        groups = self._devices.get(at)
        if groups is None:
            if len(self._devices) >= DEVICES:
                self.dropped += 1
                return None
            groups = self._devices[at] = {}
        if len(groups) >= GROUPS_PER_DEVICE:
            self.dropped += 1
            return None
        record = groups[key] = {
            **first, "count": 1, "line": line, "time": time, "last_time": time, "last_line": line,
            "text": text[:TEXT_LENGTH],
        }  # fmt: skip
        return record

    def devices(self) -> Iterable[tuple[str, list[Record]]]:
        """Go through the devices with their records, in the order of the log."""
        for device, groups in self._devices.items():
            yield device, list(groups.values())

    def records(self) -> list[Record]:
        """List all records."""
        return [record for _, records in self.devices() for record in records]


def put_records(facts: FactSink, subject: Subject, name: str, records: list[Record], same: tuple[str, ...]) -> None:
    """
    Put the records of one subject, together with those that an earlier log of the same node gave.

    Two logs (dmesg and journal) often tell the same events: records that agree in the keys ``same`` become one, with
    the higher count.
    """
    file = facts.output.file
    known = {tuple(record.get(key) for key in same): record for record in facts.seen(subject, name) or ()}
    for one in records:
        record = {**one, "file": file}
        key = tuple(record.get(part) for part in same)
        before = known.get(key)
        known[key] = {**before, "count": max(before["count"], record["count"])} if before else record
    facts.put(subject, name, tuple(known.values()))
