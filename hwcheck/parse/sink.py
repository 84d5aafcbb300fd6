"""Where a parser puts what it reads from one output: fills in the origin of every fact."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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

    def read(self, subject: Subject, name: str, reader: Callable[[str], Any], text: str, line: int = 0) -> Any:
        """
        Record what ``reader`` makes of a text; ``N/A`` is absent, what it does not understand is unparsable.

        Args:
            subject: what it is about.
            name: a declared fact name.
            reader: turns the text into the value; raises ValueError for what it does not understand.
            text: as printed.
            line: 1-based line in the file.

        Returns:
            The value, or None where there is none.
        """
        if text.strip().upper() in ("N/A", "[N/A]", "--"):
            self.missing(subject, name, Reason.ABSENT, text.strip(), line)
            return None
        try:
            value = reader(text)
        except ValueError:
            self.unparsable(subject, name, text, line)
            return None
        self.put(subject, name, value, line)
        return value

    def cut_off(self, detail: str, gives: tuple[str, ...], about: Iterable[Subject] | None = None) -> None:
        """
        Record that this output ends early or broke off.

        Args:
            detail: what shows it.
            gives: names that are unknown where they are not there.
            about: the subjects whose description is incomplete; None for all. With a device that is missing altogether
                give an empty one: those that were read whole keep their answers.
        """
        output = self.output
        last = output.first_line + max(len(output.lines) - 1, 0)
        origin = Origin(output.kind, output.file, last, output.excerpt(last), output.time)
        only = None if about is None else frozenset(about)
        self._snapshot.gaps.append(SourceGap(output.kind, gives, Missing(Reason.UNPARSABLE, detail), origin, only))

    def only_about(self, subjects: Iterable[Subject]) -> None:
        """Say which subjects an output that ended early leaves open; all others were read whole."""
        for gap in self._snapshot.gaps:
            if gap.missing == Missing(self.output.reason or Reason.FAILED, self.output.detail):
                gap.about = frozenset(subjects)

    def seen(self, subject: Subject, name: str) -> Any:
        """Return a present value put before, by this or another output, or None; for lists that grow."""
        return self._snapshot.value(name, subject)
