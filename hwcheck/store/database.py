"""
One database, with many that write to it: transactions, locks, what is tried again, and errors in words.

SQLite: write-ahead log, so that readers and one writer do not wait for each other; a writer takes its lock at the
beginning, so that it never fails at the end. PostgreSQL: writers share a lock that forgetting and migrating hold alone.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from hwcheck.errors import StoreError
from hwcheck.store.address import Address
from hwcheck.store.migrations import is_current, migrate

PATIENCE = 60.0
"""Seconds for which what others hold is tried again."""
_BUSY = 5.0
"""Seconds that SQLite itself waits for a lock."""
_LOCK = 0x68776368
"""Number of the advisory lock in PostgreSQL, which all programs of a database share: "hwch"."""
_PASSING_STATES = {"40001", "40P01", "53300", "55P03", "57P03"}
"""serialization_failure, deadlock_detected, too_many_connections, lock_not_available, cannot_connect_now."""
_PASSING_WORDS = (
    "database is locked", "database table is locked", "database schema is locked", "database schema has changed",
    "too many clients", "too many connections", "remaining connection slots", "the database system is starting up",
)  # fmt: skip
"""For errors without a state: those of SQLite, and of a connection that PostgreSQL refuses."""

Answer = TypeVar("Answer")
Work = Callable[[Connection], Answer]


class Database:
    """
    A database that is opened when it is first used.

    Args:
        address: which.

    Raises:
        StoreError: the library for it is not installed.
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        try:
            self._engine = _engine(address)
        except ImportError as error:
            raise StoreError(
                f"PostgreSQL needs the library psycopg (pip install 'hwcheck[postgres]'): {error}"
            ) from error
        self._is_ready = False

    def read(self, work: Work[Answer]) -> Answer:
        """
        Ask in one transaction.

        Raises:
            StoreError: the database cannot be used.
        """
        self._ready()
        return self._try(self._engine, work)

    def write(self, work: Work[Answer], *, alone: bool = False) -> Answer:
        """
        Write in one transaction: all of it or nothing.

        Args:
            work: is called again from the beginning where another writer was in the way.
            alone: no other writer is at work meanwhile.

        Raises:
            StoreError: the database cannot be used; nothing was written.
        """
        self._ready()
        return self._try(self._writing(), lambda connection: _locked(connection, work, alone=alone))

    def shrink(self) -> None:
        """Give back the room of what was removed; PostgreSQL does so by itself."""
        if self.address.path is not None:
            self._try(self._writing(), _vacuum)

    def _ready(self) -> None:
        """Make or migrate the tables, unless they are as they should be."""
        if self._is_ready:
            return
        self._make_file()
        if not self._try(self._engine, is_current):
            self._try(self._writing(), lambda connection: _locked(connection, migrate, alone=True))
        self._is_ready = True

    def _writing(self) -> Engine:
        return self._engine.execution_options(hwcheck_writes=True)

    def _make_file(self) -> None:
        """Make the file of SQLite for its owner alone: what is wrong with nodes is nobody else's business."""
        path = self.address.path
        if path is None or path.exists():
            return
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
        except OSError as error:
            raise StoreError(f"the store {path} cannot be made: {error.strerror}") from error

    def _try(self, engine: Engine, work: Work[Answer]) -> Answer:
        """Do it in a transaction; wait and begin anew while others are in the way."""
        until, pause = time.monotonic() + PATIENCE, 0.01
        while True:
            try:
                with engine.begin() as connection:
                    return work(connection)
            except StoreError as error:
                raise type(error)(f"the store {self.address.label}: {error}") from error
            except SQLAlchemyError as error:
                if not _is_passing(error) or time.monotonic() > until:
                    raise StoreError(f"the store {self.address.label} cannot be used: {_words(error)}") from error
            time.sleep(pause * (0.5 + random.random()))  # noqa: S311 - no secret: two that wait should not meet again
            pause = min(pause * 2, 1.0)


def _engine(address: Address) -> Engine:
    if address.path is None:
        return create_engine(address.url, poolclass=NullPool)
    engine = create_engine(address.url, poolclass=NullPool, connect_args={"timeout": _BUSY})
    event.listen(engine, "connect", _set_up)
    event.listen(engine, "begin", _begin)
    return engine


def _set_up(connection: Any, _: Any) -> None:
    """
    Prepare a connection to SQLite.

    What needs a lock is only set where it is not yet so, or every reader would wait for the writer. FULL so that what
    was said to be kept survives a power cut, since what waited beside the store is removed then. Where the file system
    has no shared memory (some network ones), the log stays as it is, and SQLite works without.
    """
    connection.isolation_level = None  # transactions begin where we say, see _begin
    if not connection.execute("PRAGMA page_count").fetchone()[0]:
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")  # counts only until the first table is made
    if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        connection.execute("PRAGMA journal_mode=WAL").fetchall()
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA foreign_keys=ON")


def _vacuum(connection: Connection) -> None:
    cursor = connection.connection.cursor()
    cursor.execute("PRAGMA incremental_vacuum")
    cursor.fetchall()  # a page a step; SQLAlchemy, which sees no columns, would take the first and stop


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("hwcheck_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _locked(connection: Connection, work: Work[Answer], *, alone: bool) -> Answer:
    if connection.dialect.name == "postgresql":
        name = "pg_advisory_xact_lock" if alone else "pg_advisory_xact_lock_shared"
        connection.execute(text(f"SELECT {name}(:lock)"), {"lock": _LOCK})
    return work(connection)


def _is_passing(error: SQLAlchemyError) -> bool:
    """Tell whether it may work when tried again; a connection lost on the way is, since nothing is kept twice."""
    if not isinstance(error, DBAPIError):
        return False
    state = getattr(error.orig, "sqlstate", None)
    return (
        error.connection_invalidated
        or state in _PASSING_STATES
        or (state is None and any(words in str(error.orig) for words in _PASSING_WORDS))
    )


def _words(error: SQLAlchemyError) -> str:
    """Return what the database says, without the statement and its values."""
    said = str(error.orig if isinstance(error, DBAPIError) else error).strip()
    return said.splitlines()[0] if said else type(error).__name__
