"""
Rank and host prefixes: ``srun -l`` writes ``0: ``, pdsh and clush write ``host: ``, mpirun ``[1,0]<stdout>:``.

A prefix counts only if every line of the head has it. A word and a colon alone may be anything (``NVRM: Xid``, ``Rate:
400``), so a host prefix is believed only when taking it away makes more lines recognisable.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_RANK = re.compile(r"^\s*(?:\d{1,6}: ?|\[\d+,\d+\]<std(?:out|err)>: ?)")
_HOST = re.compile(r"^(?P<host>[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}))(?:: | \| |:$)")
_KEEP_BLANKS = re.compile(r"^\s*(?:\d{1,6}:|\[\d+,\d+\]<std(?:out|err)>:) ?")

Split = Callable[[str], tuple[str, str]]


def find_prefix(head: list[str], recognised: Callable[[list[str]], int]) -> Split | None:
    """
    Look for a prefix that all lines of the head share in form.

    Args:
        head: first lines of a text.
        recognised: how many of some lines begin a known format.

    Returns:
        A function line → (host or "", rest), or None when there is no prefix.
    """
    filled = [line for line in head if line.strip()]
    if not filled:
        return None
    if all(_RANK.match(line) for line in filled) and not all(line.strip().isdigit() for line in filled):
        bare = [_KEEP_BLANKS.sub("", line) for line in filled]
        if recognised(bare) >= recognised(filled):
            return lambda line: ("", _KEEP_BLANKS.sub("", line))
    matches = [_HOST.match(line) for line in filled]
    if all(matches):
        hosts = {match["host"] for match in matches if match}
        if len(hosts) * 2 <= len(filled):
            bare = [line[match.end() :] for line, match in zip(filled, matches, strict=True) if match]
            if recognised(bare) > recognised(filled):
                return _split_host
    return None


def _split_host(line: str) -> tuple[str, str]:
    match = _HOST.match(line)
    return (match["host"], line[match.end() :]) if match else ("", line)
