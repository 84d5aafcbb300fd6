"""What a run changes, for reading: both texts of each file, both values of everything else."""

from __future__ import annotations

import base64
import difflib

from .place import Json


def difference(change: Json) -> str:
    """Return the difference that a change makes; empty where only mode or owner differ."""
    name = str(change["target"]) + (f" {change['key']}" if change.get("key") else "")
    before, after = _shown(change["before"]), _shown(change["after"])
    return "".join(difflib.unified_diff(before, after, f"before: {name}", f"after: {name}"))


def _shown(state: object) -> list[str]:
    if state is None:
        return []
    if isinstance(state, dict) and "bytes" in state:
        return base64.b64decode(state["bytes"]).decode("utf-8", "replace").splitlines(keepends=True)
    return [f"{state}\n"]
