"""
A run as a record: named, with who and when; kept in the store and, where asked for, in a file.

A check of many nodes is folded as they stream by (:class:`Recorder`); what measures has all its nodes in hand.
"""

from __future__ import annotations

import datetime as dt
import getpass
import secrets
import socket
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from hwcheck import __version__
from hwcheck.apply.run_folder import runs_home
from hwcheck.cli.applied import keep_applied
from hwcheck.errors import StoreError
from hwcheck.findings import NodeVerdict
from hwcheck.places import state_home, write_whole
from hwcheck.report.json_run import dump_lines, run_object
from hwcheck.store import Record, Store


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
    return {**run, "kind": kind, "run": name, "ended": ended, "who": who(), **more}


def keep_run(run: dict[str, Any], store: Store | None, output: Path | None) -> bool:
    """
    Keep a run where that is wanted; says on standard error where it could not be.

    Returns:
        Whether it is kept, or nobody wanted it to be.
    """
    kept = True
    if store is not None:
        try:
            kept = keep_in(store, run)
        except StoreError as error:
            print(f"hwcheck: {error}", file=sys.stderr)
            kept = False
    if output is not None:
        try:
            write_whole(output, (dump_lines(run) + "\n").encode())
        except OSError as error:
            print(f"hwcheck: {output}: {error.strerror or error}", file=sys.stderr)
            kept = False
    return kept


class Recorder:
    """
    Records one run.

    Args:
        url: the store, see :meth:`hwcheck.store.Store.open`.
        kind: what the run is.
        profile: ``name`` and ``hash``.
        started: when it began.

    Raises:
        StoreError: the URL names no store; before anything is read.
    """

    def __init__(self, url: str, kind: str, profile: dict[str, str], started: dt.datetime) -> None:
        self._store = Store.open(url)
        self._kind, self._profile = kind, profile
        self._started = started.isoformat(timespec="seconds")
        self._name = new_name(started)
        self._record: Record | None = None

    def see(self, verdicts: Iterable[NodeVerdict]) -> Iterator[NodeVerdict]:
        """Pass verdicts on, and fold them."""
        for verdict in verdicts:
            part = run_object([verdict], f"hwcheck {__version__}", self._profile, self._started)
            if self._record is None:
                self._record = Record({**part, "kind": self._kind, "run": self._name, "who": who()})
            else:
                self._record.add(part)
            yield verdict

    def keep(self) -> None:
        """
        Keep the run; where the store fails and the run waits beside it, that is only told: the verdict stands.

        Raises:
            StoreError: the run is lost.
        """
        if self._record is None:
            return
        self._record.run["ended"] = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        keep_in(self._store, self._record)


def keep_in(store: Store, run: Record | dict[str, Any]) -> bool:
    """
    Keep a run, and what was applied before it; tell on standard error what is not as it should be.

    Returns:
        Whether it is kept; else it waits beside the store.

    Raises:
        StoreError: the run is neither kept nor put aside.
    """
    kept = True
    try:
        store.keep(run)
        keep_applied(store, runs_home(state_home()))
    except StoreError as error:
        if not error.aside:
            raise
        print(f"hwcheck: {error}", file=sys.stderr)
        kept = False
    for note in store.notes:
        print(f"hwcheck: {note}", file=sys.stderr)
    return kept


def who() -> str:
    """Say who runs this, and where."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as containers have them
        user = ""
    return f"{user}@{socket.gethostname()}"
