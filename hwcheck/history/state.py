"""
The previous snapshot of each node, under ``$XDG_STATE_HOME/hwcheck/nodes``: one JSON file a node.

Kept are the values that checks compare, and no gaps: what was missing then tells nothing about a rate. A snapshot
counts as reference within one boot only, since counters begin anew with the next. A file that is not understood is as
good as none.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hwcheck.facts import NAMES, NODE, Facet, Fact, Origin, Snapshot, Subject
from hwcheck.places import state_home, write_whole

FORMAT = "hwcheck.state/1"
MAX_FILE = 64 << 20


class State:
    """
    Keeps and gives back snapshots.

    Args:
        names: of the facts to keep.
        folder: where to; None for the usual place.
    """

    def __init__(self, names: Collection[str], folder: Path | None = None) -> None:
        self._names = names
        self._folder = folder if folder is not None else state_home() / "nodes"

    def previous(self, snapshot: Snapshot) -> Snapshot | None:
        """Return the last snapshot of this node and boot; None when there is none."""
        boot = snapshot.value("evidence.boot_id")
        if not boot or not snapshot.node:
            return None
        try:
            with self._path(snapshot.node).open("rb") as file:
                kept = json.loads(file.read(MAX_FILE))
            if kept["format"] != FORMAT or kept["node"] != snapshot.node or kept["boot_id"] != boot:
                return None
            return _snapshot(kept)
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def keep(self, snapshot: Snapshot) -> None:
        """
        Keep a snapshot as the last one of its node; one without a boot id (an image) is not kept.

        Raises:
            OSError: the folder cannot be written.
        """
        boot = snapshot.value("evidence.boot_id")
        if not boot or not snapshot.node:
            return
        text = json.dumps(
            {
                "format": FORMAT,
                "node": snapshot.node,
                "boot_id": boot,
                "time": snapshot.value("evidence.taken"),
                "facts": self._rows(snapshot),
            },
            separators=(",", ":"),
        )
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(self._path(snapshot.node), text.encode(), sync=False)

    def _rows(self, snapshot: Snapshot) -> list[list[Any]]:
        return [
            [subject.kind, subject.id, name, str(facet), fact.value]
            for subject, of_subject in snapshot.facts.items()
            for (name, facet), fact in of_subject.items()
            if name in self._names and fact.present
        ]

    def _path(self, node: str) -> Path:
        name = quote(node, safe="").replace(".", "%2E", 1) if node.startswith(".") else quote(node, safe="")
        if len(name) > 150:
            name = name[:100] + "-" + hashlib.sha256(node.encode()).hexdigest()[:32]
        return self._folder / f"{name}.json"


def _snapshot(kept: dict[str, Any]) -> Snapshot:
    snapshot = Snapshot(kept["node"])
    origin = Origin("previous", time=str(kept.get("time", "")))
    for kind, id, name, facet, value in kept["facts"]:
        spec = NAMES.get(name)
        if spec is None:
            continue  # an older hwcheck had it
        read = tuple(value) if spec.type is tuple and isinstance(value, list) else value  # JSON has no tuples
        with contextlib.suppress(ValueError, TypeError):  # declared otherwise since
            snapshot.put(Subject(kind, id) if id else NODE, name, Fact(read, origin), Facet(facet))
    return snapshot
