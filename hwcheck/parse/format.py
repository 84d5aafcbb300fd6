"""
What a format is: how its text is recognised and where it ends, what it gives, and who reads it.

Recognition is by content, line by line (:mod:`hwcheck.readers.segments`): a line that matches ``opens`` begins an
output of this format; the lines after it belong to it until one matches ``ends``, does not match ``continues``, opens
another format, or is a shell prompt. Where the text alone does not tell (``550.120``), the command at the shell prompt
in front of it does (``$ modinfo -F version nvidia``).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from hwcheck.evidence import Output
from hwcheck.parse.sink import FactSink

Parser = Callable[[Output, FactSink], None]


class Digest(Protocol):
    """What a log format keeps of a log of any size, in bounded memory."""

    def feed(self, text: str, number: int) -> None:
        """Take one line (escapes removed) and its 1-based number in the file."""


@dataclass(frozen=True, slots=True)
class Format:
    """
    The text form of one tool: how it is recognised, what it can give, and its parser.

    Attributes:
        kind: id, also of the source in a manifest: ``nvidia-smi.q``, ``ibstat``.
        title: what a person calls it: ``nvidia-smi -q``.
        gives: fact names this format can give; ``gpu.ecc.*`` stands for all under it. When the source was asked and
            failed, or its text is cut off, exactly these names are unknown.
        parse: reads one output.
        opens: matched (``re.match``) against each line; None when only a command or a manifest tells.
        continues: None: every line up to the next format or prompt; else only lines that match.
        ends: a line that matches is the last one.
        command: matched (``re.search``) against the command at a shell prompt; what follows is then of this format,
            even when it is empty.
        lines: True for logs: lines of this format may stand anywhere between others and form one output together.
        digest: for logs: makes an accumulator with ``feed(text, line_number)``; the reader feeds it instead of keeping
            the lines, and the parser finds it in ``output.digest`` (None when the lines were kept).
        rank: formats are tried in order of rank; lower first. Give a general ``opens`` a high rank.
    """

    kind: str
    title: str
    gives: tuple[str, ...]
    parse: Parser
    opens: str | None = None
    continues: re.Pattern[str] | None = None
    ends: re.Pattern[str] | None = None
    command: re.Pattern[str] | None = None
    lines: bool = False
    digest: Callable[[], Digest] | None = None
    rank: int = 50


FORMATS: dict[str, Format] = {}


def fmt(
    kind: str,
    title: str,
    *,
    gives: tuple[str, ...],
    opens: str | None = None,
    continues: str | None = None,
    ends: str | None = None,
    command: str | None = None,
    lines: bool = False,
    digest: Callable[[], Digest] | None = None,
    rank: int = 50,
) -> Callable[[Parser], Parser]:
    """
    Declare the format that the decorated function parses. See :class:`Format`.

    Raises:
        ValueError: the kind is declared twice, or nothing could ever recognise it and it is no manifest source.
    """

    def register(parser: Parser) -> Parser:
        if kind in FORMATS:
            raise ValueError(f"format declared twice: {kind}")
        FORMATS[kind] = Format(
            kind,
            title,
            gives,
            parser,
            opens,
            re.compile(continues) if continues is not None else None,
            re.compile(ends) if ends is not None else None,
            re.compile(command) if command is not None else None,
            lines,
            digest,
            rank,
        )
        return parser

    return register
