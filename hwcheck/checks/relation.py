"""
The form of a check over several facts.

Example::

    @relation(
        "driver.fabric_manager",
        needs=("driver.version", "service.fabric_manager.version"),
        urgency=Urgency.NOW,
        remedy=Remedy("act", "Install nvidia-fabricmanager of exactly the driver's version.", disturbs="board"),
    )
    def fabric_manager_matches_driver(given: Given) -> Answer:
        \"\"\"
        Fabric manager and driver are of one version.

        What it checks: ...
        Why it matters: ...
        How to fix: ...
        Applies to: ...
        Source: ...
        \"\"\"
        driver, manager = given["driver.version"], given["service.fabric_manager.version"]
        if manager == driver:
            return ok(f"fabric manager and driver are both {driver}")
        return fail(f"fabric manager is {manager}, the driver {driver}", observed=manager, expected=driver)

The docstring is what ``hwcheck explain`` prints; its first line is the title, the five headings are demanded by a test.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from hwcheck.baselines import Bound
from hwcheck.facts import NAMES, Facet, Fact, Origin, Subject
from hwcheck.findings import Remedy, Status, Urgency


@dataclass(frozen=True, slots=True)
class Every:
    """A need of a node check over all subjects of a kind: one that was asked and not told makes the check unknown."""

    name: str


@dataclass(frozen=True, slots=True)
class Some:
    """A need of a node check over those subjects of a kind that have the value; at least one must."""

    name: str


Need = str | Every | Some


@dataclass(frozen=True, slots=True)
class Answer:
    """
    What a check body answers for its subject, or for several.

    Attributes:
        status, message, observed, expected: as in a finding.
        check: id, where the relation answers for a list of ids (``xid.79``); "" for the relation's own.
        subject: another subject than the one asked for (a node check that names a GPU).
        urgency, remedy: in place of the relation's.
        because: fact name whose origin is the evidence; default the first need.
        origin: the evidence itself, where no fact's origin is right (one line of a log).
        seen: as in a finding.
    """

    status: Status
    message: str
    observed: Any = None
    expected: Any = None
    check: str = ""
    subject: Subject | None = None
    urgency: Urgency | None = None
    remedy: Remedy | None = None
    because: str = ""
    origin: Origin | None = None
    seen: dict[str, Any] | None = None


def ok(message: str, **more: Any) -> Answer:
    """Answer pass."""
    return Answer(Status.PASS, message, **more)


def warn(message: str, **more: Any) -> Answer:
    """Answer warn: wrong, but no reason to keep the node out of work."""
    return Answer(Status.WARN, message, **more)


def fail(message: str, **more: Any) -> Answer:
    """Answer fail: not fit for production."""
    return Answer(Status.FAIL, message, **more)


def skip(message: str, **more: Any) -> Answer:
    """Answer that the check does not apply to this subject, and why."""
    return Answer(Status.SKIP, message, **more)


def unknown(message: str, **more: Any) -> Answer:
    """Answer that what is there does not tell: a condition of a measurement was seen false, a yardstick is missing."""
    return Answer(Status.UNKNOWN, message, **more)


class Given:
    """
    What a check body sees: present values, and the profile's bounds.

    ``given["name"]`` is the value of a needed fact of this subject (or of the node, for node facts); for an
    :class:`Every` or :class:`Some` need it is a dict subject → value. ``given.maybe("name")`` is the value of a fact
    that the relation lists under ``uses``, or None when it is missing for whatever reason; when a source was asked for
    it and did not tell, the engine turns a pass of this check into unknown. ``given.previous("name")`` is the value
    that a fact listed under ``compares`` had at the last look in this boot, or None. ``given.bound("id")`` is a value
    that the profile holds under ``bounds``, or None where the platform has none. ``given.references`` are the bounds
    that the fleet and the node's history give a measurement.
    """

    __slots__ = (
        "_bounds", "_maybe", "_values", "doubts", "facts", "next_boot_only", "platform", "previous", "references",
        "subject",
    )  # fmt: skip

    def __init__(
        self,
        subject: Subject,
        values: dict[str, Any],
        facts: dict[str, Fact],
        maybe: Callable[[str, Facet], Any],
        bounds: dict[str, Any],
        platform: str,
        previous: Callable[[str], Any],
        doubts: dict[str, Fact],
    ) -> None:
        self.subject = subject
        self._values = values
        self.facts = facts
        self._maybe = maybe
        self._bounds = bounds
        self.platform = platform
        self.previous = previous
        self.doubts = doubts
        self.next_boot_only = False
        self.references: tuple[Bound, ...] = ()

    def __getitem__(self, name: str) -> Any:
        """Return the value of a needed fact."""
        return self._values[name]

    def maybe(self, name: str, facet: Facet = Facet.RUNNING) -> Any:
        """Return the value of a used fact, or None."""
        return self._maybe(name, facet)

    def bound(self, name: str) -> Any:
        """Return a profile bound; None where there is none, or where the shipped ``unset`` leaves it to the site."""
        value = self._bounds.get(name)
        return None if value == UNSET else value

    def origin(self, name: str) -> Origin | None:
        """Return where a needed fact of this subject was read."""
        fact = self.facts.get(name)
        return fact.origin if fact else None


UNSET = "unset"
"""Value of a bound that only a site can know."""
Body = Callable[[Given], "Answer | Iterable[Answer] | None"]


@dataclass(frozen=True, slots=True)
class Relation:
    """
    One check: what it is asked of, the facts it needs, and the function that answers.

    Attributes:
        id: check id, or ``family.*`` when ``ids`` lists what it may answer for.
        scope: kind of subject it is asked for.
        needs: facts that must be present; one that is missing makes the finding skip or unknown.
        uses: facts it may look at with ``given.maybe``.
        any_of: at least one of these must be present (alternatives of which each is enough).
        body: the predicate. May answer several findings, or None when the check does not apply to the subject and
            nothing is worth saying.
        urgency, remedy: of a warn or fail, unless the answer brings its own.
        title, text: first line and rest of the docstring.
        ids: other ids it answers for.
        compares: facts whose earlier value it may look at with ``given.previous``.
        facets: a setting, which can be judged by its value for the next boot alone where nothing runs (an image).
    """

    id: str
    scope: str
    needs: tuple[Need, ...]
    uses: tuple[str, ...]
    any_of: tuple[str, ...]
    body: Body
    urgency: Urgency
    remedy: Remedy | None
    title: str
    text: str
    ids: tuple[str, ...] = ()
    facets: bool = False
    compares: tuple[str, ...] = ()


RELATIONS: dict[str, Relation] = {}


def relation(
    id: str,
    *,
    needs: tuple[Need, ...] = (),
    uses: tuple[str, ...] = (),
    compares: tuple[str, ...] = (),
    any_of: tuple[str, ...] = (),
    scope: str = "",
    urgency: Urgency = Urgency.MAINTENANCE,
    remedy: Remedy | None = None,
    ids: Iterable[str] = (),
) -> Callable[[Body], Body]:
    """
    Declare a check over several facts.

    Args:
        id: see :class:`Relation`. Never renamed: history and waivers refer to it.
        needs: names, :class:`Every` or :class:`Some`.
        uses: names for ``given.maybe``.
        compares: names for ``given.previous``.
        any_of: names of which one must be present.
        scope: default: scope of the first plain need that is no node fact, else the node.
        urgency: of a warn or fail.
        remedy: of a warn or fail.
        ids: what a ``family.*`` relation may answer for.

    Raises:
        ValueError: an id twice, an undeclared fact name, or no docstring.
    """

    def register(body: Body) -> Body:
        if id in RELATIONS:
            raise ValueError(f"check declared twice: {id}")
        names = [need if isinstance(need, str) else need.name for need in needs]
        for name in (*names, *uses, *compares, *any_of):
            if name not in NAMES:
                raise ValueError(f"{id} needs an undeclared fact: {name}")
        title, _, text = (inspect.getdoc(body) or "").partition("\n")
        if not title:
            raise ValueError(f"{id} has no docstring")
        scoped = scope or _scope(needs, any_of)
        RELATIONS[id] = Relation(
            id, scoped, needs, uses, any_of, body, urgency, remedy, title, text.strip(), tuple(ids), compares=compares
        )
        return body

    return register


def _scope(needs: tuple[Need, ...], any_of: tuple[str, ...]) -> str:
    for need in (*needs, *any_of):
        if isinstance(need, str) and NAMES[need].scope != "node":
            return NAMES[need].scope
    return "node"
