"""
How the text of an attribute is compared: by what it means, not by its letters.

=======  ===================================================================================================
text     blanks at the ends do not count
numbers  ``0x10`` is ``16``; any blanks between several
choice   the word in brackets: ``always [madvise] never`` → ``madvise``; written and compared without them
cpus     a list of CPUs: ``0-3`` is ``0,1,2,3``
=======  ===================================================================================================
"""

from __future__ import annotations

import re


def text(value: str) -> str:
    """Return without blanks at the ends."""
    return value.strip()


def numbers(value: str) -> str:
    """Return whole numbers in decimal, one blank between; anything else as it is."""
    words = value.split()
    try:
        return " ".join(str(int(word, 0)) for word in words)
    except ValueError:
        return " ".join(words)


def choice(value: str) -> str:
    """Return the chosen word."""
    found = re.search(r"\[([^\]\s]+)\]", value)
    return found[1] if found else value.strip()


def cpus(value: str) -> str:
    """Return a CPU list in its shortest form."""
    wanted: set[int] = set()
    for part in value.replace("\n", ",").split(","):
        if not part.strip():
            continue
        found = re.fullmatch(r"\s*(\d{1,6})(?:-(\d{1,6}))?\s*", part)
        if found is None:
            return value.strip()
        wanted.update(range(int(found[1]), int(found[2] or found[1]) + 1))
    runs: list[list[int]] = []
    for cpu in sorted(wanted):
        if runs and runs[-1][1] == cpu - 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def members(value: str) -> set[int]:
    """Return the numbers of a CPU list; what is none is left out."""
    found: set[int] = set()
    for part in cpus(value).split(","):
        first, _, last = part.partition("-")
        if first.isdigit() and (not last or last.isdigit()):
            found.update(range(int(first), int(last or first) + 1))
    return found


FORMS = {"text": text, "numbers": numbers, "choice": choice, "cpus": cpus}
