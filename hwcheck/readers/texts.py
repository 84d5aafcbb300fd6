"""Texts whose nodes only their lines tell: posted files, files of a folder, members of an archive."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import BinaryIO

from hwcheck.errors import EvidenceError
from hwcheck.evidence import Evidence, Leftover
from hwcheck.lines import NotTextError, lines
from hwcheck.readers.segments import split_text


class Texts:
    """
    Collects texts of one node, or of the nodes that the lines name (``node01: ...``).

    Args:
        unnamed: takes what names no host.
    """

    def __init__(self, unnamed: Evidence | None = None) -> None:
        self.unnamed = unnamed or Evidence()
        self.used = False
        self._nodes: dict[str, Evidence] = {}

    def add(self, stream: BinaryIO, name: str) -> None:
        """Read a text; one that breaks off in the middle (gzip) keeps what came before, and says so."""
        self.used = True
        text = self._until_broken(lines(stream), name)
        try:
            first = next(text, None)
            if first is None:
                if all(file != name for file, _ in self.unnamed.broken):
                    self.unnamed.leftovers.append(Leftover(name, 1, 0, "an empty file"))
                return
            found = split_text(itertools.chain([first], text), name, self.unnamed)
        except NotTextError:
            self.unnamed.leftovers.append(Leftover(name, 1, 0, "a binary file, no text"))
            return
        for evidence in found:
            if evidence is not self.unnamed:
                _join(self._nodes.setdefault(evidence.node, Evidence(evidence.node)), evidence)

    def nodes(self) -> Iterator[Evidence]:
        """
        Go through the nodes.

        A single host is the node that everything else is of, too. With several, what names none stands alone, and a
        file that broke off may lack something of each.
        """
        named = list(self._nodes.values())
        if len(named) == 1:
            self.unnamed.node = self.unnamed.node or named[0].node
            _join(self.unnamed, named[0])
        elif named:
            for node in named:
                node.broken = self.unnamed.broken + node.broken
            if not self.unnamed.outputs and not self.unnamed.collected:
                named[0].leftovers = self.unnamed.leftovers + named[0].leftovers
                yield from named
                return
        yield self.unnamed
        yield from named if len(named) > 1 else ()

    def _until_broken(self, text: Iterator[str], name: str) -> Iterator[str]:
        try:
            yield from text
        except NotTextError:
            raise
        except EvidenceError as error:
            self.unnamed.broken.append((name, str(error)))


def _join(evidence: Evidence, other: Evidence) -> None:
    evidence.outputs += other.outputs
    evidence.leftovers += other.leftovers
    evidence.broken += other.broken
