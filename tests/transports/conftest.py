"""Nothing may be left: no process, thread, descriptor or file of ours after any of these tests."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hwcheck.transports.cancel import Cancel


def descriptors() -> dict[str, str]:
    """Return what this process holds open."""
    found = {}
    for name in list(Path("/proc/self/fd").iterdir()):
        try:
            found[name.name] = str(name.readlink())
        except OSError:
            continue
    return found


def children() -> set[str]:
    """Return the pids of our children, zombies included."""
    return set(Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split())


@pytest.fixture(autouse=True)
def nothing_left(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Compare children, threads and descriptors before and after; and keep cache, state and agent of the user out."""
    home = tmp_path_factory.mktemp("home")
    for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"):
        (home / name).mkdir(mode=0o700)
        monkeypatch.setenv(name, str(home / name))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    before = (children(), set(threading.enumerate()), descriptors())
    yield
    for _ in range(60):
        now = (children(), set(threading.enumerate()), descriptors())
        if now[0] <= before[0] and now[1] <= before[1] and len(now[2]) <= len(before[2]):
            break
        time.sleep(0.05)
    assert now[0] <= before[0], "a process is left"
    assert now[1] <= before[1], "a thread is left"
    assert len(now[2]) <= len(before[2]), f"left open: {sorted(set(now[2].values()) - set(before[2].values()))}"


@pytest.fixture
def cancel() -> Cancel:
    """Return what nobody cancels."""
    return Cancel()
