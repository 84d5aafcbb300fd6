"""Runs of ``hwcheck apply`` for the store: what they changed, and the journals of what was there before."""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hwcheck.apply import run_folder as states
from hwcheck.apply.run_folder import RunFolder
from hwcheck.errors import HwcheckError
from hwcheck.report.json_run import SCHEMA
from hwcheck.store import Store

_STATUSES = ("changed", "right", "refused", "stale", "failed")
_MANY = 10_000


def keep_applied(store: Store, home: Path) -> None:
    """
    Keep what was applied from this machine since the last run was kept, and what has become of it since.

    So a history says what hwcheck wrote before something failed, whether or not a store was named then. What is older
    than all runs in the store has nothing to explain there, or was forgotten.

    Args:
        store: where to.
        home: folder of all runs of apply.

    Raises:
        StoreError: a run is not kept; see :meth:`hwcheck.store.Store.keep`.
    """
    first = time.strftime("%Y%m%d-%H%M%S", time.gmtime(store.oldest()))
    folders = {path.parent.name: path.stat().st_mtime for path in home.glob("*/run.json") if path.parent.name >= first}
    kept = {run.name: run.ended or 0.0 for run in store.runs("apply", limit=_MANY)} if folders else {}
    for name, changed in sorted(folders.items()):
        if name in kept and changed < kept[name] + 1.0:  # what is kept knows whole seconds
            continue
        try:
            run = RunFolder.load(home, name)
            record, journals = run_of(run, changed), dict(_journals(run))
        except (HwcheckError, KeyError, TypeError, AttributeError, ValueError, OSError):
            continue  # of another version, or damaged: rollback says so of it, when it is wanted
        store.keep(record, journals)


def run_of(run: RunFolder, ended: float) -> dict[str, Any]:
    """
    Return run JSON of what was applied: its changes, and no findings of its own.

    Args:
        run: on disk.
        ended: when it was last written, seconds since 1970.
    """
    plan = run.read("plan.json")
    bad = run.nodes(states.FAILED, states.QUARANTINED)
    return {
        "schema": SCHEMA, "tool": plan["tool"], "profile": plan["profile"], "started": run.record["begun"],
        "ended": dt.datetime.fromtimestamp(ended, dt.UTC).isoformat(timespec="seconds"), "kind": "apply",
        "run": run.name, "who": run.record["holder"], "verdict": "fail" if bad else "pass", "nodes": [],
        "findings": [], "incidents": [], "measurements": [], "changes": changes_of(run),
    }  # fmt: skip


def changes_of(run: RunFolder) -> list[dict[str, Any]]:
    """Return what was changed on the nodes, as the JSON of a run has it."""
    return [
        {
            "node": node, "check": one["id"], "subject": one["subject"], "mechanism": one["mechanism"],
            "key": one["key"], "from": (one.get("before") or {}).get("running"), "to": one["value"],
            "status": one["status"], "why": one["why"],
        }
        for node, rows in run.record.get("results", {}).items()
        for one in rows
        if one["status"] in _STATUSES
    ]  # fmt: skip


def _journals(run: RunFolder) -> Iterator[tuple[str, Any]]:
    for path in sorted((run.path / "journal").glob("[!.]*.json")):
        yield path.stem, json.loads(path.read_text(encoding="utf-8"))
