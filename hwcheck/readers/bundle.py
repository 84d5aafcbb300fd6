"""
Evidence directories and bundles: ``manifest.json`` + ``raw/``, as a folder or as ``.tar.gz``.

Manifest: ``{"format": "hwcheck.evidence/1", "node": NAME, "simulated": false, "sources": [{"id": KIND, "file":
"raw/NAME" | null, "status": "ok" | "absent" | "denied" | "timeout" | "failed" | "truncated", "detail": "", "seconds":
0.4, "time": ISO, "command": ""}]}``. A bundle may hold several such folders.

Nothing is ever extracted. Links, devices and names that lead outside are refused; sizes are limited.
"""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from hwcheck.errors import EvidenceError
from hwcheck.evidence import Evidence, Leftover, Output
from hwcheck.facts import Reason
from hwcheck.parse import FORMATS
from hwcheck.readers.lines import NotText, lines
from hwcheck.readers.segments import split_text

MANIFEST = "manifest.json"
FORMAT = "hwcheck.evidence/1"
MAX_MEMBERS = 20_000
MAX_BYTES = 2 << 30
MAX_MANIFEST = 8 << 20
_STATUS = {
    "ok": None,
    "absent": Reason.ABSENT,
    "denied": Reason.DENIED,
    "timeout": Reason.TIMEOUT,
    "failed": Reason.FAILED,
    "truncated": Reason.UNPARSABLE,
}

Opener = Callable[[str], "BinaryIO | None"]


def read_directory(place: Path) -> Iterator[Evidence]:
    """
    Read a folder with a manifest, or each folder in it that has one.

    Raises:
        EvidenceError: a manifest that is none.
    """
    homes = [place] if (place / MANIFEST).is_file() else sorted(p.parent for p in place.glob(f"*/{MANIFEST}"))
    for home in homes:
        root = home.resolve()

        def open_member(name: str, root: Path = root) -> BinaryIO | None:
            path = (root / name).resolve()
            if not path.is_relative_to(root) or not path.is_file():
                return None
            return path.open("rb")

        with (home / MANIFEST).open("rb") as stream:
            yield _from_manifest(stream.read(MAX_MANIFEST + 1), str(home), open_member)


def is_archive(stream: BinaryIO) -> bool:
    """Tell whether a file is a tar (also compressed) or zip archive; leaves the stream at its start."""
    try:
        if zipfile.is_zipfile(stream):
            return True
        stream.seek(0)
        try:
            with tarfile.open(fileobj=stream, mode="r:*") as archive:
                return archive.next() is not None
        except (tarfile.TarError, EOFError, OSError, ValueError, MemoryError):
            return False
    finally:
        stream.seek(0)


def read_archive(stream: BinaryIO, name: str, posted: Evidence) -> Iterator[Evidence]:
    """
    Read a bundle; an archive without a manifest is a set of posted files, added to ``posted`` (then yielded).

    Raises:
        EvidenceError: too many members, too large, or broken.
    """
    members = _zip_members(stream, posted) if zipfile.is_zipfile(stream) else _tar_members(stream, posted)
    homes = sorted(str(PurePosixPath(member).parent) for member in members if PurePosixPath(member).name == MANIFEST)
    if not homes:
        for member, data in members.items():
            try:
                for evidence in split_text(lines(io.BytesIO(data)), f"{name}:{member}", posted):
                    if evidence is not posted:
                        yield evidence
            except NotText:
                posted.leftovers.append(Leftover(f"{name}:{member}", 1, 0, "a binary file, no text"))
        yield posted
        return
    for home in homes:

        def open_member(file: str, home: str = home) -> BinaryIO | None:
            data = members.get(str(PurePosixPath(home) / file))
            return io.BytesIO(data) if data is not None else None

        yield _from_manifest(members[str(PurePosixPath(home) / MANIFEST)], f"{name}:{home}", open_member)


def _tar_members(stream: BinaryIO, posted: Evidence) -> dict[str, bytes]:
    members: dict[str, bytes] = {}
    total = 0
    stream.seek(0)
    try:
        with tarfile.open(fileobj=stream, mode="r|*") as archive:
            for count, member in enumerate(archive):
                total += member.size if member.isreg() else 0
                _within_limits(count, total)
                path = _safe(member.name)
                if member.isdir():
                    continue
                if path is None or not member.isreg():
                    posted.leftovers.append(Leftover(member.name[:80], 1, 0, "a link, device or outside path: not read"))
                    continue
                file = archive.extractfile(member)
                members[path] = file.read() if file else b""
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        if not members:
            raise EvidenceError(f"broken archive: {error}") from error
        posted.broken.append(("the archive", f"broken archive: {error}"))
    return members


def _zip_members(stream: BinaryIO, posted: Evidence) -> dict[str, bytes]:
    members: dict[str, bytes] = {}
    total = 0
    stream.seek(0)
    try:
        with zipfile.ZipFile(stream) as archive:
            for count, member in enumerate(archive.infolist()):
                total += member.file_size
                _within_limits(count, total)
                path = _safe(member.filename)
                if member.is_dir():
                    continue
                if path is None or (member.external_attr >> 16) & 0o170000 == 0o120000:
                    posted.leftovers.append(Leftover(member.filename[:80], 1, 0, "a link or outside path: not read"))
                    continue
                with archive.open(member) as file:
                    members[path] = file.read(member.file_size)
    except (zipfile.BadZipFile, OSError, ValueError, RuntimeError, NotImplementedError) as error:
        raise EvidenceError(f"broken archive: {error}") from error
    return members


def _within_limits(count: int, total: int) -> None:
    if count >= MAX_MEMBERS or total > MAX_BYTES:
        raise EvidenceError(f"archive over the limits ({MAX_MEMBERS} members, {MAX_BYTES >> 30} GiB)")


def _safe(name: str) -> str | None:
    """Return the name as a clean relative path, or None when it leads outside."""
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts:
        return None
    return str(path)


def _from_manifest(data: bytes, where: str, open_member: Opener) -> Evidence:
    if len(data) > MAX_MANIFEST:
        raise EvidenceError(f"{where}: {MANIFEST} is larger than {MAX_MANIFEST >> 20} MiB")
    try:
        manifest = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise EvidenceError(f"{where}: {MANIFEST} is no JSON: {error}") from error
    sources = manifest.get("sources") if isinstance(manifest, dict) else None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT or not isinstance(sources, list):
        raise EvidenceError(f"{where}: {MANIFEST} is not of format {FORMAT}")
    node = manifest.get("node")
    evidence = Evidence(
        node[:255] if isinstance(node, str) else "", simulated=manifest.get("simulated") is True, collected=True
    )
    for source in sources:
        if isinstance(source, dict) and isinstance(source.get("id"), str):
            _add_source(source, evidence, open_member)
    return evidence


def _add_source(source: dict[str, Any], evidence: Evidence, open_member: Opener) -> None:
    kind = source["id"]
    status = source.get("status", "ok")
    file = source.get("file") if isinstance(source.get("file"), str) else ""
    output = Output(kind, file=file or kind, command=str(source.get("command") or ""), time=str(source.get("time") or ""))
    output.reason = _STATUS.get(status, Reason.UNPARSABLE)
    output.detail = str(source.get("detail") or "")[:200]
    seconds = source.get("seconds")
    output.seconds = float(seconds) if isinstance(seconds, (int, float)) else None
    if kind == "posted" and file:
        _add_posted(file, evidence, open_member)
        return
    evidence.outputs.append(output)
    stream = open_member(file) if file else None
    if stream is None:
        if output.reason is None:
            output.reason, output.detail = Reason.UNPARSABLE, f"{file or 'the file'} is not in the evidence"
        return
    spec = FORMATS.get(kind)
    output.digest = spec.digest() if spec is not None and spec.digest else None
    with stream:
        try:
            for number, line in enumerate(lines(stream), 1):
                if output.digest is None:
                    output.lines.append(line)
                else:
                    output.digest.feed(line, number)
                output.count = number
        except EvidenceError as error:
            output.reason, output.detail = Reason.UNPARSABLE, str(error)


def _add_posted(file: str, evidence: Evidence, open_member: Opener) -> None:
    """A source of id ``posted`` is a text whose format is to be recognised."""
    stream = open_member(file)
    if stream is None:
        evidence.broken.append((file, "is not in the evidence"))
        return
    with stream:
        try:
            split_text(lines(stream), file, evidence)
        except NotText:
            evidence.leftovers.append(Leftover(file, 1, 0, "a binary file, no text"))
        except EvidenceError as error:
            evidence.broken.append((file, str(error)))
