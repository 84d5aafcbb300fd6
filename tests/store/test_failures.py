"""A store that fails: a clear sentence, no half of a run, and the run waits beside it for the next one that is kept."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from hwcheck.errors import StoreError
from hwcheck.store import Record, Store, database
from hwcheck.store.address import read_address
from tests.store.runs import DOWN, HOUR, PASSED, START, XID, make_run, told

RUN = make_run(START, {"gpu-1": {XID: "fail", PASSED: "pass"}}, "one")
LATER = make_run(START + HOUR, {"gpu-1": {XID: "pass", PASSED: "pass"}}, "two")

KILLED = """
import sys, time
from hwcheck.store import Store, writing
def slow(rows, size):
    if not rows or "fold" not in rows[0]:  # nodes are written, findings are not
        print("half", flush=True)
        time.sleep(60)
    return [rows]
writing.batches = slow
from tests.store.test_failures import LATER
Store.open(sys.argv[1]).keep(LATER)
"""
FULL = """
import resource, sys
from hwcheck.errors import StoreError
from hwcheck.store import Store
from tests.store.runs import START, XID, make_run
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
noise = [{"node": "gpu-1", "name": "os.jitter", "subject": str(i), "value": i, "unit": "us", "conditions": {"i": i}}
         for i in range(20000)]
try:
    Store.open().keep(make_run(START, {"gpu-1": {XID: "fail"}}, "big", measurements=noise))
except StoreError as error:
    print(error)
"""


def unsent(state: Path) -> list[Path]:
    """Return the files that wait."""
    return sorted((state / "unsent").rglob("*.json*"))


def statement(url: str, words: str) -> None:
    """Change a database behind the store's back."""
    with create_engine(read_address(url).url, poolclass=NullPool).begin() as connection:
        connection.execute(text(words))


def test_a_newer_schema_is_refused(url: str, state: Path) -> None:
    """Neither read nor written; the run waits, and the newer hwcheck takes it in."""
    store = Store.open(url)
    store.keep(RUN)
    statement(url, "UPDATE hwcheck_schema SET version = 99")
    with pytest.raises(StoreError, match="its schema is 99, and this hwcheck knows 1"):
        Store.open(url).runs()
    with pytest.raises(StoreError, match="its schema is 99") as caught:
        Store.open(url).keep(LATER)
    assert [Path(caught.value.aside)] == unsent(state)
    statement(url, "UPDATE hwcheck_schema SET version = 1")
    newest = Store.open(url)
    newest.keep(make_run(START + 2 * HOUR, {"gpu-1": {XID: "pass"}}, "three"))
    assert [run.name for run in newest.runs()] == ["three", "two", "one"]
    assert unsent(state) == []
    assert "which waited, is kept as well" in newest.notes[0]


def test_a_store_that_is_not_reached_keeps_runs_aside(state: Path, url: str) -> None:
    """For its owner alone; and only the same store takes them in."""
    lost = Store.open("postgresql://ops:secret@/hwcheck?host=/nonexistent")
    for run in (RUN, LATER):
        with pytest.raises(StoreError, match="cannot be used") as caught:
            lost.keep(run)
        assert "secret" not in str(caught.value)
        assert caught.value.aside in str(caught.value)
    assert [stat.S_IMODE(path.stat().st_mode) for path in unsent(state)] == [0o600, 0o600]
    other = Store.open(url)
    other.keep(make_run(START, {"gpu-9": {XID: "pass"}}, "other"))
    assert len(unsent(state)) == 2
    for path in unsent(state):  # as `hwcheck store import` does
        other.keep(Record.of(json.loads(path.read_text(encoding="utf-8"))))
    assert sorted(run.name for run in other.runs()) == ["one", "other", "two"]
    assert told(other.load("one")) == told(RUN)


def test_what_waits_is_taken_in_or_put_out_of_the_way(state: Path) -> None:
    """A damaged file neither stops the others nor is tried for ever."""
    store = Store.open()
    with mock.patch.object(database.Database, "write", side_effect=StoreError("away")):
        for run in (RUN, LATER):
            with pytest.raises(StoreError):
                store.keep(run)
    first, second = unsent(state)
    first.write_text(first.read_text(encoding="utf-8")[:100], encoding="utf-8")
    store.keep(make_run(START, {"gpu-1": {}}, "three"))
    assert sorted(run.name for run in store.runs()) == ["three", "two"]
    assert [path.name for path in unsent(state)] == [f"{first.name}.damaged"]
    assert len(store.notes) == 2
    assert second.name in store.notes[0]
    store.keep(make_run(START, {"gpu-1": {}}, "four"))
    assert store.notes == []


def test_the_beginning_of_a_file_is_garbage(state: Path) -> None:
    """It is left as it is, and named."""
    path = state / "store.sqlite"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"garbage, " * 1000)
    with pytest.raises(StoreError, match=r"store\.sqlite cannot be used: file is not a database"):
        Store.open().runs()
    assert path.read_bytes() == b"garbage, " * 1000


def test_the_middle_of_a_file_is_garbage(state: Path) -> None:
    """No question is answered by what is left."""
    store = Store.open()
    for number in range(4):
        store.keep(make_run(START + number, {f"gpu-{i}": {XID: "fail", DOWN: "warn"} for i in range(50)}))
    path = state / "store.sqlite"
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(size - 8192))
    with pytest.raises(StoreError, match=r"store\.sqlite"):
        store.status()
    with pytest.raises(StoreError, match=r"waits in"):
        store.keep(RUN)


def test_a_content_that_is_damaged_is_told(url: str) -> None:
    """One of its texts is gone, or is no text: the store is damaged, and says so."""
    store = Store.open(url)
    store.keep(RUN)
    statement(url, "UPDATE hwcheck_content SET body = 'x'")
    with pytest.raises(StoreError, match=r"it is damaged: content [0-9a-f]{32}: "):
        store.load("one")
    statement(url, "DELETE FROM hwcheck_content")
    with pytest.raises(StoreError, match=r"it is damaged: content [0-9a-f]{32} is missing"):
        store.load("one")


def test_a_file_of_another_program_is_left_alone(tmp_path: Path) -> None:
    """Nobody meant to name their bookmarks as a store."""
    path = tmp_path / "places.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.close()
    with pytest.raises(StoreError, match="it is no store of hwcheck: it has the tables bookmarks"):
        Store.open(str(path)).keep(RUN)
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("bookmarks",)]
    connection.close()


@pytest.mark.postgres
def test_a_database_may_be_shared(postgres: str) -> None:
    """A server's database with the tables of others takes ours too, each with our prefix."""
    statement(postgres, "CREATE TABLE bookmarks (url TEXT)")
    store = Store.open(postgres)
    store.keep(RUN)
    assert [run.name for run in store.runs()] == ["one"]


@pytest.mark.parametrize("limit", [64 << 10, 512 << 10, 4 << 20])
def test_a_full_disk_records_no_half(limit: int, root: Path, state: Path) -> None:
    """Files that may not grow: what was kept is whole, what was not is told, and waits where it can."""
    store = Store.open()
    store.keep(RUN)
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(limit)], cwd=root, check=True, capture_output=True, text=True, timeout=120
    )
    assert "store.sqlite" in done.stdout
    assert done.stdout.endswith("kept with the next one\n") == bool(unsent(state))
    assert [run.name for run in store.runs()] == ["one"]
    assert told(store.load("one")) == told(RUN)
    store.keep(LATER)
    assert {"one", "two"} <= {run.name for run in store.runs()}
    assert unsent(state) == []


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB; skips without root."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", place], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("cannot mount a tmpfs")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def test_a_full_file_system_is_told(full_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the store nor the file beside it has room: the error says both, and what was kept is whole."""
    monkeypatch.setenv("XDG_STATE_HOME", str(full_disk))
    store = Store.open()
    store.keep(RUN)
    (full_disk / "ballast").write_bytes(b"\0" * (shutil.disk_usage(full_disk).free - 4096))
    big = make_run(START, {f"gpu-{i}": {(f"xid.{i}", str(i)): "fail"} for i in range(2000)}, "big")
    with pytest.raises(StoreError, match=r"cannot be used: .*nor can run big be kept aside") as caught:
        store.keep(big)
    assert caught.value.aside == ""
    (full_disk / "ballast").unlink()
    assert [run.name for run in store.runs()] == ["one"]
    assert told(store.load("one")) == told(RUN)


def test_killed_in_the_middle_of_keeping(url: str, root: Path) -> None:
    """Nothing of that run is there, and the next one is kept."""
    store = Store.open(url)
    store.keep(RUN)
    with subprocess.Popen([sys.executable, "-c", KILLED, url], cwd=root, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "half\n"
        writer.send_signal(signal.SIGKILL)
    assert [run.name for run in store.runs()] == ["one"]
    assert [spell.ended for spell in store.history()] == [None]
    store.keep(LATER)
    assert told(store.load("two")) == told(LATER)


def test_one_who_holds_the_lock_is_waited_for(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With patience, and then with a word about it; reading goes on meanwhile."""
    store = Store.open()
    store.keep(RUN)
    monkeypatch.setattr(database, "_BUSY", 0.05)
    monkeypatch.setattr(database, "PATIENCE", 0.3)
    holder = sqlite3.connect(state / "store.sqlite", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    began = time.monotonic()
    with pytest.raises(StoreError, match="cannot be used: database is locked"):
        Store.open().keep(LATER)
    assert time.monotonic() - began >= 0.3
    assert [run.name for run in Store.open().runs()] == ["one"]
    holder.close()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("mysql://host/db", "mysql: a store is SQLite or PostgreSQL"),
        ("sqlite://", "names no file"),
        ("postgresql://host:port/db", "cannot be read"),
        ("/dev/null/store.sqlite", "cannot be made"),
    ],
)
def test_what_names_no_store_is_told(url: str, words: str) -> None:
    """In one sentence."""
    with pytest.raises(StoreError, match=words):
        Store.open(url).runs()


def test_without_its_library_postgresql_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """And how to get it."""
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreError, match=r"hwcheck\[postgres\]"):
        Store.open("postgresql://host/db")


def test_the_file_is_for_its_owner_alone(state: Path) -> None:
    """What is wrong with nodes is nobody else's business."""
    Store.open().keep(RUN)
    assert {stat.S_IMODE(path.stat().st_mode) for path in state.iterdir()} == {0o600}
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
