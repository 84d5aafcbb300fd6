"""Paths named on the command line → evidence: posted files, directories, bundles, standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from hwcheck.errors import EvidenceError, UsageError
from hwcheck.evidence import Evidence, Leftover
from hwcheck.readers.bundle import MANIFEST, is_archive, read_archive, read_directory
from hwcheck.readers.lines import NotText, lines
from hwcheck.readers.segments import split_text

MAX_FILES = 5000


def read_paths(paths: Iterable[str], stdin: BinaryIO | None = None) -> Iterator[Evidence]:
    """
    Read everything that was named; directories and bundles with a manifest are a node each, all else is one node.

    Args:
        paths: files, directories, archives, or ``-``.
        stdin: what ``-`` reads; default standard input.

    Raises:
        UsageError: a path that is not there or cannot be read.
        EvidenceError: an evidence directory or bundle that is broken as a whole.
    """
    posted = Evidence()
    used = False
    for path in paths:
        if path == "-":
            used = True
            yield from _posted_stream(stdin or sys.stdin.buffer, "standard input", posted)
            continue
        place = Path(path)
        try:
            if place.is_dir():
                nodes = list(read_directory(place))
                yield from nodes
                if not nodes:
                    used = True
                    yield from _posted_directory(place, posted)
                continue
            with place.open("rb") as stream:
                if is_archive(stream):
                    for node in read_archive(stream, path, posted):
                        used = used or node is posted
                        if node is not posted:
                            yield node
                else:
                    used = True
                    yield from _posted_stream(stream, path, posted)
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror or error}") from error
    if used:
        yield posted


def _posted_directory(place: Path, posted: Evidence) -> Iterator[Evidence]:
    files = sorted(path for path in place.rglob("*") if path.is_file() and not path.is_symlink())
    if not files:
        raise UsageError(f"{place}: no {MANIFEST} and no file in it")
    for path in files[:MAX_FILES]:
        with path.open("rb") as stream:
            yield from _posted_stream(stream, str(path.relative_to(place)), posted)


def _posted_stream(stream: BinaryIO, name: str, posted: Evidence) -> Iterator[Evidence]:
    """Add a text to the posted node; yield the nodes that its host prefixes tell of."""
    try:
        for evidence in split_text(_until_broken(lines(stream), name, posted), name, posted):
            if evidence is not posted:
                yield evidence
    except NotText:
        posted.leftovers.append(Leftover(name, 1, 0, "a binary file, no text"))


def _until_broken(text: Iterator[str], name: str, posted: Evidence) -> Iterator[str]:
    """Pass lines on; a file that breaks off in the middle (gzip) keeps what came before, and says so."""
    try:
        yield from text
    except NotText:
        raise
    except EvidenceError as error:
        posted.broken.append((name, str(error)))
