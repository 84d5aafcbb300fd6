"""
Files in one text: attributes flattened to ``path: value`` lines, or whole files under ``==> path <==`` headings.

Source: the node program; ``grep . FILES`` and ``tail -n +1 FILES`` print the same.
Shape: pairs for the parsers of single trees; no facts of its own.
Units: none.
Missing: ``!denied``, ``!absent`` and ``!error NAME`` in place of a value say why there is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hwcheck.evidence import Output
from hwcheck.facts import Reason

_HEAD = re.compile(r"^==> (/\S{1,300}) <==$")
_WORDS = {"!denied": Reason.DENIED, "!absent": Reason.ABSENT, "!error": Reason.FAILED}


def attributes(output: Output, root: str) -> Iterator[tuple[int, str, str]]:
    """
    Go through the attributes below a folder.

    Args:
        output: text of ``path: value`` lines.
        root: folder with a slash at its end.

    Yields:
        line number, path below the root, value on one line.
    """
    for number, line in enumerate(output.lines, output.first_line):
        if line.startswith(root):
            path, colon, value = line[len(root) : len(root) + 9000].partition(":")
            if colon and path:
                yield number, path, value.strip()


def files(output: Output) -> Iterator[tuple[str, int, list[str]]]:
    """
    Go through the files under headings.

    Yields:
        path, number of the first line of the file, its lines.
    """
    path, first, lines = "", 0, []  # type: str, int, list[str]
    for number, line in enumerate(output.lines, output.first_line):
        head = _HEAD.match(line[:400])
        if head:
            if path:
                yield path, first, lines
            path, first, lines = head[1], number + 1, []
        elif path:
            lines.append(line[:8192])
    if path:
        yield path, first, lines


def gap(value: str) -> Reason | None:
    """Tell why an attribute has no value; None when it has one."""
    return _WORDS.get(value.partition(" ")[0])


def truncated(output: Output) -> bool:
    """Tell whether the node program stopped at its limit of size."""
    return any(line == "!truncated" for line in output.lines[-1:])
