"""Build small trees of a node's files, and read one source of them through its parser."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hwcheck.evidence import Evidence, Output
from hwcheck.facts import Snapshot
from hwcheck.parse import take_snapshot
from hwcheck.parse.fill import fill
from hwcheck.sources.source import Context, Source


def plant(root: Path, files: dict[str, str | bytes]) -> Context:
    """Write files below the root; a text that begins with ``-> `` becomes a link."""
    for path, text in files.items():
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(text, str) and text.startswith("-> "):
            target.symlink_to(text[3:])
        else:
            target.write_bytes(text.encode() if isinstance(text, str) else text)
    return Context(root=str(root), uid=0)


def asked(sources: tuple[Source, ...], name: str) -> Callable[[Context], bytes]:
    """Return the ``ask`` of a source by its id."""
    ask: Callable[[Context], bytes] = next(source.ask for source in sources if source.id == name)
    return ask


def output_of(sources: tuple[Source, ...], name: str, context: Context, **more: Any) -> Output:
    """Ask a source, and make of its answer what the transport would."""
    kind = next(source.kind for source in sources if source.id == name)
    output = Output(kind, file=kind, command=name, **more)
    fill(output, io.BytesIO(asked(sources, name)(context)))
    return output


def facts_of(*outputs: Output) -> Snapshot:
    """Parse outputs into one snapshot."""
    return take_snapshot(Evidence("", list(outputs), collected=True))
