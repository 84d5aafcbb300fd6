"""The pinned bounds and the history that measurements are held against: where they lie, and how they are had."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hwcheck.baselines.references import Sample, is_number, read_pinned, references_of
from hwcheck.describe import cohort
from hwcheck.engine import References
from hwcheck.errors import HwcheckError, MachineError
from hwcheck.facts import Snapshot
from hwcheck.places import state_home
from hwcheck.profiles import ProfileSet, identify
from hwcheck.store import Store

_MANY = 10_000_000
"""Figures that are asked of a store: all of a large fleet's."""


def pinned_file(given: Path | None) -> Path:
    """Return the file of pinned bounds."""
    return given if given is not None else state_home() / "references.json"


def load_pinned(given: Path | None) -> dict[str, Any]:
    """
    Read the pinned bounds; {} where nothing was pinned yet.

    Raises:
        UsageError: the file is damaged.
        OSError: a file that was named cannot be read.
    """
    path = pinned_file(given)
    if given is None and not path.exists():
        return {}
    return read_pinned(path.read_text(encoding="utf-8"), str(path))


class Referring:
    """
    Says what the measurements of a node are held against.

    Args:
        pinned: as :func:`load_pinned` returns it.
        store: with the node's own history; None for none.
        platform: the profile of the command line; "" where it is recognised.
    """

    def __init__(self, pinned: dict[str, Any], store: Store | None, platform: str = "") -> None:
        self._pinned = pinned
        self._store = store
        self._platform = platform
        self._platforms = ProfileSet().platforms

    def of(self, snapshot: Snapshot) -> References:
        """Return the bounds of a node's measurements; without the history where the store cannot be asked."""
        subjects = [subject.id for subject in snapshot.subjects("measurement")]
        mine = cohort(self._platform or identify(snapshot, self._platforms).platform, snapshot)
        return references_of(snapshot.node, mine, subjects, self._pinned, self._history(snapshot.node))

    def _history(self, node: str) -> Iterable[Sample]:
        if self._store is None or not node:
            return ()
        try:
            return samples(self._store, node=node)
        except HwcheckError as error:
            print(f"hwcheck: without the earlier figures of {node}: {error}", file=sys.stderr)
            return ()


def samples(store: Store, node: str = "") -> list[Sample]:
    """
    Return the figures that a store has.

    Raises:
        StoreError: it cannot be asked.
    """
    found = store.measurements(node=node, limit=_MANY)
    return [Sample(one.node, one.cohort, one.subject, one.value, one.unit, one.conditions, one.run) for one in found]


def samples_of(run: dict[str, Any]) -> list[Sample]:
    """Return the figures of a run JSON; what is no number is none."""
    cohorts = {node["name"]: str(node["about"].get("cohort", "")) for node in run["nodes"]}
    return [
        Sample(
            one["node"], cohorts.get(one["node"], ""), one["subject"], one["value"], one["unit"], one["conditions"],
            str(run.get("run", "")),
        )
        for one in run["measurements"]
        if is_number(one["value"])
    ]  # fmt: skip


def named_store() -> str:
    """Return the store that HWCHECK_STORE names; "" for the user's own."""
    return os.environ.get("HWCHECK_STORE", "")


def open_store(url: str | None) -> Store | None:
    """
    Return the store that is asked for: the named one, that of HWCHECK_STORE, or the user's own; None for ``none``.

    Raises:
        StoreError: the name is none.
    """
    wanted = url if url is not None else named_store()
    if wanted == "none":
        return None
    with contextlib.suppress(MachineError):  # a user without a home keeps nothing
        return Store.open(wanted)
    return None
