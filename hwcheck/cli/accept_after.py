"""Figures of an earlier acceptance that still count after a part was swapped: put beside those measured anew."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import Any

from hwcheck.baselines.partial import is_touched, other_changes, read_part, sources_for, subject_of
from hwcheck.baselines.references import is_number
from hwcheck.describe import describe
from hwcheck.errors import HwcheckError, UsageError
from hwcheck.facts import Fact, Origin, Snapshot, Subject
from hwcheck.store import Store

_FACTS = {"GB/s": "result.bandwidth", "Gb/s": "result.line_rate", "us": "result.latency"}
CARRIED = "carried_from"
"""Condition of a figure that an earlier run has measured: its name."""


class After:
    """
    What an acceptance after a swap leaves out, and takes over.

    Args:
        arguments: of the verb; ``after`` names the part.
        store: with earlier acceptances.

    Attributes:
        tests: sources of the load, or tests between nodes, that the part takes part in.

    Raises:
        UsageError: the part is none, or there is no store.
    """

    def __init__(self, arguments: argparse.Namespace, store: Store | None) -> None:
        self._part = read_part(arguments.after)
        if store is None:
            raise UsageError("--after goes on from an earlier acceptance, and there is no store that has one")
        self._store = store
        self._runs: dict[str, dict[str, Any]] = {}
        self.tests = sources_for(self._part)

    def why_not(self, name: str, now: Mapping[str, Any]) -> str:
        """
        Say why the figures of a node's last acceptance do not count any more; "" where they do.

        Args:
            name: of the node.
            now: what it is (:func:`hwcheck.describe.describe`).
        """
        try:
            run = self._last(name)
            before = next(one for one in run["nodes"] if one["name"] == name)["about"]
            others = other_changes(self._part, subject_of(self._part, now), before, now)
        except HwcheckError as error:
            return str(error)
        if others:
            return f"{', '.join(others[:4])} changed since run {run['run']} as well: accept it whole"
        return ""

    def carry(self, snapshot: Snapshot) -> str:
        """Add the figures of the node's last acceptance that the part has nothing to do with, or say why not."""
        try:
            run = self._last(snapshot.node)
            platform = next(one for one in run["nodes"] if one["name"] == snapshot.node)["platform"]
            now = describe(snapshot, platform)
            why = self.why_not(snapshot.node, now)
            subject = subject_of(self._part, now) if not why else ""
        except HwcheckError as error:
            return str(error)
        if not why:
            self._add(run, snapshot, subject)
        return why

    def _add(self, run: dict[str, Any], snapshot: Snapshot, subject: str) -> None:
        for one in run["measurements"]:
            if one["node"] != snapshot.node or is_touched(self._part, subject, one["subject"]):
                continue
            if one["unit"] in _FACTS and is_number(one["value"]):
                measured = Subject("measurement", one["subject"])
                origin = Origin("run", file=str(one["conditions"].get(CARRIED) or run["run"]))
                conditions = {CARRIED: run["run"], **one["conditions"]}
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
                raise UsageError("it has no earlier acceptance in the store: accept it whole")
        return self._runs[node]
