"""
What chrony reads: its configuration in the order in which chronyd takes it, and where a file of ours would be read.

Source: chrony.conf(5) (``include``, ``confdir``, ``sourcedir``): a file that is included is read where the directive
stands, files of a folder sorted by name; a later directive overrides an earlier one, but for those that add up.
"""

from __future__ import annotations

from collections.abc import Iterator

from .place import Place

MAINS = ("/etc/chrony/chrony.conf", "/etc/chrony.conf")
SOURCES = ("server", "pool", "peer")
_NAME = "90-hwcheck"
_DEEPEST = 5

Line = tuple[str, list[str]]
"""File, and the words of one of its lines."""


def main_file(place: Place) -> str:
    """Return the configuration that chronyd starts with; "" where chrony is not installed."""
    return next((path for path in MAINS if place.exists(path)), "")


def lines(place: Place) -> list[Line]:
    """Return all directives in the order in which they are taken; sources of a folder come last."""
    main = main_file(place)
    found = list(_read(place, main, 0)) if main else []
    for folder in _folders(found, "sourcedir"):
        for path in sorted(place.expand(f"{folder}/*.sources"), key=lambda one: one.rpartition("/")[2]):
            found += [(path, words) for words in _words(place, path)]
    return found


def _read(place: Place, path: str, depth: int) -> Iterator[Line]:
    for words in _words(place, path):
        yield path, words
        inside: list[str] = []
        if words[0].lower() == "include" and len(words) == 2:
            inside = place.expand(words[1])
        elif words[0].lower() == "confdir":
            found = {one.rpartition("/")[2]: one for folder in words[:0:-1] for one in place.expand(f"{folder}/*.conf")}
            inside = [found[name] for name in sorted(found)]
        for file in inside if depth < _DEEPEST else []:
            yield from _read(place, file, depth + 1)


def _words(place: Place, path: str) -> Iterator[list[str]]:
    for line in (place.text(path) or "").splitlines():
        words = line.split()
        if words and words[0][0] not in "#%!;":
            yield words


def _folders(found: list[Line], directive: str) -> list[str]:
    return [word for _, words in found if words[0].lower() == directive for word in words[1:]]


def settings_file(place: Place) -> str:
    """Return where a file of ours with directives is read; "" for nowhere."""
    found = lines(place)
    folders = _folders(found, "confdir")
    included = (word for _, words in found if words[0].lower() == "include" for word in words[1:])
    folders += [word[: -len("/*.conf")] for word in included if word.endswith("/*.conf")]
    return f"{folders[0]}/{_NAME}.conf" if folders else ""


def sources_file(place: Place) -> str:
    """Return where a file of ours with servers is read: read again without a restart if it can be; "" for nowhere."""
    kept = [folder for folder in _folders(lines(place), "sourcedir") if not folder.startswith("/run/")]
    return f"{kept[0]}/{_NAME}.sources" if kept else settings_file(place)
