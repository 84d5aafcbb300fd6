"""Keep what was judged: nodes are folded as they stream by, and the run is kept when the last was judged."""

from __future__ import annotations

import datetime as dt
import getpass
import socket
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from hwcheck import __version__
from hwcheck.apply.run_folder import runs_home
from hwcheck.cli.applied import keep_applied
from hwcheck.cli.recording import new_name
from hwcheck.errors import StoreError
from hwcheck.findings import NodeVerdict
from hwcheck.places import state_home
from hwcheck.report import json_run
from hwcheck.store import Record, Store


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
            part = json_run.run_object([verdict], f"hwcheck {__version__}", self._profile, self._started)
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
        keep(self._store, self._record)


def keep(store: Store, run: Record | dict[str, Any]) -> None:
    """
    Keep a run, and what was applied before it; tell on standard error what is not as it should be.

    Raises:
        StoreError: the run is neither kept nor put aside.
    """
    try:
        store.keep(run)
        keep_applied(store, runs_home(state_home()))
    except StoreError as error:
        if not error.aside:
            raise
        print(f"hwcheck: {error}", file=sys.stderr)
    for note in store.notes:
        print(f"hwcheck: {note}", file=sys.stderr)


def who() -> str:
    """Say who runs this, and where."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as containers have them
        user = ""
    return f"{user}@{socket.gethostname()}"
