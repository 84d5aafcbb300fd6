"""
Archives (tar, also compressed, and zip): members in memory, within limits. Nothing is ever extracted.

Links, devices and names that lead outside are not read, and said to be so.
"""

from __future__ import annotations

import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import BinaryIO

from hwcheck.errors import EvidenceError
from hwcheck.evidence import Evidence, Leftover
from hwcheck.lines import clean
from hwcheck.readers.bundle import MANIFEST, read_manifest
from hwcheck.readers.texts import Texts

MAX_MEMBERS = 20_000
MAX_BYTES = 2 << 30
_LINK, _KIND = 0o120000, 0o170000
_BROKEN = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError,
           RuntimeError, NotImplementedError, MemoryError)  # fmt: skip
"""What the libraries raise for garbage; RuntimeError and NotImplementedError: encrypted or packed in an unknown way."""


class _Members:
    """The files of an archive, and what was not read of it."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.refused: list[Leftover] = []
        self.broken = ""
        self._count = 0
        self._bytes = 0

    def within_limits(self, size: int) -> None:
        """Count a member before it is read."""
        self._count += 1
        self._bytes += size
        if self._count > MAX_MEMBERS or self._bytes > MAX_BYTES:
            raise EvidenceError(f"archive over the limits ({MAX_MEMBERS} members, {MAX_BYTES >> 20} MiB)")

    def refuse(self, name: str) -> None:
        """Say that a member is not read."""
        self.refused.append(Leftover(clean(name)[:80], 1, 0, "a link, device or outside path: not read"))


def is_archive(stream: BinaryIO) -> bool:
    """Tell whether a file is a tar (also compressed) or zip archive; leaves the stream at its start."""
    try:
        if zipfile.is_zipfile(stream):
            return True
        stream.seek(0)
        try:
            with tarfile.open(fileobj=stream, mode="r:*") as archive:
                return archive.next() is not None
        except _BROKEN:
            return False
    finally:
        stream.seek(0)


def archive_files(stream: BinaryIO) -> dict[str, bytes]:
    """
    Return the files of an archive that may be read: name → bytes.

    Raises:
        EvidenceError: too many members, too large, or broken anywhere: half a bundle is not handed on as a whole one.
    """
    members = _zip_members(stream) if zipfile.is_zipfile(stream) else _tar_members(stream)
    if members.broken:
        raise EvidenceError(members.broken)
    return members.files


def read_archive(stream: BinaryIO, name: str, posted: Texts) -> Iterator[Evidence]:
    """
    Read a bundle: each folder with a manifest is a node. Without any, the members are posted files.

    Args:
        stream: the archive.
        name: for messages and origins.
        posted: takes the members of an archive without a manifest.

    Raises:
        EvidenceError: too many members, too large, or broken from its start.
    """
    members = _zip_members(stream) if zipfile.is_zipfile(stream) else _tar_members(stream)
    homes = sorted(str(PurePosixPath(member).parent) for member in members.files if _is_manifest(member))
    if not homes:
        for member, data in members.files.items():
            posted.add(io.BytesIO(data), f"{name}:{clean(member)}")
        _complain(members, name, posted.unnamed)
        posted.used = True
    for home in homes:

        def open_member(file: str, home: str = home) -> BinaryIO | None:
            path = _safe(file)
            data = members.files.get(str(PurePosixPath(home) / path)) if path is not None else None
            return io.BytesIO(data) if data is not None else None

        manifest = members.files[str(PurePosixPath(home) / MANIFEST)]
        for node in read_manifest(manifest, f"{name}:{clean(home)}", open_member):
            _complain(members, name, node)
            yield node


def _is_manifest(member: str) -> bool:
    return PurePosixPath(member).name == MANIFEST


def _complain(members: _Members, name: str, evidence: Evidence) -> None:
    """Say what was not read: an archive that breaks off may lack a part of any node in it."""
    evidence.leftovers += members.refused
    if members.broken:
        evidence.broken.append((name, members.broken))


def _tar_members(stream: BinaryIO) -> _Members:
    members = _Members()
    stream.seek(0)
    try:
        with tarfile.open(fileobj=stream, mode="r|*") as archive:
            for member in archive:
                members.within_limits(member.size if member.isreg() else 0)
                if member.isdir():
                    continue
                path = _safe(member.name)
                file = archive.extractfile(member) if path is not None and member.isreg() else None
                if path is None or file is None:
                    members.refuse(member.name)
                else:
                    members.files[path] = file.read()
    except _BROKEN as error:
        if not members.files:
            raise EvidenceError(f"broken archive: {error}") from error
        members.broken = f"broken archive: {error}"
    return members


def _zip_members(stream: BinaryIO) -> _Members:
    members = _Members()
    stream.seek(0)
    try:
        with zipfile.ZipFile(stream) as archive:
            for member in archive.infolist():
                members.within_limits(member.file_size)
                if member.is_dir():
                    continue
                path = _safe(member.filename)
                if path is None or (member.external_attr >> 16) & _KIND == _LINK:
                    members.refuse(member.filename)
                    continue
                with archive.open(member) as file:
                    members.files[path] = file.read(member.file_size)
    except _BROKEN as error:
        if not members.files:
            raise EvidenceError(f"broken archive: {error}") from error
        members.broken = f"broken archive: {error}"
    return members


def _safe(name: str) -> str | None:
    """Return the name as a clean relative path, or None when it leads outside."""
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts:
        return None
    return str(path)
