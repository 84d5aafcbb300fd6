"""
Files that hwcheck owns: one for each mechanism, keyed inside by setting.

Each line of ours follows a comment with the check and the key, ``# hwcheck: ID; key KEY``: so a reader sees why it is
there, a plan finds what no check wants any more without knowing how each mechanism spells its lines, and two roles that
write the same mechanism never take each other's lines away. What stands in such a file without that comment was put
there by hand, and is kept.
"""

from __future__ import annotations

from typing import Callable, NamedTuple

HEADER = "# Written by hwcheck; each setting below names the check that asked for it. Undo: hwcheck rollback.\n"
_MARK = "# hwcheck: "
_KEY = "; key "


class OwnedFile:
    """
    The lines of a file of ours.

    Args:
        text: what it holds (:meth:`Place.bytes_as_text`); None where there is none yet.
        key_of: returns the key of a line, "" for what is none of ours; None where only the comment tells the key of the
            one line that follows it (a rule of udev).
    """

    def __init__(self, text: str | None, key_of: Callable[[str], str] | None) -> None:
        self._key_of = key_of
        self._text = text
        self._is_touched = False
        self._blocks: dict[str, list[str]] = {}
        self._others: list[str] = []
        comment, key = "", ""
        for line in map(_without_return, (text or "").split("\n")):
            if line.startswith(_MARK):
                comment, key = line, ""
            elif comment and not key and self._key(comment, line):
                key = self._key(comment, line)
                self._blocks[key] = [comment, line]
            elif key and key_of is not None and key_of(line) == key:
                self._blocks[key].append(line)
            elif line.strip() and line + "\n" != HEADER:
                self._others.append(line)
                comment, key = "", ""

    def put(self, key: str, line: str, check: str) -> None:
        """Set the line of a key, or lines that all have it."""
        self._is_touched = True
        self._blocks[key] = [f"{_MARK}{check}{_KEY}{key}", *line.split("\n")]

    def drop(self, key: str) -> None:
        """Take a key away."""
        self._is_touched |= self._blocks.pop(key, None) is not None

    def _key(self, comment: str, line: str) -> str:
        return comment.partition(_KEY)[2] if self._key_of is None else self._key_of(line)

    def all_keys(self) -> list[str]:
        """Return the keys that are ours."""
        return sorted(self._blocks)

    def lines(self, key: str) -> list[str]:
        """Return the lines of a key, without the comment; none where it is not ours."""
        return self._blocks.get(key, [])[1:]

    def check_of(self, key: str) -> str:
        """Return the check that asked for a key of ours."""
        return self._blocks[key][0][len(_MARK) :].partition(_KEY)[0]

    def render(self, first: str = "") -> str | None:
        """Return the text, keys in order; None when nothing is left. A file of which no key was touched stays."""
        if not self._is_touched:
            return self._text
        others = [line for line in self._others if line != first.strip()]
        if not self._blocks and not others:
            return None
        body = [line for key in sorted(self._blocks) for line in self._blocks[key]]
        return HEADER + first + "\n".join([*others, *body]) + "\n"


def _without_return(line: str) -> str:
    """Take the carriage return of a foreign editor away; what else splitlines() would break at is part of a line."""
    return line.removesuffix("\r")


class Owned(NamedTuple):
    """
    One file of a mechanism.

    Attributes:
        path: on the node.
        lines: what it holds.
        first: line that opens the file: ``[Service]``.
        prefix: what a key of the mechanism has before the key within the file: the unit of a drop-in.
        only: what a key within the file has before that of the mechanism, where several mechanisms share the file.
    """

    path: str
    lines: OwnedFile
    first: str = ""
    prefix: str = ""
    only: str = ""

    def keys(self) -> dict[str, str]:
        """Return key of the mechanism → key within the file."""
        found = [key for key in self.lines.all_keys() if key.startswith(self.only)]
        return {self.prefix + key[len(self.only) :]: key for key in found}
