"""
Since when is it so: spells of one check on one subject of one node, over all runs that judged it. Pure.

A spell begins with the first run that tells of it and ends with the first that tells otherwise. What could not be told
(unknown, skipped, not judged, node not reached) ends none: a node that hides its fault has not got well. An event of a
log is told otherwise by a run that judged the check or its family and says nothing of it: that is ``gone``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from hwcheck.store.rows import Waived

TOLD = ("pass", "warn", "fail", "gone")

Key = tuple[str, str]
Fold = dict[str, dict[str, list[str]]]


@dataclass(frozen=True, slots=True)
class Seen:
    """
    A node in one run.

    Attributes:
        run: name of the run.
        at: when it began, by the controller's clock.
        boot: boot id; "" where it is not told.
        about: names what the node was (a content).
        fold: names what passed and was skipped (a content).
        platform: the profile that judged it.
        simulated: a lab node.
        bad: what is not well: status, what was said (a content) and the waiver, by check and subject.
    """

    run: str
    at: float
    boot: str
    about: str
    fold: str
    platform: str
    simulated: bool
    bad: dict[Key, tuple[str, str, Waived | None]]


@dataclass(frozen=True, slots=True)
class Moment:
    """A run at which something is told, and what: see :func:`status_in`."""

    run: str
    at: float
    status: str


@dataclass(frozen=True, slots=True)
class Cause:
    """
    Something that changed between the last run that told otherwise and the first of a spell; no proof that it is why.

    Attributes:
        what: ``driver``, ``NIC firmware``, ``boot``, ``sysctl vm.swappiness`` ...
        where: part it is of; "" for the node.
        before, after: values; "" where there was none.
        run: run of hwcheck that did it; "" where it was not us.
    """

    what: str
    where: str
    before: str
    after: str
    run: str = ""


@dataclass(slots=True)
class Spell:
    """
    What is not well, from when to when.

    Attributes:
        node, check, subject: of what.
        status: ``fail``, ``warn`` or ``unknown``.
        first, last: runs that told it.
        runs: how many did.
        before: the last run that told otherwise; None where no kept run did, so that it may be older than ``first``.
        ended: the run that told otherwise again; None while it lasts.
        untold: the last run, where that could not tell; the spell may be over, and nobody knows.
        waived: the waiver that the last one had.
        message: of the last run.
        causes: what changed before it.
    """

    node: str
    check: str
    subject: str
    status: str
    first: Moment
    last: Moment
    runs: int = 1
    before: Moment | None = None
    ended: Moment | None = None
    untold: Moment | None = None
    waived: Waived | None = None
    message: str = ""
    causes: tuple[Cause, ...] = ()
    said: str = field(default="", repr=False)
    span: tuple[int, int] = (0, 0)
    """Indices into the node's runs: of ``before`` (-1 for none) and ``first``."""


def spells_of(node: str, seen: Sequence[Seen], keys: Iterable[Key], folds: Folds) -> list[Spell]:
    """
    Find the spells of a node.

    Args:
        node: its name.
        seen: its runs, the oldest first.
        keys: checks and subjects to look at.
        folds: of these runs.
    """
    return [spell for key in sorted(set(keys)) for spell in _of_key(node, seen, key, folds)]


class Folds:
    """
    Folds of runs, and which checks and families passed in each.

    Args:
        fold: gives the content of that name.
    """

    def __init__(self, fold: Callable[[str], Fold]) -> None:
        self.get = fold
        self.passed = lru_cache(maxsize=4096)(self._passed)

    def _passed(self, name: str) -> frozenset[str]:
        checks = self.get(name).get("pass", {})
        return frozenset(checks) | {check.partition(".")[0] for check in checks}


def status_in(run: Seen, key: Key, folds: Folds) -> str:
    """Say what a run tells: a status, ``gone``, or "" where it did not judge it."""
    if key in run.bad:
        return run.bad[key][0]
    (check, subject), fold = key, folds.get(run.fold)
    for status in ("pass", "skip"):
        if subject in fold.get(status, {}).get(check, ()):
            return status
    passed = folds.passed(run.fold)
    mine = {status for (one, _), (status, *_) in run.bad.items() if one == check}
    if mine or check in passed or check in fold.get("skip", {}):
        return "gone" if check in passed or mine & {"warn", "fail"} else ""
    family = check.partition(".")[0]
    told = {one.partition(".")[0] for (one, _), (status, *_) in run.bad.items() if status in ("warn", "fail")}
    return "gone" if family in passed or family in told else ""


def _of_key(node: str, seen: Sequence[Seen], key: Key, folds: Folds) -> list[Spell]:
    found: list[Spell] = []
    now: Spell | None = None
    told, told_at = None, -1  # the last run that told for sure
    for index, run in enumerate(seen):
        status = status_in(run, key, folds)
        moment = Moment(run.run, run.at, status)
        _, said, waived = run.bad.get(key, ("", "", None))
        if now is not None and status == now.status:
            now.last, now.runs, now.untold, now.said, now.waived = moment, now.runs + 1, None, said, waived
        elif status in ("warn", "fail") or (status == "unknown" and now is None):
            if now is not None:
                now.ended = moment
            now = Spell(
                node, *key, status, moment, moment, before=told, said=said, waived=waived, span=(told_at, index)
            )
            found.append(now)
        elif now is not None and (status in TOLD or (now.status == "unknown" and status == "skip")):
            now.ended, now = moment, None
        elif now is not None:
            now.untold = moment
        if status in TOLD:
            told, told_at = moment, index
    return found


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[Cause]:
    """
    Say what a node is now and was not: versions, firmware and serials of its parts.

    Args:
        before: what :func:`hwcheck.describe.describe` said.
        after: the same, later. What only one of them tells is no change: who reads as root sees more.
    """
    old, new = _flat(before), _flat(after)
    changed = [Cause(*key, old[key], new[key]) for key in old if key in new and old[key] != new[key]]
    return [*changed, *_parts(before, after)]


def _flat(about: dict[str, Any]) -> dict[tuple[str, str], str]:
    flat = {(name, ""): str(value) for name, value in (about.get("versions") or {}).items()}
    for kind, keys in (("gpus", ("vbios", "serial")), ("nics", ("firmware", "psid"))):
        for part in about.get(kind) or ():
            for key in keys:
                if key in part:
                    flat[f"{kind[:-1].upper()} {key}", str(part.get("id", ""))] = str(part[key])
    return flat


def _parts(before: dict[str, Any], after: dict[str, Any]) -> list[Cause]:
    found = []
    for kind in ("gpus", "nics"):
        old, new = ({str(part.get("id", "")) for part in about.get(kind) or ()} for about in (before, after))
        if old and new:
            found += [Cause(kind[:-1].upper(), part, part, "") for part in sorted(old - new)]
            found += [Cause(kind[:-1].upper(), part, "", part) for part in sorted(new - old)]
    return found
