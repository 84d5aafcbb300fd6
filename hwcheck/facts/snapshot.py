"""
All facts of one node at one time.

Merging: a node is often described twice (table and ``-q``, idle and under load). The later reading of a value wins; a
value wins over a gap, except that a device which answered *with an error* keeps that error, whatever another query
read from it before or after.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from hwcheck.facts.registry import NAMES
from hwcheck.facts.subjects import NODE, Subject, pci_address
from hwcheck.facts.values import NO_FACT, Facet, Fact, Missing, Origin, Reason

Key = tuple[str, Facet]


@dataclass(slots=True)
class SourceGap:
    """A source that was asked and did not give all: its kind, the names it would have given, and why it did not."""

    kind: str
    gives: tuple[str, ...]
    missing: Missing
    origin: Origin
    about: frozenset[Subject] | None = None
    """The subjects it concerns; None for all. What was read whole of the others keeps its answers."""

    def would_give(self, name: str) -> bool:
        """Tell whether ``gives`` has the name, or a beginning of it (``nvlink.*``)."""
        names, beginnings = _names_of(self.gives)
        return name in names or name.startswith(beginnings)


@lru_cache(maxsize=512)
def _names_of(gives: tuple[str, ...]) -> tuple[frozenset[str], tuple[str, ...]]:
    """Split into whole names and beginnings; each value that a node lacks asks every gap for its name."""
    return frozenset(gives), tuple(give[:-1] for give in gives if give.endswith("*"))


@dataclass(frozen=True, slots=True)
class Change:
    """Two outputs contradict each other in a state of one subject; the later one is in the snapshot."""

    subject: Subject
    name: str
    before: Fact
    after: Fact


@dataclass(slots=True)
class Snapshot:
    """
    All facts of one node at one time.

    Attributes:
        node: host name, "" when unknown.
        facts: subject → (name, facet) → Fact.
        gaps: sources that failed, or were cut off.
        changes: states and identities in which two outputs contradict each other.
        simulated: from a lab node.
    """

    node: str = ""
    facts: dict[Subject, dict[Key, Fact]] = field(default_factory=dict)
    gaps: list[SourceGap] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    simulated: bool = False

    def put(self, subject: Subject, name: str, fact: Fact, facet: Facet = Facet.RUNNING) -> None:
        """
        Add a fact, by the merge rule above.

        Raises:
            KeyError: the name is not declared.
            ValueError: the subject is of another kind than the name is declared for.
            TypeError: the value is of another type.
        """
        spec = NAMES[name]
        if spec.scope != subject.kind:
            raise ValueError(f"{name} belongs to a {spec.scope}, not to a {subject.kind}")
        value = fact.value
        if not isinstance(value, Missing):
            good = type(value) in (int, float) if spec.type is float else type(value) is spec.type
            if not good:
                raise TypeError(f"{name} is {spec.type.__name__}, not {value!r}")
        of_subject = self.facts.setdefault(subject, {})
        key = (name, facet)
        before = of_subject.get(key)
        if before is not None and _contradict(name, before, fact):
            self.changes.append(Change(subject, name, before, fact))
        if before is None or _wins(fact, before):
            of_subject[key] = fact

    def get(self, subject: Subject, name: str, facet: Facet = Facet.RUNNING) -> Fact:
        """Return a fact; where there is none, a Missing that says whether a source was asked for it."""
        fact = self.facts.get(subject, {}).get((name, facet))
        if fact is not None:
            return fact
        gap = self.gap_for(name, subject)
        return Fact(gap.missing, gap.origin) if gap else NO_FACT

    def gap_for(self, name: str, subject: Subject | None = None) -> SourceGap | None:
        """Return the first failed source that would have given this name, of this subject or of any."""
        for gap in self.gaps:
            if subject is not None and gap.about is not None and subject not in gap.about:
                continue
            if gap.would_give(name):
                return gap
        return None

    def subjects(self, kind: str) -> list[Subject]:
        """List the subjects of a kind, in a stable order a person expects (mlx5_2 before mlx5_10)."""
        return sorted((subject for subject in self.facts if subject.kind == kind), key=_natural)

    def with_fact(self, name: str, facet: Facet = Facet.RUNNING) -> Iterator[tuple[Subject, Fact]]:
        """Go through the subjects that have this fact, present or missing."""
        key = (name, facet)
        for subject in self.subjects(NAMES[name].scope):
            fact = self.facts[subject].get(key)
            if fact is not None:
                yield subject, fact

    def value(self, name: str, subject: Subject = NODE, default: Any = None) -> Any:
        """Return a present value or ``default``; for display and identity only, never for a verdict."""
        fact = self.facts.get(subject, {}).get((name, Facet.RUNNING))
        return fact.value if fact is not None and fact.present else default


IDENTITIES = ("gpu.uuid", "gpu.serial")
_STATES = {"gpu.recovery_action", "gpu.fabric.state", "gpu.fabric.status", "rdma.port.state", "driver.version"}
_PASSING = ("gpu.clocks.reason.", "evidence.")
"""What changes from one second to the next on a healthy GPU."""


def _contradict(name: str, old: Fact, new: Fact) -> bool:
    """Tell whether two outputs say opposite things of a state (or of who this is) that does not change by itself."""
    if not (old.present and new.present) or old.value == new.value or old.origin is None or new.origin is None:
        return False
    if old.origin.file == new.origin.file and old.origin.source == new.origin.source and not new.origin.line:
        return False
    if name in IDENTITIES:
        return not any(str(value).strip("GPU-0") in ("", "N/A") for value in (old.value, new.value))  # redacted
    return name in _STATES or (NAMES[name].type is bool and not name.startswith(_PASSING))


def _wins(new: Fact, old: Fact) -> bool:
    if isinstance(old.value, Missing) and old.value.reason is Reason.FAILED:
        return False
    if isinstance(new.value, Missing) and new.value.reason is not Reason.FAILED:
        return isinstance(old.value, Missing) and not old.value.reason.asked
    return True


@lru_cache(maxsize=8192)  # every check lists its subjects, and the nodes of a fleet have the same
def _natural(subject: Subject) -> tuple[str, list[tuple[int, str]]]:
    if pci_address(subject.id) is not None:
        return subject.kind, [(-1, subject.id)]  # hexadecimal: 0000:18 before 0000:2a
    parts: list[tuple[int, str]] = []
    digits = ""
    for char in subject.id + "\0":
        if char.isascii() and char.isdigit() and len(digits) < 18:
            digits += char
            continue
        if digits:
            parts.append((int(digits), ""))
            digits = ""
        parts.append((-1, char))
    return subject.kind, parts
