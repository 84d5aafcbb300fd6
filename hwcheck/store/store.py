"""The store as the rest of hwcheck sees it: keep a run, ask for runs."""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from hwcheck.errors import MachineError, StoreError
from hwcheck.store import asking, over_time, unsent, writing
from hwcheck.store.address import Address, read_address
from hwcheck.store.database import Database
from hwcheck.store.record import Record
from hwcheck.store.rows import Kept, NodeState, Sample
from hwcheck.store.spells import Spell

WINDOW = 30 * 86400.0
"""Seconds that :meth:`Store.status` looks back."""


class Store:
    """
    Runs that are kept, in SQLite or PostgreSQL; nothing is opened before it is needed.

    Every method but :meth:`open` raises StoreError where the database cannot be used: unreachable, full, damaged, of
    another program, or of a newer hwcheck.

    Attributes:
        address: where it is.
        notes: what became, at the last :meth:`keep`, of runs that waited beside the store; sentences.
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        self.notes: list[str] = []
        self._database = Database(address)

    @classmethod
    def open(cls, url: str = "") -> Self:
        """
        Name a store.

        Args:
            url: "" for the user's own, ``$XDG_STATE_HOME/hwcheck/store.sqlite``; a path, ``sqlite:///FILE``, or
                ``postgresql://HOST/DATABASE``.

        Raises:
            StoreError: that is none, or its library is not installed.
            MachineError: this user has no home.
        """
        return cls(read_address(url))

    def keep(self, run: dict[str, Any] | Record, journals: Mapping[str, Any] | None = None) -> str:
        """
        Keep a run: all of it or nothing, and once only, however often it is given.

        Args:
            run: run JSON, or a record of it.
            journals: copies of the nodes' journals by node; JSON values.

        Returns:
            Its name.

        Raises:
            NameTakenError: another run of its name is kept.
            StoreError: it is not kept; ``aside`` is the file in which it waits for the next one that is.
        """
        given = writing.parcel(run if isinstance(run, Record) else Record.of(run), journals or {}, time.time())
        try:
            self._database.write(lambda connection: writing.write(connection, given))
        except writing.NameTakenError:
            raise
        except StoreError as error:
            raise _set_aside(given, self.address, error) from error
        taken, wrong = unsent.take_in(self.address, self._keep_file)
        self.notes = [f"{path.name}, which waited, is kept as well" for path in taken] + wrong
        return given.name

    def _keep_file(self, path: Path) -> None:
        data = json.loads(path.read_text(encoding="utf-8"))
        given = writing.parcel(Record.of(data), data.get("journals") or {}, time.time())
        self._database.write(lambda connection: writing.write(connection, given))

    def load(self, name: str) -> dict[str, Any]:
        """Return a run as run JSON; of what passed or was skipped only the name was kept."""
        return self._database.read(lambda connection: asking.load(connection, name))

    def journals(self, name: str) -> dict[str, Any]:
        """Return the copies of journals of a run, by node."""
        return self._database.read(lambda connection: asking.journals(connection, name))

    def runs(self, kind: str = "", node: str = "", limit: int = 50) -> list[Kept]:
        """Return runs, the newest first."""
        return self._database.read(lambda connection: asking.runs(connection, kind, node, limit))

    def oldest(self) -> float | None:
        """Return when the oldest run began, seconds since 1970; None where none is kept."""
        return self._database.read(asking.oldest)

    def history(self, node: str = "", check: str = "", since: float | None = None) -> list[Spell]:
        """
        Return what is or was not well, by node, with what changed before it.

        Args:
            node: "" for all.
            check: id, family or shell pattern; "" for all.
            since: seconds since 1970; runs before that are not looked at.
        """
        return self._database.read(lambda connection: over_time.history(connection, node, check, since or 0.0))

    def status(self) -> list[NodeState]:
        """Return how each node stands, by name."""
        now = dt.datetime.now(dt.UTC)
        since = now.timestamp() - WINDOW
        return self._database.read(lambda connection: over_time.standing(connection, since, now.date()))

    def measurements(self, name: str = "", node: str = "", cohort: str = "", limit: int = 10_000) -> list[Sample]:
        """Return measured values, the newest first."""
        return self._database.read(lambda connection: asking.measurements(connection, name, node, cohort, limit))

    def forget(self, before: float) -> int:
        """Remove runs that began before a time (seconds since 1970); returns how many."""
        count = self._database.write(lambda connection: writing.forget(connection, before), alone=True)
        self._database.shrink()
        return count


def _set_aside(given: writing.Parcel, address: Address, error: StoreError) -> StoreError:
    try:
        path = unsent.put_aside(given, address)
    except (OSError, MachineError) as second:
        return StoreError(f"{error}; nor can run {given.name} be kept aside: {second}")
    return StoreError(f"{error}; run {given.name} waits in {path}, and is kept with the next one", str(path))
