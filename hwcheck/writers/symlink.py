"""
Symbolic links that are a setting: what a unit is enabled by, below ``/etc/systemd/system/TARGET.wants``.

Source: systemd.unit(5), ``WantedBy``: ``systemctl enable`` makes exactly these links, and ``is-enabled`` reads them.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from typing import Any

from .change import PERSIST, Kind, kind
from .place import Json, Place, WriteError


@kind("symlink")
class Symlink(Kind):
    """A symbolic link; its state is where it leads, None where there is none."""

    def look(self, place: Place, change: Json) -> Any:
        """Return where it leads."""
        return link_state(place, change["target"])

    def write(self, place: Place, change: Json, state: Any) -> None:
        """Make it, or take it away with the folder it was the last in."""
        path = _path(place, change["target"])
        folder = os.path.dirname(path)
        if state is None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            with contextlib.suppress(OSError):
                os.rmdir(folder)
            return
        os.makedirs(folder, mode=0o755, exist_ok=True)
        temporary = f"{folder}/.hwcheck-{secrets.token_hex(6)}"
        os.symlink(state, temporary)
        os.rename(temporary, path)


def link_state(place: Place, target: str) -> str | None:
    """
    Return where a link leads; None where there is none.

    Raises:
        WriteError: there is something else.
    """
    path = _path(place, target)
    try:
        return os.readlink(path)
    except FileNotFoundError:
        return None
    except OSError:
        raise WriteError(f"{target} is no symbolic link") from None


def link_change(place: Place, target: str, leads_to: str | None, steps: list[int]) -> Json | None:
    """Propose that a link leads somewhere, or is gone; None when it is so."""
    before = link_state(place, target)
    if before == leads_to:
        return None
    return {
        "kind": "symlink", "target": target, "before": before, "after": leads_to, "phase": PERSIST, "steps": steps,
    }  # fmt: skip


def _path(place: Place, target: str) -> str:
    """Return where the link itself is here, not what it leads to."""
    folder, _, name = target.rpartition("/")
    return f"{place.real(folder)}/{name}"
