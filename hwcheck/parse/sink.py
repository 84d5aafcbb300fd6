"""Where a parser puts what it reads from one output: fills in the origin of every fact."""

from __future__ import annotations

from typing import Any

from hwcheck.evidence import Output
from hwcheck.facts import Facet, Fact, Missing, Origin, Reason, Snapshot, SourceGap, Subject


class FactSink:
    """
    Where a parser puts what it reads from one output; fills in the origin.

    A parser never raises for a value it does not understand: it puts a Missing(unparsable) with :meth:`unparsable`
    and goes on with the next device.
    """

    __slots__ = ("_snapshot", "_subjects", "output")

    def __init__(self, snapshot: Snapshot, output: Output, subjects: dict[Subject, set[int]] | None = None) -> None:
        self._snapshot = snapshot
        self.output = output
        self._subjects = subjects

    def put(
        self,
        subject: Subject,
        name: str,
        value: Any,
        line: int = 0,
        facet: Facet = Facet.RUNNING,
        time: str = "",
    ) -> None:
        """
        Record a value, or a Missing.

        Args:
            subject: what it is about.
            name: a declared fact name.
            value: of the declared type and unit, or a :class:`Missing`.
            line: 1-based line in the file (``output.first_line + index``); 0 when unknown.
            facet: which reading of a tunable.
            time: when it was logged, where that differs from when the output was taken.
        """
        output = self.output
        origin = Origin(output.kind, output.file, line, output.excerpt(line) if line else "", time or output.time)
        if self._subjects is not None and subject.kind == "gpu":
            self._subjects.setdefault(subject, set()).add(id(output))
        self._snapshot.put(subject, name, Fact(value, origin), facet)

    def missing(
        self, subject: Subject, name: str, reason: Reason, detail: str = "", line: int = 0, facet: Facet = Facet.RUNNING
    ) -> None:
        """Record that a value could not be had, and why."""
        self.put(subject, name, Missing(reason, detail), line, facet)

    def unparsable(self, subject: Subject, name: str, text: str, line: int = 0) -> None:
        """Record a value that is there but is not understood."""
        self.put(subject, name, Missing(Reason.UNPARSABLE, f"not understood: {text.strip()[:60]!r}"), line)

    def cut_off(self, detail: str, gives: tuple[str, ...]) -> None:
        """Record that this output ends early or broke off: names under ``gives`` that are not there are unknown."""
        output = self.output
        last = output.first_line + max(len(output.lines) - 1, 0)
        origin = Origin(output.kind, output.file, last, output.excerpt(last), output.time)
        self._snapshot.gaps.append(SourceGap(output.kind, gives, Missing(Reason.UNPARSABLE, detail), origin))

    def seen(self, subject: Subject, name: str) -> Any:
        """Return a present value put before, by this or another output, or None; for lists that grow."""
        return self._snapshot.value(name, subject)
