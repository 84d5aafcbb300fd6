"""
The kinds of change: how each is looked at, written, and told apart from what somebody else wrote since.

A change is a JSON object ``{"kind", "target", "before", "after", "phase", "steps"}``; ``before`` and ``after`` are the
state of the target in the kind's own form, so that three questions have an answer at any time: is it as before, as we
made it, or as a third party made it? Only the first is written by a run, only the second is undone.

=======  ====================================================================================
file     whole file: bytes (base64), mode, owner; null where there is none
value    attribute of the kernel, compared by its meaning (``form``)
=======  ====================================================================================

More kinds register themselves with :func:`kind` in the module of their mechanism.
"""

from __future__ import annotations

import base64
from typing import Any, Callable

from .forms import FORMS
from .place import CAP, Json, Place, WriteError

PERSIST, ACT, VOLATILE = "persist", "act", "volatile"
"""When a change is made: files first, then what reads them, then running values that a restart may have reset."""


class Kind:
    """How changes of one kind are made; ``look`` returns the state now, ``write`` brings about another."""

    def look(self, place: Place, change: Json) -> Any:
        """Return the state of the target now."""
        raise NotImplementedError

    def write(self, place: Place, change: Json, state: Any) -> None:
        """Bring about a state; refused ones raise OSError or WriteError."""
        raise NotImplementedError


KINDS: dict[str, Kind] = {}


def kind(name: str) -> Callable[[type[Kind]], type[Kind]]:
    """Register a kind of change."""

    def register(made: type[Kind]) -> type[Kind]:
        KINDS[name] = made()
        return made

    return register


@kind("file")
class File(Kind):
    """A whole file of the node's disk."""

    def look(self, place: Place, change: Json) -> Any:
        """Return bytes (base64), mode and owner; None where there is no file."""
        return file_state(place, change["target"])

    def write(self, place: Place, change: Json, state: Any) -> None:
        """Replace it, or take it away."""
        target = change["target"]
        if state is None:
            if place.exists(target):
                place.remove(target)
            return
        place.replace(target, base64.b64decode(state["bytes"]), state["mode"], state["uid"], state["gid"])


def file_state(place: Place, path: str) -> Any:
    """
    Return what a file change compares: bytes (base64), mode, owner; None where there is no file.

    Raises:
        WriteError: something else is there that a file would take the place of, or more than could be put back.
    """
    if place.is_link(path):
        raise WriteError(f"{path} is a symbolic link, which hwcheck never makes; somebody else owns it")
    data = place.read(path)
    if data is None:
        if place.exists(path):
            raise WriteError(f"{path} is no regular file; somebody else owns it")
        return None
    if len(data) >= CAP:
        raise WriteError(f"{path} has {CAP >> 20} MiB or more, which is no file of settings")
    return {"bytes": base64.b64encode(data).decode("ascii"), **place.stat(path)}


def file_change(place: Place, path: str, text: str | None, steps: list[int]) -> Json | None:
    """
    Propose that a file holds a text.

    Args:
        place: of the node.
        path: absolute.
        text: wanted; None for no file.
        steps: which steps want it, by their place in the request.

    Returns:
        The change, or None when the file is so already. A new file is root's, mode 0644; one that is there keeps both.
    """
    before = file_state(place, path)
    after = None
    if text is not None:
        uid, gid = place.owner()
        owner = before or {"mode": 0o644, "uid": uid, "gid": gid}
        after = {**owner, "bytes": base64.b64encode(text.encode("utf-8", "surrogateescape")).decode("ascii")}
    if before == after:
        return None
    return {"kind": "file", "target": path, "before": before, "after": after, "phase": PERSIST, "steps": steps}


@kind("value")
class Value(Kind):
    """An attribute below /proc or /sys."""

    def look(self, place: Place, change: Json) -> Any:
        """Return its meaning now; None where there is none."""
        return value_state(place, change["target"], change["form"])

    def write(self, place: Place, change: Json, state: Any) -> None:
        """Write it."""
        if state is None:
            raise WriteError(f"{change['target']} was not there before; it cannot be taken away")
        place.set_value(change["target"], str(state))


def value_state(place: Place, path: str, form: str) -> str | None:
    """
    Return what an attribute says.

    Args:
        place: of the node.
        path: of the attribute.
        form: how its text is read: see :data:`hwcheck.writers.forms.FORMS`.
    """
    text = place.text(path)
    return None if text is None else FORMS[form](text)


def value_change(place: Place, path: str, form: str, value: str, steps: list[int]) -> Json | None:
    """Propose that an attribute says a value; None when it does."""
    before, after = value_state(place, path, form), FORMS[form](value)
    if before == after:
        return None
    return {
        "kind": "value", "target": path, "form": form, "before": before, "after": after, "phase": VOLATILE,
        "steps": steps,
    }  # fmt: skip


def look(place: Place, change: Json) -> Any:
    """Return the state of a change's target now."""
    return KINDS[change["kind"]].look(place, change)


def make(place: Place, change: Json, to: str = "after") -> None:
    """
    Bring a target to the state after (or before) a change, and read it back.

    Raises:
        OSError, WriteError: refused, or it reads otherwise than what was written: the write had no effect.
    """
    wanted = change[to]
    KINDS[change["kind"]].write(place, change, wanted)
    now = look(place, change)
    if now != wanted:
        raise WriteError(f"{change['target']} was written and reads {_short(now)} instead of {_short(wanted)}")


def _short(state: Any) -> str:
    if isinstance(state, dict):
        return "other bytes"
    return "nothing" if state is None else repr(str(state)[:80])
