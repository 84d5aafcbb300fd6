"""What a run changed, taken back: files first, what reads them, then running values; the last change first."""

from __future__ import annotations

from . import acts
from .change import PERSIST, look, make
from .place import Json, Place, WriteError, words_of


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
        if now != change["after"]:
            return "changed since by somebody else"
        make(place, change, "before")
    except (OSError, WriteError) as error:
        return words_of(error)
    return ""
