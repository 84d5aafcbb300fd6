"""What a run changed, taken back: files first, what reads them, then running values; the last change first."""

from __future__ import annotations

from typing import Any

from . import acts
from . import journal as journals
from .change import PERSIST, look, make
from .place import Json, Place, WriteError, words_of
from .planned import Planned
from .proposing import proposal_for
from .step import Step


def undo_all(place: Place, journal: Json) -> tuple[list[Json], int]:
    """
    Take back all changes of a journal.

    Returns:
        What was left, as target and why; and how many are as before now.
    """
    left: list[Json] = []
    back = 0
    changes = journal["changes"]
    for change in reversed([one for one in changes if one["phase"] == PERSIST]):
        back += _tell_undo(place, change, left)
    if back:
        for command in journal["commands"]:
            try:
                place.run(command["words"], command["seconds"])
            except WriteError as error:
                left.append({"target": " ".join(command["words"]), "why": str(error)})
        for one in journal["acts"]:
            if one["do"] == "restart" and one["state"] in ("done", "begun"):
                try:
                    acts.restart(place, one["target"])
                except WriteError as error:
                    left.append({"target": one["target"], "why": str(error)})
    for change in reversed([one for one in changes if one["phase"] != PERSIST]):
        back += _tell_undo(place, change, left)
    return left, back


def _tell_undo(place: Place, change: Json, left: list[Json]) -> int:
    why = undo_one(place, change)
    if why:
        left.append({"target": change["target"], "why": why})
        return 0
    return 1


def undo_one(place: Place, change: Json) -> str:
    """Take back one change; returns why it was left, "" when it is as before."""
    try:
        now = look(place, change)
        if now == change["before"]:
            return ""
        if now != change["after"] and now not in change.get("earlier", []):
            return f"changed since by {_by_whom(place, change, now)}"
        make(place, change, "before")
    except (OSError, WriteError) as error:
        return words_of(error)
    return ""


def _by_whom(place: Place, change: Json, now: Any) -> str:
    """Say who made a target what it is: a later run of ours, which can be taken back first, or somebody else."""
    names = ("kind", "target", "key")
    for journal in journals.all_of(place):
        for other in journal["changes"] if journal["state"] != "undone" else []:
            if other["after"] == now and all(other.get(name) == change.get(name) for name in names):
                return f"run {journal['run']}; take that one back first"
    return "somebody else"


def take_back(place: Place, journal: Json, steps: list[Step], lost: set[int]) -> list[str]:
    """
    Take back what steps that failed have changed, and nothing else: of a file that good steps share, their lines stay.

    Args:
        place: of the node.
        journal: of the run; a file that is written anew is in it before it is written.
        steps: of the run.
        lost: numbers of those that failed.

    Returns:
        What could not be taken back, one sentence each.
    """
    left = []
    rewritten: set[int] = set()
    for change in reversed([one for one in journal["changes"] if lost.intersection(one["steps"])]):
        good = [step for step in steps if step.number in change["steps"] and step.number not in lost]
        if good and change["kind"] != "file":
            continue
        why = _rewrite(place, journal, change, good) if good else undo_one(place, change)
        if why:
            left.append(f"{change['target']} could not be taken back: {why}")
        elif change["kind"] == "file":
            rewritten.update(change["steps"])
    for command in journal["commands"]:
        if rewritten.intersection(command["steps"]):
            try:
                place.run(command["words"], command["seconds"])
            except WriteError as error:
                left.append(str(error))
    return left


def _rewrite(place: Place, journal: Json, change: Json, good: list[Step]) -> str:
    """Write a file as it would be had only the good steps been asked for; returns why not."""
    target = change["target"]
    files = {one["target"]: one["before"] for one in journal["changes"] if one["kind"] == "file"}
    view = Planned(place, files)
    try:
        for name in sorted({step.mechanism for step in good}):
            proposal = proposal_for(view, name, [step for step in good if step.mechanism == name])
            view.states.update({one["target"]: one["after"] for one in proposal.changes if one["kind"] == "file"})
        if view.states[target] == change["after"]:
            return ""
        change["earlier"] = [*change.get("earlier", []), change["after"]]
        change["after"] = view.states[target]
        journals.save(place, journal)
        now = look(place, change)
        if now in change["earlier"]:
            make(place, change)
    except (OSError, WriteError) as error:
        return words_of(error)
    return ""
