"""
Evidence: raw outputs of one node at one time, kept as they came.

A live node, a support bundle, a posted ``nvidia-smi -q`` and a fixture are the same thing to everything behind the
parsers. Readers (:mod:`hwcheck.readers`) make evidence; parsers (:mod:`hwcheck.parse`) turn each output into facts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hwcheck.facts.values import Reason

EXCERPT_LENGTH = 200


@dataclass(slots=True)
class Output:
    """
    What one source printed, or how it ended without printing.

    Attributes:
        kind: format of the text, a key of :data:`hwcheck.parse.FORMATS`; also the id of the source in a manifest.
        lines: the text, one string a line, escapes and carriage returns already removed.
        first_line: 1-based line in ``file`` where the text begins.
        file: name as the user gave it, or as in the evidence directory.
        command: command line that made it, where a shell prompt or a manifest tells; else "".
        reason: None when it was read whole; else why there is no text or only part of it.
        detail: the tool's or the reader's words for ``reason``.
        time: when it was taken, as printed; "" when unknown.
        seconds: how long the source took to answer; None when unknown.
        digest: the accumulator of a log format that was fed line by line, instead of ``lines`` (a log may have 5 GB).
        count: number of lines that were given to the digest.
    """

    kind: str
    lines: list[str] = field(default_factory=list)
    first_line: int = 1
    file: str = ""
    command: str = ""
    reason: Reason | None = None
    detail: str = ""
    time: str = ""
    seconds: float | None = None
    digest: Any = None
    count: int = 0

    def excerpt(self, line: int) -> str:
        """Return the text of a line of the file, shortened; "" outside of this output."""
        index = line - self.first_line
        return self.lines[index].strip()[:EXCERPT_LENGTH] if 0 <= index < len(self.lines) else ""

    @property
    def text(self) -> str:
        """The lines as one text."""
        return "\n".join(self.lines)


@dataclass(slots=True)
class Leftover:
    """Lines that no format claims: said in the report (family ``evidence``), never guessed at."""

    file: str
    count: int = 0
    first_line: int = 0
    excerpt: str = ""


@dataclass(slots=True)
class Evidence:
    """
    Everything known of one node at one time.

    Attributes:
        node: host name; "" when the evidence does not tell (one pasted file).
        outputs: in the order they were read.
        leftovers: lines not understood, one entry a file.
        broken: files that could not be read to their end: (name, why).
        simulated: the evidence says that it comes from a lab node.
        collected: True when a manifest lists what was asked (a collected node), False for posted text.
        unreachable: why the node could not be reached at all; "" when it answered.
        advice: what to do about ``unreachable``.
    """

    node: str = ""
    outputs: list[Output] = field(default_factory=list)
    leftovers: list[Leftover] = field(default_factory=list)
    broken: list[tuple[str, str]] = field(default_factory=list)
    simulated: bool = False
    collected: bool = False
    unreachable: str = ""
    advice: str = ""
