"""
What a run changes on this node, written before it changes anything: ``/var/lib/hwcheck/journal/RUN.json``.

One JSON object: run, node, boot id, changes with the states before and after, commands, acts, results. It is replaced
whole, so that it is never half-written. The first state that a run saw of a target stays its ``before``, however often
the run is resumed. An image keeps none: the caller does.
"""

from __future__ import annotations

import calendar
import json
import re
import time
from typing import Any

from .place import Json, Place, WriteError, words_of

FORMAT = "hwcheck.journal/1"
FOLDER = "/var/lib/hwcheck/journal"
_PARTS = {
    "changes": ("kind", "target", "before", "after", "phase", "steps"),
    "commands": ("words", "seconds", "steps", "state"),
    "acts": ("do", "target", "state"),
    "results": ("id", "status"),
}  # fmt: skip
_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


class DamagedError(WriteError):
    """A journal of ours that something else has cut off or changed; a copy of it may be whole."""


def check_run(run: Any) -> str:
    """
    Return a run's name.

    Raises:
        WriteError: it is none.
    """
    if not isinstance(run, str) or not _RUN.fullmatch(run):
        raise WriteError(f"no name of a run: {str(run)[:80]!r}")
    return run


def new(run: str, place: Place) -> Json:
    """Return an empty journal."""
    return {
        "format": FORMAT, "run": run, "boot_id": place.boot_id(), "begun": now(), "state": "prepared",
        "changes": [], "commands": [], "acts": [], "results": [],
    }  # fmt: skip


def now() -> str:
    """Return the time, UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def age(at: str) -> float:
    """Return the seconds since a time that :func:`now` has told."""
    return float(time.time() - calendar.timegm(time.strptime(at, "%Y-%m-%dT%H:%M:%SZ")))


def load(place: Place, run: str) -> Json | None:
    """
    Return the journal of a run; None when this node has none.

    Raises:
        WriteError: it is of another version, or not understood.
    """
    return understood(place.text(f"{FOLDER}/{run}.json"), run)


def understood(text: str | None, run: str) -> Json | None:
    """
    Read a journal.

    Raises:
        WriteError: as :func:`load`.
    """
    if text is None:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise DamagedError(f"the journal of run {run} is not understood; nothing is changed or undone by it") from None
    return checked(found, run)


def checked(found: Any, run: str) -> Json:
    """
    Return a journal that has been read.

    Raises:
        WriteError: it is of another version or another run, or lacks something.
    """
    if not isinstance(found, dict) or found.get("format") != FORMAT or found.get("run") != run:
        said = found.get("format") if isinstance(found, dict) else type(found).__name__
        raise WriteError(f"the journal of run {run} is of another version ({str(said)[:40]}, this is {FORMAT})")
    lacks = [name for name, keys in _PARTS.items() if not _has(found.get(name), keys)]
    if lacks or not isinstance(found.get("state"), str):
        what = ", ".join(lacks) or "state"
        raise DamagedError(f"the journal of run {run} is damaged ({what}); nothing is changed or undone by it")
    return found


def _has(part: Any, keys: tuple[str, ...]) -> bool:
    return isinstance(part, list) and all(isinstance(one, dict) and all(key in one for key in keys) for one in part)


def save(place: Place, journal: Json) -> None:
    """
    Write a journal down for good.

    Raises:
        WriteError: it could not be; nothing may be changed then.
    """
    if place.is_image:
        return
    try:
        place.replace(
            f"{FOLDER}/{journal['run']}.json", json.dumps(journal, separators=(",", ":")).encode(), 0o600,
            *place.owner(),
        )  # fmt: skip
    except OSError as error:
        raise WriteError(f"the journal cannot be written, so nothing more is changed: {words_of(error)}") from error


def all_of(place: Place) -> list[Json]:
    """Return the journals of this node that are understood."""
    found = []
    for path in place.expand(FOLDER + "/*.json"):
        try:
            journal = load(place, path.rpartition("/")[2][: -len(".json")])
        except WriteError:
            continue
        if journal is not None:
            found.append(journal)
    return found


def merge(old: Json, changes: list[Json], commands: list[Json], acts: list[Json]) -> Json:
    """
    Add what a resumed run proposes to what it had.

    Each target keeps its first ``before``, and under ``earlier`` what this run has made of it on the way. What a change
    needs is done again with the change; what was asked for by itself (a reboot) is not done twice.
    """
    known = {(change["kind"], change["target"], change.get("key", "")): change for change in old["changes"]}
    for change in changes:
        mine = known.get((change["kind"], change["target"], change.get("key", "")))
        if mine is None:
            old["changes"].append(change)
        else:
            if mine["after"] != change["after"]:
                mine["earlier"] = [*mine.get("earlier", []), mine["after"]]
            mine["after"], mine["steps"] = change["after"], sorted({*mine["steps"], *change["steps"]})
    for name, fresh in (("commands", commands), ("acts", acts)):
        for one in fresh:
            mine = next((other for other in old[name] if _same(one, other)), None)
            if mine is None:
                old[name].append(one)
            elif not one.get("asked") or mine["state"] not in ("begun", "done", "needless"):
                mine["state"] = "pending"
    return old


def _same(one: Json, other: Json) -> bool:
    return all(one.get(key) == other.get(key) for key in ("words", "do", "target"))
