"""A run as a record: named, with who and when; kept in the store and, where asked for, in a file."""

from __future__ import annotations

import datetime as dt
import secrets
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hwcheck import __version__
from hwcheck.cli.planning import keep
from hwcheck.cli.rolling import holder
from hwcheck.errors import StoreError, UsageError
from hwcheck.findings import NodeVerdict
from hwcheck.report.json_run import dump_lines, run_object
from hwcheck.store import Store


def new_name(started: dt.datetime) -> str:
    """Return a name for a run that begins now; names sort by time."""
    return f"{started.astimezone(dt.UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(4)}"


def record_of(
    kind: str, name: str, verdicts: Iterable[NodeVerdict], profile: dict[str, str], started: dt.datetime, **more: Any
) -> dict[str, Any]:
    """
    Make the JSON of a run.

    Args:
        kind: ``baseline`` or ``accept``.
        name: of the run.
        verdicts: nodes in order.
        profile: ``name`` and ``hash``.
        started: when it began.
        more: ``stages`` and ``changes``, where there are any.
    """
    run = run_object(verdicts, f"hwcheck {__version__}", profile, started.isoformat(timespec="seconds"))
    ended = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    return {**run, "kind": kind, "run": name, "ended": ended, "who": holder(), **more}


def keep_run(run: dict[str, Any], store: Store | None, output: Path | None) -> bool:
    """
    Keep a run where that is wanted; says on standard error where it could not be.

    Returns:
        Whether it is kept, or nobody wanted it to be.
    """
    kept = True
    if store is not None:
        try:
            store.keep(run)
        except StoreError as error:
            print(f"hwcheck: {error}", file=sys.stderr)
            kept = False
        for note in store.notes:
            print(f"hwcheck: {note}", file=sys.stderr)
    if output is not None:
        try:
            keep(output, dump_lines(run) + "\n")
        except UsageError as error:
            print(f"hwcheck: {error}", file=sys.stderr)
            kept = False
    return kept
