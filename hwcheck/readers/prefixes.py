"""
What stands in front of the lines of a text: quoting and indentation of mails and forums, ranks, host names.

``srun -l`` writes ``0: ``, mpirun ``[1,0]<stdout>:``, pdsh and clush ``host: ``. A prefix counts only if every line of
the head has it, but for lines of the launcher itself. A word and a colon alone may be anything (``NVRM: Xid``, ``Rate:
400``), so a host prefix is believed only when taking it away makes more lines recognisable.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Callable
from typing import NamedTuple

_RANK = re.compile(r"^\s*(?:(?P<rank>\d{1,6}):(?: |$)|\[\d+,(?P<world>\d+)\]<std(?:out|err)>: ?)")
_HOST = re.compile(r"^(?P<host>[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}))(?:: | \| |:$)")
_LAUNCHER = re.compile(r"^(?:srun|slurmstepd|salloc|mpirun|mpiexec|prterun|clush|pdsh@[\w.-]{1,64}):")
_OF_HOST = re.compile(r"^(?:clush|pdsh@[\w.-]{1,64}): (?=[A-Za-z0-9][\w.-]{0,62}: )")
"""``pdsh@mgmt: node02: ssh exited with exit code 1``: said by the launcher, about that host."""

_QUOTE = re.compile(r"^ {0,3}>(?: |$)")
_MAX_QUOTES = 5

Recognised = Callable[[list[str]], int]


class Piece(NamedTuple):
    """
    One line, taken apart.

    Attributes:
        host: "" when the line does not name it.
        rank: number of the task that printed it; "" when unknown.
        text: the line itself.
    """

    host: str
    rank: str
    text: str


Split = Callable[[str], Piece]


def find_margin(head: list[str], recognised: Recognised) -> Callable[[str], str] | None:
    """
    Look for quoting (``> ``) or an indentation that all lines of the head share.

    Indentation may be the text's own (a piece of ``nvidia-smi -q``), so it is taken away only where that makes more
    lines recognisable.

    Args:
        head: first lines of a text.
        recognised: how many of some lines begin a known format.

    Returns:
        A function line → line without its margin, or None.
    """
    filled = [line for line in head if line.strip()]
    quotes = 0
    while filled and quotes < _MAX_QUOTES and all(_QUOTE.match(line) for line in filled):
        filled = [rest for line in filled if (rest := _QUOTE.sub("", line, count=1)).strip()]
        quotes += 1
    blanks = os.path.commonprefix([line[: len(line) - len(line.lstrip())] for line in filled])  # noqa: RUF071 - no paths
    if not (blanks.startswith("\t") or len(blanks) >= 4):
        blanks = ""
    if blanks and recognised([line[len(blanks) :] for line in filled]) <= recognised(filled):
        blanks = ""
    if not quotes and not blanks:
        return None

    def bare(line: str) -> str:
        for _ in range(quotes):
            line = _QUOTE.sub("", line, count=1)
        return line.removeprefix(blanks)

    return bare


def find_prefix(head: list[str], recognised: Recognised) -> Split | None:
    """
    Look for a rank or host that all lines of the head begin with.

    Args:
        head: first lines of a text.
        recognised: how many of some lines begin a known format.

    Returns:
        A function that takes a line apart, or None when there is no prefix.
    """
    filled = [line for line in head if line.strip() and (_OF_HOST.match(line) or not _LAUNCHER.match(line))]
    if not filled:
        return None
    if all(map(_RANK.match, filled)):
        bare = [_RANK.sub("", line) for line in filled]
        if any(line.strip() for line in bare) and recognised(bare) >= recognised(filled):
            return _split_rank
    pieces = [_split_host(line) for line in filled]
    hosts = {piece.host for piece in pieces}
    if "" in hosts or len(hosts) * 2 > len(filled):
        return None
    return _split_host if recognised([piece.text for piece in pieces]) > recognised(filled) else None


def _split_rank(line: str) -> Piece:
    match = _RANK.match(line)
    return Piece("", match["rank"] or match["world"], line[match.end() :]) if match else Piece("", "", line)


def _split_host(line: str) -> Piece:
    line = _OF_HOST.sub("", line)
    match = None if _LAUNCHER.match(line) else _HOST.match(line)
    return Piece(match["host"], "", line[match.end() :]) if match else Piece("", "", line)
