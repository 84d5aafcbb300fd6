"""Paths named on the command line → evidence: posted files, directories, bundles, standard input."""

from __future__ import annotations

import os
import select
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from hwcheck.errors import UsageError
from hwcheck.evidence import Evidence
from hwcheck.readers.archive import is_archive, read_archive
from hwcheck.readers.bundle import MANIFEST, read_directory
from hwcheck.readers.texts import Texts

MAX_FILES = 5000
WRITER_SECONDS = 30


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
    posted = Texts()
    for path in paths:
        try:
            if path == "-":
                posted.add(stdin or sys.stdin.buffer, "standard input")
            elif Path(path).is_dir():
                yield from _directory(Path(path), posted)
            else:
                yield from _file(path, posted)
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror or error}") from error
    if posted.used:
        yield from posted.nodes()


def _file(path: str, posted: Texts) -> Iterator[Evidence]:
    with _open(path) as stream:
        # a pipe, as of <(nvidia-smi -q), has no end to look for an archive's directory at
        if stream.seekable() and is_archive(stream):
            yield from read_archive(stream, path, posted)
        else:
            posted.add(stream, path)


def _open(path: str) -> BinaryIO:
    """
    Open what has an end: a file, or a pipe that somebody writes to.

    Raises:
        UsageError: a device (/dev/zero has no end), a socket, or a pipe without a writer.
    """
    mode = os.stat(path).st_mode  # noqa: PTH116 - follows links, as open does
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
        raise UsageError(f"{path}: a device or socket, not a file; use - for standard input")
    if not stat.S_ISFIFO(mode):
        return Path(path).open("rb")
    # opening a pipe waits for its writer for ever; this way the wait has an end, and is said
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if not select.select([descriptor], [], [], WRITER_SECONDS)[0]:
        os.close(descriptor)
        raise UsageError(f"{path}: a pipe that nobody has written to for {WRITER_SECONDS} s")
    os.set_blocking(descriptor, True)
    return os.fdopen(descriptor, "rb")


def _directory(place: Path, posted: Texts) -> Iterator[Evidence]:
    found = False
    for node in read_directory(place):
        found = True
        yield node
    if found:
        return
    files = sorted(path for path in place.rglob("*") if path.is_file() and not path.is_symlink())
    if not files:
        raise UsageError(f"{place}: no {MANIFEST} and no file in it")
    for path in files[:MAX_FILES]:
        with path.open("rb") as stream:
            posted.add(stream, str(path.relative_to(place)))
    if len(files) > MAX_FILES:
        posted.unnamed.broken.append((str(place), f"{len(files)} files, only the first {MAX_FILES} were read"))
