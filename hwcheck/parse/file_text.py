"""
Files in one text: attributes flattened to ``PATH: value`` lines, or whole files under ``==> PATH <==`` headings.

What could not be read stands in place of the value: ``!denied``, ``!absent``, ``!error ENODEV``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from hwcheck.evidence import Output
from hwcheck.facts import Missing, Reason
from hwcheck.parse.sink import FactSink

_HEADING = re.compile(r"^==> (.{1,400}) <==$")
_LINE_LENGTH = 8192
_SECTIONS = 2000
_GAPS = {"!denied": Reason.DENIED, "!absent": Reason.ABSENT}


@dataclass(frozen=True, slots=True)
class Section:
    """One file: its path, the line of its heading, and its lines with their numbers in the output."""

    path: str
    line: int
    lines: list[tuple[int, str]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Last component of the path."""
        return self.path.rpartition("/")[2]

    @property
    def gap(self) -> Missing | None:
        """Why the file could not be read; None when it was."""
        return gap_of(self.lines[0][1]) if self.lines else None


def gap_of(text: str) -> Missing | None:
    """Return the gap that stands in place of a value, or None."""
    if not text.startswith("!"):
        return None
    word = text.split(" ", 1)[0]
    return Missing(_GAPS.get(word, Reason.FAILED), text[1:80]) if word in (*_GAPS, "!error") else None


def sections(output: Output) -> list[Section]:
    """Split an output at its headings; lines before the first one belong to none, nor do files beyond 2000."""
    found: list[Section] = []
    for number, text in enumerate(output.lines, output.first_line):
        heading = _HEADING.match(text[:420])
        if heading and len(found) >= _SECTIONS:
            break
        if heading:
            found.append(Section(heading[1], number))
        elif found:
            found[-1].lines.append((number, text[:_LINE_LENGTH]))
    return found


def rows(output: Output) -> Iterator[tuple[str, str, int]]:
    """Go through ``PATH: value`` lines: path, value, line."""
    for number, text in enumerate(output.lines, output.first_line):
        path, colon, value = text[:_LINE_LENGTH].partition(": ")
        if colon and path.startswith("/"):
            yield path, value.strip(), number


def links(output: Output) -> Iterator[tuple[str, str, int]]:
    """Go through ``PATH -> TARGET`` lines: path, target, line."""
    for number, text in enumerate(output.lines, output.first_line):
        path, arrow, target = text[:1000].partition(" -> ")
        if arrow and path.startswith("/"):
            yield path, target.strip(), number


def by_folder(found: list[Section], folders: tuple[str, ...]) -> list[Section]:
    """
    Order drop-ins as systemd does: sorted by file name, a name in an earlier folder masks the same in a later one.

    Args:
        found: sections; those outside the folders are left out.
        folders: folders in order of precedence.
    """
    chosen: dict[str, Section] = {}
    for folder in folders:
        for section in found:
            if section.path.rpartition("/")[0] == folder:
                chosen.setdefault(section.name, section)
    return [chosen[name] for name in sorted(chosen)]


@contextmanager
def inside(facts: FactSink, section: Section) -> Iterator[None]:
    """Make the origin of what is put name this file: the excerpt is ``PATH: line``."""
    output = facts.output
    shown = [f"{section.path}: {text.strip()}" for _, text in section.lines]
    facts.output = replace(output, file=section.path, lines=shown, first_line=section.line + 1)
    try:
        yield
    finally:
        facts.output = output
