"""
Write evidence: a folder for each node with ``manifest.json`` and ``raw/``, or all of them in one ``.tar.gz``.

Read again by :mod:`hwcheck.readers.bundle`, which describes the manifest. Files are 0600 and folders 0700 (a node's
evidence names addresses, users and serial numbers); each node, and the bundle, appears whole or not at all.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import tarfile
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from hwcheck.errors import UsageError

FORMAT = "hwcheck.evidence/1"
MANIFEST = "manifest.json"
_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")


@dataclass(frozen=True, slots=True)
class Source:
    """
    One source of a node.

    Attributes:
        id: format of its text.
        file: name below the node's folder, ``raw/...``; "" where there is no text.
        data: the text as it came; empty where there is none.
        status, detail, seconds, command: how it was asked and how it ended.
    """

    id: str
    file: str
    data: bytes
    status: str
    detail: str = ""
    seconds: float = 0.0
    command: str = ""


@dataclass(frozen=True, slots=True)
class Node:
    """
    What is kept of one node.

    Attributes:
        name: of the node, and of its folder.
        sources: in the order they came.
        time: when it was read, ISO 8601.
        simulated: from a lab.
        broken: what could not be read to its end, and why.
        unreachable, advice: why there is nothing, and what to do about it; "" for a node that answered.
        tool: name and version of the writer.
    """

    name: str
    sources: tuple[Source, ...] = ()
    time: str = ""
    simulated: bool = False
    broken: tuple[tuple[str, str], ...] = ()
    unreachable: str = ""
    advice: str = ""
    tool: str = ""

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Go through the files, the manifest last: a folder without it is no evidence yet."""
        for source in self.sources:
            if source.file:
                yield source.file, source.data
        yield MANIFEST, json.dumps(self.manifest(), indent=1, allow_nan=False).encode() + b"\n"

    def manifest(self) -> dict[str, Any]:
        """Return what the manifest says."""
        return {
            "format": FORMAT,
            "node": self.name,
            "simulated": self.simulated,
            "tool": self.tool,
            "taken": self.time,
            "broken": [list(part) for part in self.broken],
            "unreachable": self.unreachable,
            "advice": self.advice,
            "sources": [
                {
                    "id": source.id,
                    "file": source.file or None,
                    "status": source.status,
                    "detail": source.detail,
                    "seconds": source.seconds,
                    "time": self.time,
                    "command": source.command,
                }
                for source in self.sources
            ],
        }


class Keeper(Protocol):
    """Keeps nodes; a context manager, so that what was begun is finished or removed."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def keep(self, node: Node) -> None:
        """Write one node."""


def keeper(place: Path) -> Keeper:
    """
    Choose by the name: a bundle for ``.tar.gz`` or ``.tgz``, else a folder.

    Raises:
        UsageError: it is there already, or its parent is not.
    """
    bundle = place.name.endswith((".tar.gz", ".tgz"))
    if not place.parent.is_dir():
        raise UsageError(f"{place.parent}: no such folder")
    if (bundle and place.exists()) or (place.exists() and (not place.is_dir() or any(place.iterdir()))):
        raise UsageError(f"{place} is there already; evidence is never overwritten")
    return BundleKeeper(place) if bundle else FolderKeeper(place)


def folder_name(name: str, taken: set[str]) -> str:
    """Make a folder's name of a node's: no path, nothing hidden, no two the same."""
    safe = "".join(char if char in _SAFE else "_" for char in name)[:100].lstrip(".") or "node"
    chosen, number = safe, 1
    while chosen in taken:
        number += 1
        chosen = f"{safe}_{number}"
    taken.add(chosen)
    return chosen


class FolderKeeper:
    """Writes a folder for each node below one folder."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._taken: set[str] = set()

    def __enter__(self) -> Self:
        """Make the folder."""
        self._place.mkdir(mode=0o700, exist_ok=True)
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing to finish: each node was written whole."""

    def keep(self, node: Node) -> None:
        """Write one node: beside its place first, then moved there."""
        begun = Path(tempfile.mkdtemp(prefix=".begun-", dir=self._place))
        try:
            for name, data in node.files():
                path = begun / name
                path.parent.mkdir(mode=0o700, exist_ok=True)
                with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                    file.write(data)
            begun.rename(self._place / folder_name(node.name, self._taken))
        except BaseException:
            shutil.rmtree(begun, ignore_errors=True)
            raise


class BundleKeeper:
    """Writes all nodes into one compressed archive."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._taken: set[str] = set()
        self._time = int(time.time())

    def __enter__(self) -> Self:
        """Begin beside the place."""
        fd, self._begun = tempfile.mkstemp(prefix=".begun-", dir=self._place.parent)  # 0600
        self._file = os.fdopen(fd, "wb")
        self._archive = tarfile.open(fileobj=self._file, mode="w:gz", compresslevel=6)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Move the archive to its place, or remove what was begun."""
        try:
            self._archive.close()
            self._file.close()
            if kind is None:
                self._move()
        except OSError:
            self._give_up()
            raise
        finally:
            Path(self._begun).unlink(missing_ok=True)
            self._file.close()

    def _give_up(self) -> None:
        """Let what is still in buffers go nowhere, so that none of them tries again when it is thrown away."""
        with contextlib.suppress(OSError, ValueError):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self._file.fileno())
            os.close(null)
            if self._archive.fileobj is not None:
                self._archive.fileobj.close()

    def _move(self) -> None:
        try:
            os.link(self._begun, self._place)
        except FileExistsError as error:
            raise UsageError(f"{self._place} has come meanwhile; evidence is never overwritten") from error
        except OSError:  # a file system without hard links
            Path(self._begun).replace(self._place)

    def keep(self, node: Node) -> None:
        """Add one node."""
        self.put(node.name, node.files())

    def put(self, name: str, files: Iterable[tuple[str, bytes]]) -> None:
        """Add a folder of files, in this order; its name is made a safe one."""
        folder = folder_name(name, self._taken)
        for file, data in files:
            member = tarfile.TarInfo(f"{folder}/{file}")
            member.size, member.mode, member.mtime = len(data), 0o600, self._time
            self._archive.addfile(member, io.BytesIO(data))
