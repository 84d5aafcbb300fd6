"""
Lines on a terminal: indentation, labels with a hanging text, columns. Plain text stays readable without colour.

Nothing that a node wrote is interpreted: texts pass :func:`visible`, and rich gets them as :class:`rich.text.Text`, in
which neither markup nor emoji codes mean anything.
"""

from __future__ import annotations

import io
import itertools
import sys
from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

PROSE = 100
"""Columns of running text at most: longer lines are hard to follow on a wide terminal."""
NARROW = 24
"""Columns that a text keeps, however deep it stands on a terminal however small."""
LONG = 2000
"""Characters of one text at most: a node may send a megabyte as a name."""


def visible(text: str) -> str:
    """
    Spell out what a terminal would obey or hide: escapes, control and bidirectional characters, lone surrogates.

    Line breaks and tabs become a blank. A text of more than :data:`LONG` characters is cut.
    """
    if len(text) > LONG:
        text = text[:LONG] + "..."
    return "".join(
        char if char.isprintable() else " " if char in "\n\t" else ascii(char)[1:-1]  # \x1b, \u202e
        for char in text
    )


class Terminal(Console):
    """A console that takes texts literally and leaves a reader that went away (``| head``) to the caller."""

    def on_broken_pipe(self) -> None:
        """Raise again: rich would end the program with 1, which means that a node failed."""
        raise BrokenPipeError


def terminal() -> Terminal:
    """Open standard output; what its encoding cannot say is spelled out."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    return Terminal(markup=False, highlight=False, emoji=False)


class Sheet:
    """
    Writes lines to a console.

    Args:
        console: where to.
    """

    def __init__(self, console: Console) -> None:
        self.console = console

    @property
    def width(self) -> int:
        """Columns of the terminal."""
        return self.console.width

    def blank(self) -> None:
        """Leave a line empty."""
        self.console.print()

    def heading(self, text: str) -> None:
        """Begin a section, after an empty line."""
        self.blank()
        self.text(Text(text, style="bold"))
        self.blank()

    def text(self, text: Text | str, indent: int = 0, hang: int = 0, columns: int = PROSE) -> None:
        """
        Write a text, wrapped.

        Args:
            text: a plain string or one with styles.
            indent: columns left of the first line.
            hang: columns more for the lines after it.
            columns: columns the text may take at most.
        """
        self._write(Text(" " * indent), text, indent + hang, columns)

    def row(self, label: Text | str, text: Text | str, indent: int, width: int, columns: int = PROSE) -> None:
        """
        Write a label and, beside it, a text that hangs under its own beginning.

        Args:
            label: of fewer columns than ``width``; a plain one is dimmed.
            text: what is beside it.
            indent: columns left of the label.
            width: columns of the label.
            columns: columns the text may take at most.
        """
        head = Text(" " * indent)
        head.append_text(Text(label, style="dim") if isinstance(label, str) else label)
        head.append(" " * max(1, width - cell_len(head.plain) + indent))
        self._write(head, text, cell_len(head.plain), columns)

    def columns(self, header: Sequence[str], rows: Iterable[Sequence[str]], indent: int) -> None:
        """Write rows under a dimmed header; a column is as wide as needed, the last takes the rest."""
        lines = [list(header), *(list(row) for row in rows)]
        if not any(header):
            del lines[0]
        widths = self._widths(lines, self.width - indent)
        for number, line in enumerate(lines):
            style = "" if number or not any(header) else "dim"
            cells = [self._wrap(Text(cell, style=style), width) for cell, width in zip(line, widths, strict=True)]
            for parts in itertools.zip_longest(*cells):
                whole = Text(" " * indent)
                for part, width in zip(parts, widths, strict=True):
                    piece = part or Text()
                    whole.append_text(piece).append(" " * (width + 2 - cell_len(piece.plain)))
                self._put(whole)

    def _widths(self, lines: list[list[str]], room: int) -> list[int]:
        """Divide the room among columns; where it is short, the widest give: first between words, then inside them."""
        needs = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
        words = [
            max(cell_len(word) for cell in column for word in (cell.split() or [""]))
            for column in zip(*lines, strict=True)
        ]
        widths = [*needs[:-1], min(needs[-1], max(NARROW, words[-1]))]
        room -= 2 * (len(widths) - 1)
        for least in (words, [NARROW // 2] * len(widths)):
            while sum(widths) > room:
                slack = [column for column, width in enumerate(widths) if width > least[column]]
                if not slack:
                    break
                widths[max(slack, key=widths.__getitem__)] -= 1
        return [*widths[:-1], max(widths[-1], min(PROSE, room - sum(widths[:-1])))]

    def place(self, label: str, file: str, line: int, indent: int, width: int) -> None:
        """Write ``file:line`` on one line, without its first folders when it is too long."""
        tail = f":{line}" if line else ""
        room = max(NARROW, self.width - indent - width) - len(tail)
        shown = visible(file)
        while cell_len(shown) > room and "/" in shown.removeprefix(".../"):
            shown = f".../{shown.removeprefix('.../').partition('/')[2]}"
        self.row(label, shown + tail, indent, width)

    def quote(self, text: str, indent: int, lines: int = 2) -> None:
        """Write a line of evidence behind a bar: blanks squeezed, cut when it needs more than ``lines`` lines."""
        room = max(NARROW, self.width - indent - 2)
        squeezed = Text(" ".join(visible(text).split()))
        for line in _shortened(self._wrap(squeezed, room), lines, room):
            self._put(Text(" " * indent).append("| ", style="dim").append_text(line))

    def _write(self, head: Text, text: Text | str, hang: int, columns: int) -> None:
        body = Text(text) if isinstance(text, str) else text
        room = max(NARROW, min(columns, self.width - hang))
        for number, line in enumerate(self._wrap(body, room)):
            start = head if number == 0 else Text(" " * hang)
            self._put(Text().append_text(start).append_text(line))

    def _wrap(self, text: Text, room: int) -> list[Text]:
        return list(text.wrap(self.console, room, overflow="fold"))

    def _put(self, line: Text) -> None:
        line.rstrip()
        self.console.print(line, soft_wrap=True)


def _shortened(lines: list[Text], most: int, room: int) -> list[Text]:
    if len(lines) <= most:
        return lines
    last = lines[most - 1]
    last.truncate(room - 4)
    last.rstrip()
    return [*lines[: most - 1], last.append(" ...")]
