"""Markdown: tables, and text that must not be taken for marks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Make the lines of a table."""
    cells = [[escaped(cell).replace("|", "\\|") for cell in row] for row in rows]
    return [f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *cells)] if cells else []


def escaped(text: str) -> str:
    """Keep what Markdown would take for its own: tags, emphasis; what is in backticks stays."""
    return re.sub(r"[<>]", lambda found: {"<": "&lt;", ">": "&gt;"}[found[0]], " ".join(str(text).split())).replace(
        "*", "\\*"
    )
