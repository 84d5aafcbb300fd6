"""
Attributes at boot, as tmpfiles.d(5) sets them: ``w PATH - - - - VALUE``, ours in ``/etc/tmpfiles.d/90-hwcheck.conf``.

Source: tmpfiles.d(5) and systemd's src/tmpfiles: the files of all folders are read sorted by name, one in /etc masks
the same name elsewhere. Of lines with the *same* path the first counts and the others are ignored with a warning; of
patterns that match one file each is written, so the last one stands. ``%`` begins a specifier in path and value, a
backslash an escape in the value; blanks in a path need quotes.
"""

from __future__ import annotations

import re
import shlex
from fnmatch import fnmatchcase

from .owned_file import OwnedFile
from .place import Place, WriteError

FILE = "/etc/tmpfiles.d/90-hwcheck.conf"
_FOLDERS = ("/etc/tmpfiles.d", "/run/tmpfiles.d", "/usr/local/lib/tmpfiles.d", "/usr/lib/tmpfiles.d")
_WRITES = re.compile(r"w[+!=~^-]*")


def owned(place: Place) -> OwnedFile:
    """Return our file."""
    return OwnedFile(place.bytes_as_text(FILE), key_of)


def key_of(line: str) -> str:
    """Return the path of a line that writes, as the step has it."""
    parsed = _parsed(line)
    return parsed[0] if parsed else ""


def line_of(path: str, value: str) -> str:
    """
    Return the line that writes a value at boot.

    Raises:
        WriteError: the path cannot be spelled there.
    """
    if any(char in path for char in "\"'\\"):
        raise WriteError(f"{path!r} cannot be written in a file of tmpfiles.d")
    spelled = path.replace("%", "%%")
    if " " in spelled:
        spelled = f'"{spelled}"'
    return f"w {spelled} - - - - " + value.replace("\\", "\\\\").replace("%", "%%")


def next_boot(place: Place, key: str, paths: list[str]) -> tuple[list[str], str]:
    """
    Return what the files write to attributes at boot.

    Args:
        place: of the node.
        key: path or pattern, as ours would be spelled.
        paths: that it matches now.

    Returns:
        The different values, empty when nothing is written; and a file of others that overrides ours, "" for none.
    """
    seen: dict[str, tuple[str, str]] = {}
    for file in place.drop_ins(*(f"{folder}/*.conf" for folder in _FOLDERS)):
        for line in (place.text(file) or "").splitlines():
            parsed = _parsed(line)
            if parsed is not None:
                seen.setdefault(parsed[0], (parsed[1], file))
    values: set[str] = set()
    over = ""
    for path in paths or [key]:
        last = ""
        for pattern, (value, file) in seen.items():
            if pattern in (path, key) or fnmatchcase(path, pattern):
                last, winner = value, file
                if pattern == key and file != FILE:
                    over = file  # ours would be a second line of the same path
        if last:
            values.add(last)
            if winner != FILE and winner.rpartition("/")[2] > FILE.rpartition("/")[2]:
                over = winner
        else:
            values.add("")
    return sorted(values - {""} if values != {""} else []), over


def _parsed(line: str) -> tuple[str, str] | None:
    """Return path and value of a line that writes; None for any other."""
    words = line.split(None, 1)
    if len(words) < 2 or not _WRITES.fullmatch(words[0]):
        return None
    found = re.match(r"(\"[^\"]*\"|'[^']*'|\S+)(?:\s+\S+){4}\s+(.*)", words[1])
    if found is None:
        return None
    value = re.sub(r"\\(.)", r"\1", found[2].strip())
    path = shlex.split(found[1])[0] if found[1][0] in "\"'" else found[1]
    return path.replace("%%", "%"), value.replace("%%", "%")
