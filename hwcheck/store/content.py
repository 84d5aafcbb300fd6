"""Texts that repeat, each kept once: packed JSON under the hash of what it says."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Table, delete, select, union
from sqlalchemy.dialects import postgresql, sqlite

from hwcheck.errors import StoreError
from hwcheck.store.record import canonical
from hwcheck.store.tables import CONTENT, CONTENTS

BATCH = 500
"""Values in one statement: SQLite takes no more than 32766 in older builds 999."""


class Contents:
    """Collects contents of a run, to be written in one go."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def hash(self, value: Any) -> str:
        """Take a JSON value; return what names it."""
        text = canonical(value)
        name = hashlib.sha256(text.encode()).hexdigest()[:32]
        self._texts[name] = text
        return name

    def write(self, connection: Connection) -> None:
        """
        Write what is not there yet.

        In the order of the names: two writers that share some meet in the same order, and neither waits for the other
        in a circle.
        """
        names = sorted(self._texts)
        for some in batches(names):
            there = set(connection.execute(select(CONTENT.c.hash).where(CONTENT.c.hash.in_(some))).scalars())
            new = [name for name in some if name not in there]
            if new:
                rows = [{"hash": name, "body": zlib.compress(self._texts[name].encode(), 6)} for name in new]
                connection.execute(unless_there(connection, CONTENT), rows)


class Library:
    """
    Reads contents, and keeps the last ones at hand.

    Args:
        connection: on which a transaction is open.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.get = lru_cache(maxsize=4096)(self._get)

    def _get(self, name: str) -> Any:
        body = self._connection.execute(select(CONTENT.c.body).where(CONTENT.c.hash == name)).scalar()
        if body is None:
            raise StoreError(f"it is damaged: content {name} is missing")
        return _unpacked(name, body)

    def many(self, names: Collection[str]) -> dict[str, Any]:
        """
        Read contents together.

        Raises:
            StoreError: one is missing or damaged.
        """
        found: dict[str, Any] = {}
        for some in batches(sorted(set(names))):
            query = select(CONTENT.c.hash, CONTENT.c.body).where(CONTENT.c.hash.in_(some))
            found.update((name, _unpacked(name, body)) for name, body in self._connection.execute(query))
        lost = set(names) - set(found)
        if lost:
            raise StoreError(f"it is damaged: content {min(lost)} is missing")
        return found


def _unpacked(name: str, body: bytes) -> Any:
    try:
        return json.loads(zlib.decompress(body))
    except (zlib.error, ValueError, TypeError) as error:
        raise StoreError(f"it is damaged: content {name}: {error}") from error


def remove_unused(connection: Connection) -> None:
    """Remove what nothing names any more; the caller sees to it that nobody writes meanwhile."""
    used = union(*(select(column) for column in CONTENTS)).subquery()
    connection.execute(delete(CONTENT).where(CONTENT.c.hash.not_in(select(used))))


def unless_there(connection: Connection, table: Table) -> postgresql.Insert | sqlite.Insert:
    """Return an INSERT that leaves alone what is there already: both databases know it, each under its own name."""
    if connection.dialect.name == "postgresql":
        return postgresql.insert(table).on_conflict_do_nothing()
    return sqlite.insert(table).on_conflict_do_nothing()


def batches(values: Sequence[Any], size: int = BATCH) -> Iterator[Sequence[Any]]:
    """Cut a sequence into pieces."""
    for start in range(0, len(values), size):
        yield values[start : start + size]
