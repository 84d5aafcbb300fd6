"""A page of ``hwcheck explain``: a title and sections of paragraphs, lists and tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.text import Text

from hwcheck.report.sheet import Sheet, visible

HEADINGS = ("What it checks", "Why it matters", "How to fix", "Applies to", "Source")
"""What the page of a check must have."""

_SECTION = re.compile(rf"^({'|'.join(HEADINGS)}):[ \n]?", re.MULTILINE)
_ITEM = re.compile(r"^(?:[-*] |\[?\d+[.\])] )")
_LABEL = re.compile(r"^(?:Source|Shape|Units|Missing): ")
_MARKUP = re.compile(r":[a-z]+:`([^`]*)`|``([^`]*)``|`([^`]*)`")
_INDENT = 2


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a header; every row has as many cells."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Literal:
    """Text whose lines stay as they are."""

    text: str


Block = str | Table | Literal


@dataclass(slots=True)
class Page:
    """
    What ``hwcheck explain`` prints.

    Attributes:
        name: what was asked for.
        kind: what it is: ``check``, ``GPU error``, ``profile`` ...
        title: one line.
        sections: heading → blocks, in order; a block that is a plain string is a paragraph.
    """

    name: str
    kind: str
    title: str
    sections: dict[str, list[Block]] = field(default_factory=dict)

    def add(self, heading: str, *blocks: Block) -> None:
        """Append blocks to a section; empty ones are left out, and with them a section that has no other."""
        kept = [block for block in blocks if not (isinstance(block, str) and not block) and not _is_empty(block)]
        if kept:
            self.sections.setdefault(heading, []).extend(kept)


def _is_empty(block: Block) -> bool:
    return isinstance(block, Table) and not block.rows


def render_page(page: Page, console: Console) -> None:
    """Write a page."""
    sheet = Sheet(console)
    line = Text(visible(page.name), style="bold cyan").append(f"  ({page.kind})", style="not bold dim default")
    sheet.text(line)
    sheet.text(Text(visible(page.title), style="bold"))
    for heading, blocks in page.sections.items():
        sheet.heading(heading)
        for number, block in enumerate(blocks):
            if number and not (_is_item(block) and _is_item(blocks[number - 1])):
                sheet.blank()
            _block(sheet, block)


def _is_item(block: Block) -> bool:
    return isinstance(block, str) and _ITEM.match(block) is not None


def _block(sheet: Sheet, block: Block) -> None:
    if isinstance(block, Table):
        sheet.columns(block.header, [[visible(cell) for cell in row] for row in block.rows], _INDENT)
    elif isinstance(block, Literal):
        for line in block.text.splitlines():
            sheet.text(visible(line), indent=_INDENT, hang=_INDENT, columns=sheet.width)
    else:
        item = _ITEM.match(block)
        if item is None:
            sheet.text(visible(capital(block)), indent=_INDENT)
        else:
            sheet.row(Text(item[0].rstrip()), visible(block[item.end() :]), _INDENT, len(item[0]))


def capital(text: str) -> str:
    """Begin with a capital, unless the first word is a name such as ``nvidia-smi``."""
    return text[0].upper() + text[1:] if text.split(maxsplit=1)[0].rstrip(",;:").isalpha() else text


def sections_of(text: str) -> dict[str, list[Block]]:
    """
    Take a docstring with the five headings apart.

    Returns:
        heading → paragraphs; what stands in front of the first heading under "".
    """
    sections: dict[str, list[Block]] = {}
    parts = _SECTION.split(text)
    for heading, body in zip(["", *parts[1::2]], parts[::2], strict=True):
        blocks = list(paragraphs(body))
        if blocks:
            sections.setdefault(heading, []).extend(blocks)
    return sections


def paragraphs(text: str) -> Iterable[Block]:
    """Join the lines of each paragraph; list items and labels stay apart, indented and tabular text stays as it is."""
    for part in re.split(r"\n[ \t]*\n", text.strip("\n")):
        lines = part.rstrip().splitlines()
        if not any(map(str.strip, lines)):
            continue
        if all(line.startswith("    ") or not line.strip() for line in lines) or any(
            re.match(r"\s*={3,}", line) for line in lines
        ):
            yield Literal(_plain(part.rstrip()))
        else:
            yield from _items(lines)


def _items(lines: Iterable[str]) -> Iterable[str]:
    current = ""
    for line in map(str.strip, lines):
        if current and (_ITEM.match(line) or _LABEL.match(line)):
            yield _plain(current)
            current = line
        else:
            current = f"{current} {line}".strip()
    yield _plain(current)


def _plain(text: str) -> str:
    """Take the marks of reStructuredText off."""
    return _MARKUP.sub(lambda match: (match[1] or match[2] or match[3] or "").lstrip("~"), text).removesuffix("::")
