"""What a dry run would write, for people: differences of files whole, and one line for all places that change alike."""

from __future__ import annotations

import re
from collections.abc import Iterable

_VALUE = re.compile(r"--- before: (.*)\n\+\+\+ after: \1\n@@ -1 \+1 @@\n-(.*)\n\+(.*)\n")
_NUMBER = re.compile(r"[0-9a-f]*[0-9][0-9a-f]*|\b[a-f]{2}\b")


def folded(texts: Iterable[str]) -> str:
    """
    Shorten unified differences: 256 CPUs or 16 bridges of which each gets the same value are told once.

    Args:
        texts: each of one setting or file, or of several; as the node program gives them.

    Returns:
        lines to print; places that stand alone are as they were.
    """
    text = "".join(texts)
    alike: dict[tuple[str, str, str], list[str]] = {}
    for name, before, after in _VALUE.findall(text):
        alike.setdefault((_NUMBER.sub("N", name), before, after), []).append(name)

    def once(match: re.Match[str]) -> str:
        names = alike[_NUMBER.sub("N", match[1]), match[2], match[3]]
        if len(names) == 1:
            return match[0]
        return f"{names[0]} and {len(names) - 1} more: {match[2]} -> {match[3]}\n" if match[1] == names[0] else ""

    return _VALUE.sub(once, text)
