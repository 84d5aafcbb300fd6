"""A node's files as they will be: so that two mechanisms which write one file build on each other."""

from __future__ import annotations

import base64
from fnmatch import fnmatchcase
from typing import Any

from .place import Place


class Planned(Place):
    """
    A place where some files are other than on the disk; everything else is read from the node.

    Args:
        place: of the node.
        states: path → state of a file change: bytes (base64), mode, owner; None where there is no file.
        stopped: units that the same run stops for good, before it writes running values.
    """

    def __init__(self, place: Place, states: dict[str, Any], stopped: frozenset[str] = frozenset()) -> None:
        super().__init__(place.root or "/", live=not place.is_image)
        self.states = states
        self.stopped = stopped

    def read(self, path: str) -> bytes | None:
        """Return what the file will hold."""
        if path not in self.states:
            return super().read(path)
        state = self.states[path]
        return None if state is None else base64.b64decode(state["bytes"])

    def exists(self, path: str) -> bool:
        """Tell whether it will be there."""
        return self.states[path] is not None if path in self.states else super().exists(path)

    def expand(self, pattern: str) -> list[str]:
        """Return the paths that will be there."""
        found = {path for path in super().expand(pattern) if self.states.get(path, True) is not None}
        depth = pattern.count("/")
        also = (path for path, state in self.states.items() if state is not None and path.count("/") == depth)
        return sorted(found.union(path for path in also if fnmatchcase(path, pattern)))

    def stat(self, path: str) -> dict[str, int]:
        """Return mode and owner that it will have."""
        state = self.states.get(path)
        return super().stat(path) if state is None else {name: state[name] for name in ("mode", "uid", "gid")}
