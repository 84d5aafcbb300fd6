"""
Fleet checks: folds over a few declared facts of all nodes, so that a fleet streams through.

A node is seen once, right after it was judged; kept of it are the facts that some fold declares and the ids of its
failing checks, well under 2 kB. After the last node the folds answer, as the verdict of a node named ``fleet``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from hwcheck.facts import NAMES, NODE, Snapshot
from hwcheck.findings import Finding, NodeVerdict, Remedy, Status, Urgency

FLEET = "fleet"
_PAIR = "baseline.pair"


@dataclass(frozen=True, slots=True)
class Row:
    """
    What is kept of one node.

    Attributes:
        node: its name.
        values: by fact name: subject id → value.
        failing: ids of the checks that fail.
        decided: of its measurements with others, subject id → pass, warn or fail; those that do not count are not here.
    """

    node: str
    values: dict[str, dict[str, Any]]
    failing: tuple[str, ...]
    decided: dict[str, Status] = field(default_factory=dict)

    def one(self, name: str) -> Any:
        """Return the value of a node fact, or of all GPUs when they agree; else None."""
        found = set(self.values.get(name, {}).values())
        return found.pop() if len(found) == 1 else None


@dataclass(frozen=True, slots=True)
class FleetAnswer:
    """What a fold says: status, message, nodes concerned, and what was seen."""

    status: Status
    message: str
    observed: Any = None


Body = Callable[[list[Row]], Iterable[FleetAnswer]]


@dataclass(frozen=True, slots=True)
class Fold:
    """A fleet check: id, the facts it keeps of each node, its body, and what explain prints."""

    id: str
    facts: tuple[str, ...]
    body: Body
    urgency: Urgency
    remedy: Remedy
    title: str
    text: str


FOLDS: dict[str, Fold] = {}


def fold(id: str, *facts: str, urgency: Urgency, remedy: Remedy) -> Callable[[Body], Body]:
    """
    Declare a fleet check; its docstring is what explain prints.

    Raises:
        ValueError: an undeclared fact, or an id twice.
    """

    def register(body: Body) -> Body:
        for name in facts:
            if name not in NAMES:
                raise ValueError(f"{id} keeps an undeclared fact: {name}")
        if id in FOLDS:
            raise ValueError(f"fleet check declared twice: {id}")
        title, _, text = (inspect.getdoc(body) or "").partition("\n")
        FOLDS[id] = Fold(id, facts, body, urgency, remedy, title, text.strip())
        return body

    return register


class Fleet:
    """Sees nodes one by one, answers at the end."""

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._known: dict[Any, Any] = {}
        self._names = tuple(dict.fromkeys(name for item in FOLDS.values() for name in item.facts))

    def see(self, snapshot: Snapshot, verdict: NodeVerdict) -> None:
        """Keep what the folds need of one node."""
        values: dict[str, dict[str, Any]] = {}
        for name in self._names:
            found = {
                self._one(subject.id): self._one(fact.value)
                for subject, fact in snapshot.with_fact(name)
                if fact.present
            }
            if found:
                values[name] = found
        failing = sorted({self._one(f.check) for f in verdict.findings if f.status is Status.FAIL and f.counts})
        decided: dict[str, Status] = {
            finding.subject.id: finding.status for finding in verdict.findings
            if finding.check == _PAIR and finding.status in (Status.PASS, Status.WARN, Status.FAIL)
        }  # fmt: skip
        self._rows.append(Row(snapshot.node, values, tuple(failing), decided))

    def _one(self, value: Any) -> Any:
        """Return the one object that stands for equal texts: ten thousand nodes name the same versions."""
        return self._known.setdefault(value, value) if type(value) is str else value

    def verdict(self) -> NodeVerdict | None:
        """Answer all folds; None for fewer than two nodes, of which there is nothing to compare."""
        if len(self._rows) < 2:  # a fleet of one
            return None
        findings = [
            Finding(
                item.id,
                NODE,
                answer.status,
                answer.message,
                item.urgency if answer.status in (Status.WARN, Status.FAIL, Status.UNKNOWN) else None,
                answer.observed,
                remedy=item.remedy if answer.status in (Status.WARN, Status.FAIL) else None,
            )
            for item in FOLDS.values()
            for answer in item.body(self._rows)
        ]
        return NodeVerdict(FLEET, FLEET, "none", findings)
