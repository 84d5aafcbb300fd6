"""Figures of an earlier acceptance that still count after a part was swapped: put beside those measured anew."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from hwcheck.baselines.partial import is_touched, other_changes, read_part, sources_for, subject_of
from hwcheck.describe import describe
from hwcheck.errors import UsageError
from hwcheck.facts import Fact, Origin, Snapshot, Subject
from hwcheck.store import Store

_FACTS = {"GB/s": "result.bandwidth", "Gb/s": "result.line_rate", "us": "result.latency"}
CARRIED = "carried_from"
"""Condition of a figure that an earlier run has measured: its name."""


class After:
    """
    What an acceptance after a swap leaves out, and takes over.

    Args:
        arguments: of the verb; ``after`` names the part. Its ``tests`` are narrowed to what the part takes part in.
        store: with earlier acceptances.

    Raises:
        UsageError: the part is none, or there is no store.
    """

    def __init__(self, arguments: argparse.Namespace, store: Store | None) -> None:
        self._part = read_part(arguments.after)
        if store is None:
            raise UsageError("--after goes on from an earlier acceptance, and there is no store that has one")
        self._store = store
        self._runs: dict[str, dict[str, Any]] = {}
        if not arguments.tests:
            arguments.tests = list(sources_for(self._part))

    def carry(self, snapshot: Snapshot) -> None:
        """
        Add the figures of the node's last acceptance that the part has nothing to do with.

        Raises:
            UsageError: the node has no such part or no earlier acceptance, or another part has changed as well.
        """
        run = self._last(snapshot.node)
        node = next(one for one in run["nodes"] if one["name"] == snapshot.node)
        now = describe(snapshot, node["platform"])
        subject = subject_of(self._part, now)
        others = other_changes(self._part, subject, node["about"], now)
        if others:
            raise UsageError(
                f"{snapshot.node}: {', '.join(others[:4])} changed since run {run['run']} as well: accept it whole"
            )
        for one in run["measurements"]:
            if one["node"] != snapshot.node or is_touched(self._part, subject, one["subject"]):
                continue
            measured = Subject("measurement", one["subject"])
            origin = Origin("run", file=str(one["conditions"].get(CARRIED) or run["run"]))
            conditions = {CARRIED: run["run"], **one["conditions"]}
            if one["unit"] in _FACTS:
                snapshot.put(measured, _FACTS[one["unit"]], Fact(float(one["value"]), origin))
                snapshot.put(measured, "result.conditions", Fact(conditions, origin))

    def _last(self, node: str) -> dict[str, Any]:
        if node not in self._runs:
            for kept in self._store.runs(kind="accept", node=node):
                run = self._store.load(kept.name)
                if any(one["node"] == node for one in run["measurements"]):
                    print(f"hwcheck: {node}: figures of run {kept.name} are carried over", file=sys.stderr)
                    self._runs[node] = {"run": kept.name, **run}
                    break
            else:
                raise UsageError(f"{node} has no earlier acceptance in the store: accept it whole")
        return self._runs[node]
