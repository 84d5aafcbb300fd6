"""Which database is meant: SQLite under the state folder, a file, or PostgreSQL by URL."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from hwcheck.errors import StoreError
from hwcheck.places import state_home

_POSTGRES = {"postgresql", "postgres", "postgresql+psycopg"}


@dataclass(frozen=True, slots=True)
class Address:
    """
    A database.

    Attributes:
        url: as SQLAlchemy wants it.
        path: its file; None for a server.
    """

    url: URL
    path: Path | None

    @property
    def label(self) -> str:
        """Name of it for people, without any password."""
        return str(self.path) if self.path is not None else self.url.render_as_string(hide_password=True)

    @property
    def key(self) -> str:
        """Name of a folder for what waits for this database."""
        text = self.label
        return f"{re.sub(r'[^A-Za-z0-9]+', '-', text)[-60:].strip('-')}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def read_address(text: str) -> Address:
    """
    Read what ``--store`` names.

    Args:
        text: "" for the user's own store; ``sqlite:///FILE`` or the path of a file; ``postgresql://HOST/DATABASE``.

    Raises:
        StoreError: it is none of these.
        MachineError: this user has no home.
    """
    if not text:
        return _file(state_home() / "store.sqlite")
    if "://" not in text:
        return _file(Path(text))
    try:
        url = make_url(text)
    except (ArgumentError, ValueError) as error:
        raise StoreError("the store's URL cannot be read: postgresql://USER@HOST/DATABASE or sqlite:///FILE") from error
    if url.drivername == "sqlite":
        if not url.database or url.database == ":memory:":
            raise StoreError(f"{text}: names no file; a relative one has three slashes, sqlite:///store.sqlite")
        return _file(Path(url.database))
    if url.drivername not in _POSTGRES:
        raise StoreError(f"{url.drivername}: a store is SQLite or PostgreSQL")
    if "connect_timeout" not in url.query:
        url = url.update_query_dict({"connect_timeout": "10"})
    return Address(url.set(drivername="postgresql+psycopg"), None)


def _file(path: Path) -> Address:
    path = path.expanduser().absolute()
    return Address(URL.create("sqlite", database=str(path)), path)
