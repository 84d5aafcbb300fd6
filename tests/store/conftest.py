"""A place for state, and databases of both kinds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.postgres import Server, folder_of_programs


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of state, empty."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("HWCHECK_STORE", raising=False)
    return tmp_path / "state" / "hwcheck"


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """Run a PostgreSQL for the session; skips where none is installed."""
    programs = folder_of_programs()
    if programs is None:
        pytest.skip("no PostgreSQL server, or no psycopg (./run setup --system)")
    server = Server(programs)
    yield server
    server.stop()


@pytest.fixture
def postgres(server: Server) -> str:
    """URL of an empty database of PostgreSQL."""
    return server.database()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest) -> str:
    """An empty store of each kind."""
    return "" if request.param == "sqlite" else str(request.getfixturevalue("postgres"))
