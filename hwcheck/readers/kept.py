"""
Evidence as files, byte for byte: what is hashed for a certificate and handed on in an RMA bundle.

A node is a manifest and the files that it names. Posted files get a manifest of ours, so that they are read alike.
"""

from __future__ import annotations

import datetime as dt
import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from hwcheck.errors import EvidenceError, UsageError
from hwcheck.evidence import Evidence
from hwcheck.readers.archive import archive_files, is_archive
from hwcheck.readers.bundle import FORMAT, MANIFEST, MAX_MANIFEST, POSTED, read_manifest
from hwcheck.readers.posted import MAX_FILES

MAX_BYTES = 2 << 30
"""Bytes of all files together."""


@dataclass(frozen=True, slots=True)
class Kept:
    """
    One node's evidence.

    Attributes:
        name: of the node, as its manifest has it; "" where that does not tell.
        files: name below the node's folder → bytes; the manifest is one of them.
    """

    name: str
    files: dict[str, bytes]

    def evidence(self) -> Evidence:
        """
        Read it as any other evidence.

        Raises:
            EvidenceError: the files tell of several machines, or the manifest is none.
        """
        nodes = list(read_manifest(self.files[MANIFEST], self.name or MANIFEST, self._open))
        if len(nodes) != 1:
            raise EvidenceError(f"the files tell of {len(nodes)} nodes, not of one")
        return nodes[0]

    def is_of(self, taken: object) -> bool:
        """
        Tell whether it was taken at this time.

        Args:
            taken: seconds since 1970, as a run says of its node; the manifest keeps whole seconds.
        """
        told = json.loads(self.files[MANIFEST]).get("taken")
        try:
            mine = dt.datetime.fromisoformat(told).timestamp() if isinstance(told, str) else None
        except (ValueError, OverflowError):
            mine = None
        return mine is not None and isinstance(taken, (int, float)) and abs(mine - taken) < 2

    def _open(self, name: str) -> BinaryIO | None:
        data = self.files.get(str(PurePosixPath(name)))
        return io.BytesIO(data) if data is not None else None


def read_kept(paths: Iterable[str]) -> list[Kept]:
    """
    Read evidence directories, bundles and posted files; what has no manifest is one node.

    Raises:
        UsageError: a path that is not there or cannot be read, or too much of it.
        EvidenceError: a broken archive or manifest.
    """
    nodes: list[Kept] = []
    posted: dict[str, bytes] = {}
    for path in paths:
        files = _files(path)
        homes = sorted(str(PurePosixPath(name).parent) for name in files if PurePosixPath(name).name == MANIFEST)
        nodes += [
            _node({_below(name, home): data for name, data in files.items() if _inside(name, home)}) for home in homes
        ]
        if not homes:
            for name, data in files.items():
                posted[_free(PurePosixPath(name).name, posted)] = data
    if posted:
        sources = [{"id": POSTED, "file": name, "status": "ok"} for name in posted]
        manifest = {"format": FORMAT, "node": "", "simulated": False, "sources": sources}
        nodes.append(Kept("", {**posted, MANIFEST: json.dumps(manifest, indent=1).encode() + b"\n"}))
    return nodes


def _node(files: dict[str, bytes]) -> Kept:
    """Keep what the manifest names: a folder may hold other things."""
    manifest = files[MANIFEST]
    try:
        told: Any = json.loads(manifest) if len(manifest) <= MAX_MANIFEST else None
    except (ValueError, RecursionError) as error:
        raise EvidenceError(f"{MANIFEST} is no JSON: {error}") from error
    sources = told.get("sources") if isinstance(told, dict) else None
    if not isinstance(sources, list):
        raise EvidenceError(f"{MANIFEST} is not of format {FORMAT}")
    named = {source.get("file") for source in sources if isinstance(source, dict) and source.get("file")}
    names = {str(PurePosixPath(name)) for name in named if isinstance(name, str)}
    node = told.get("node")
    return Kept(
        node if isinstance(node, str) else "",
        {name: data for name, data in files.items() if name in names or name == MANIFEST},
    )


def _files(path: str) -> dict[str, bytes]:
    place = Path(path)
    try:
        if place.is_dir():
            return _folder(place)
        if not place.is_file():
            raise UsageError(f"{path}: {'a device or pipe' if place.exists() else 'no such file or folder'}")
        with place.open("rb") as stream:
            if is_archive(stream):
                return archive_files(stream)
        return dict(_bounded([(place.name, place)]))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error


def _folder(place: Path) -> dict[str, bytes]:
    """Read the files below a folder; links are not followed, so nothing outside comes in."""
    found = [
        (str(PurePosixPath(path.relative_to(place))), path)
        for path in sorted(place.rglob("*"))
        if path.is_file() and not path.is_symlink()
    ]
    if len(found) > MAX_FILES:
        raise UsageError(f"{place}: more than {MAX_FILES} files")
    return dict(_bounded(found))


def _bounded(paths: Iterable[tuple[str, Path]]) -> Iterator[tuple[str, bytes]]:
    left = MAX_BYTES
    for name, path in paths:
        with path.open("rb") as file:
            data = file.read(left + 1)
        left -= len(data)
        if left < 0:
            raise UsageError(f"{path}: with the others it is larger than {MAX_BYTES >> 30} GiB")
        yield name, data


def _inside(name: str, home: str) -> bool:
    return home == "." or PurePosixPath(name).is_relative_to(home)


def _below(name: str, home: str) -> str:
    return str(PurePosixPath(name).relative_to(home)) if home != "." else name


def _free(name: str, taken: dict[str, bytes]) -> str:
    """Name a posted file below ``raw/``; two of one name are numbered."""
    chosen, number = f"raw/{name}", 1
    while chosen in taken:
        number += 1
        chosen = f"raw/{number}-{name}"
    return chosen
