"""Paths on the command line: what is no file is refused, and nothing waits for ever."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hwcheck.errors import UsageError
from hwcheck.readers import read_paths


def test_a_device_is_refused() -> None:
    """/dev/zero has no end, and is no evidence."""
    with pytest.raises(UsageError, match="device"):
        list(read_paths(["/dev/zero"]))


def test_a_pipe_without_a_writer_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for ever for a named pipe."""
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr("hwcheck.readers.posted.WRITER_SECONDS", 0.05)
    with pytest.raises(UsageError, match="nobody has written"):
        list(read_paths([str(tmp_path / "pipe")]))
