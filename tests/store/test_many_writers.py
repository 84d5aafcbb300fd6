"""Many that write at once: nothing is lost, nothing is there twice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from hwcheck.store import Store
from hwcheck.store.address import read_address
from tests.store.postgres import Server
from tests.store.runs import START, make_run, told
from tests.store.writers import run_of


def write(root: Path, url: str, count: int, runs: int, *extra: str) -> None:
    """Let processes write; all must succeed."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.store.writers", url, str(count), str(runs), *extra],
        cwd=root, check=False, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def assert_all_there(url: str, count: int, runs: int) -> None:
    """Compare each run with what was written."""
    store = Store.open(url)
    assert len(store.runs(limit=count * runs + 10)) == count * runs
    for writer in range(count):
        for number in range(runs):
            run = run_of(writer, number)
            kept = store.load(str(run["run"]))
            assert told(kept) == told(run)
            assert kept["nodes"] == run["nodes"]


def test_sqlite_with_several_processes(root: Path) -> None:
    """Eight processes, from the moment when there is no file yet."""
    write(root, "", 8, 6)
    assert_all_there("", 8, 6)


@pytest.mark.postgres
def test_postgresql_with_32_writers(root: Path, postgres: str) -> None:
    """From the empty database on, which one of them fills with tables."""
    write(root, postgres, 32, 2)
    assert_all_there(postgres, 32, 2)


@pytest.mark.postgres
def test_writers_wait_for_a_free_connection(root: Path, server: Server) -> None:
    """Eight writers, three connections."""
    url = server.database(connections=3)
    write(root, url, 8, 2)
    assert_all_there(url, 8, 2)


def test_an_older_schema_is_migrated_by_one_of_many(root: Path, url: str) -> None:
    """What was kept before is still there, and the step was done once."""
    old = make_run(START, {"gpu-1": {("xid.79", ""): "fail"}}, "old")
    store = Store.open(url)
    store.keep(old)
    write(root, url, 4, 1, "extra")
    with create_engine(read_address(url).url, poolclass=NullPool).connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM hwcheck_extra")).scalar() == 1
        assert connection.execute(text("SELECT version FROM hwcheck_schema")).scalars().all() == [2]
        assert connection.execute(text("SELECT count(*) FROM hwcheck_run")).scalar() == 5
