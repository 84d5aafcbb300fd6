"""
Evidence directories: ``manifest.json`` + ``raw/``. A bundle is the same as an archive (:mod:`hwcheck.readers.archive`).

Manifest: ``{"format": "hwcheck.evidence/1", "node": NAME, "simulated": false, "sources": [{"id": KIND, "file":
"raw/NAME" | null, "status": "ok" | "absent" | "denied" | "timeout" | "failed" | "truncated", "detail": "", "seconds":
0.4, "time": ISO, "command": ""}], "broken": [[NAME, WHY]], "unreachable": "", "advice": ""}``; the last three say what
was lost on the way. A folder may hold several such folders.

A manifest comes from a node and is not trusted: a value of a wrong type makes that source unparsable, never an error.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from hwcheck.errors import EvidenceError
from hwcheck.evidence import EXCERPT_LENGTH, Evidence, Output
from hwcheck.facts import Reason
from hwcheck.lines import clean
from hwcheck.parse.fill import REASONS, fill
from hwcheck.readers.texts import Texts

MANIFEST = "manifest.json"
FORMAT = "hwcheck.evidence/1"
MAX_MANIFEST = 8 << 20
POSTED = "posted"
"""Source id of a text whose format is to be recognised."""

Opener = Callable[[str], "BinaryIO | None"]


def read_directory(place: Path) -> Iterator[Evidence]:
    """
    Read a folder with a manifest, or each folder in it that has one.

    Raises:
        EvidenceError: a manifest that is none, or that is a link to elsewhere.
    """
    homes = [place] if (place / MANIFEST).is_file() else sorted(p.parent for p in place.glob(f"*/{MANIFEST}"))
    for home in homes:
        root = home.resolve()

        def open_member(name: str, root: Path = root) -> BinaryIO | None:
            try:
                path = (root / name).resolve()
                return path.open("rb") if path.is_relative_to(root) and path.is_file() else None
            except (OSError, ValueError, RuntimeError):  # too long, with a NUL, a ring of links, not ours to read
                return None

        stream = open_member(MANIFEST)
        if stream is None:
            raise EvidenceError(f"{home}: {MANIFEST} cannot be read, or leads outside")
        with stream:
            yield from read_manifest(stream.read(MAX_MANIFEST + 1), str(home), open_member)


def read_manifest(data: bytes, where: str, open_member: Opener) -> Iterator[Evidence]:
    """
    Read a node by its manifest; posted texts in it may tell of more nodes.

    Args:
        data: the manifest.
        where: its place, for messages.
        open_member: opens a file by the name that the manifest gives, or returns None.

    Raises:
        EvidenceError: no manifest of our format.
    """
    if len(data) > MAX_MANIFEST:
        raise EvidenceError(f"{where}: {MANIFEST} is larger than {MAX_MANIFEST >> 20} MiB")
    try:
        manifest = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise EvidenceError(f"{where}: {MANIFEST} is no JSON: {error}") from error
    sources = manifest.get("sources") if isinstance(manifest, dict) else None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT or not isinstance(sources, list):
        raise EvidenceError(f"{where}: {MANIFEST} is not of format {FORMAT}")
    evidence = Evidence(_text(manifest, "node", 255), simulated=manifest.get("simulated") is True, collected=True)
    posted = Texts(evidence)
    evidence.unreachable, evidence.advice = _text(manifest, "unreachable", 500), _text(manifest, "advice", 1000)
    evidence.broken += _lost(manifest.get("broken"))
    for index, source in enumerate(sources):
        if isinstance(source, dict) and isinstance(source.get("id"), str):
            _add_source(source, posted, open_member)
        else:
            evidence.broken.append((MANIFEST, f"source {index + 1} has no id"))
    yield from posted.nodes()


def _text(record: dict[str, Any], key: str, length: int = EXCERPT_LENGTH) -> str:
    value = record.get(key)
    return clean(value)[:length] if isinstance(value, str) else ""


def _lost(rows: Any) -> Iterator[tuple[str, str]]:
    """Go through what the collector itself could not read to its end."""
    for row in rows[:1000] if isinstance(rows, list) else ():
        if isinstance(row, list) and len(row) == 2 and all(isinstance(part, str) for part in row):
            yield clean(row[0])[:80], clean(row[1])[:EXCERPT_LENGTH]


def _add_source(source: dict[str, Any], posted: Texts, open_member: Opener) -> None:
    kind, name = source["id"], source.get("file")
    file = _text(source, "file") if isinstance(name, str) else ""
    stream = open_member(name) if isinstance(name, str) else None
    if kind == POSTED and file:
        _add_posted(stream, file, posted)
        return
    output = Output(
        clean(kind)[:80],
        file=file or clean(kind)[:80],
        command=_text(source, "command"),
        time=_text(source, "time", 80),
    )
    status = source.get("status", "ok")
    output.reason = REASONS.get(status, Reason.UNPARSABLE) if isinstance(status, str) else Reason.UNPARSABLE
    output.detail = _text(source, "detail")
    output.seconds = _seconds(source.get("seconds"))
    posted.unnamed.outputs.append(output)
    if stream is not None:
        with stream:
            fill(output, stream)
    elif output.reason is None:
        output.reason, output.detail = Reason.UNPARSABLE, f"{file or 'the file'} is not in the evidence"


def _seconds(value: Any) -> float | None:
    try:
        seconds = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else -1.0
    except OverflowError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _add_posted(stream: BinaryIO | None, file: str, posted: Texts) -> None:
    if stream is None:
        posted.unnamed.broken.append((file, "is not in the evidence"))
        return
    with stream:
        posted.add(stream, file)
