"""
Files that hwcheck owns: one for each mechanism, keyed inside by setting.

Each line of ours follows a comment that names the check, so a reader sees why it is there, and two roles that write
the same mechanism never take each other's lines away. What stands in such a file without that comment was put there by
hand, and is kept.
"""

from __future__ import annotations

from typing import Callable

HEADER = "# Written by hwcheck; each setting below names the check that asked for it. Undo: hwcheck rollback.\n"
_MARK = "# hwcheck: "


class OwnedFile:
    """
    The lines of a file of ours.

    Args:
        text: what it holds; None where there is none yet.
        key_of: returns the key of a line, "" for what is none of ours.
    """

    def __init__(self, text: str | None, key_of: Callable[[str], str]) -> None:
        self._key_of = key_of
        self._blocks: dict[str, list[str]] = {}
        self._others: list[str] = []
        comment, key = "", ""
        for line in (text or "").splitlines():
            if line.startswith(_MARK):
                comment, key = line, ""
            elif comment and not key and key_of(line):
                key = key_of(line)
                self._blocks[key] = [comment, line]
            elif key and key_of(line) == key:
                self._blocks[key].append(line)
            elif line.strip() and line + "\n" != HEADER:
                self._others.append(line)
                comment, key = "", ""

    def put(self, key: str, line: str, check: str) -> None:
        """Set the line of a key, or lines that all have it."""
        self._blocks[key] = [_MARK + check, *line.splitlines()]

    def drop(self, key: str) -> None:
        """Take a key away."""
        self._blocks.pop(key, None)

    def keys(self) -> list[str]:
        """Return the keys that are ours."""
        return sorted(self._blocks)

    def render(self, first: str = "") -> str | None:
        """Return the text, keys in order; None when nothing is left."""
        if not self._blocks and not self._others:
            return None
        body = [line for key in sorted(self._blocks) for line in self._blocks[key]]
        others = [line for line in self._others if line != first.strip()]
        return HEADER + first + "\n".join([*others, *body]) + "\n"
