"""Files that can be made again, under ``$XDG_CACHE_HOME/hwcheck``: ours alone, whole or not there."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path

KEPT = 20
"""Files of one prefix; the oldest go."""


def load(name: str) -> bytes | None:
    """Return what was kept under a name; None when there is nothing, or when somebody else could have written it."""
    try:
        fd = os.open(_folder() / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(fd, "rb") as file:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & 0o022:
            return None
        return file.read()


def keep(name: str, data: bytes) -> None:
    """Keep data under a name; a cache that cannot be written is no error."""
    folder = _folder()
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd, path = tempfile.mkstemp(dir=folder, prefix=".")  # 0600
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
            Path(path).replace(folder / name)
        except OSError:
            Path(path).unlink(missing_ok=True)
            raise
        prefix = name.partition("-")[0]
        old = sorted(folder.glob(f"{prefix}-*"), key=lambda file: file.stat().st_mtime)[:-KEPT]
        for path_of_old in old:
            path_of_old.unlink()


def _folder() -> Path:
    home = os.environ.get("XDG_CACHE_HOME", "")
    try:
        return (Path(home) if home.startswith("/") else Path.home() / ".cache") / "hwcheck"
    except RuntimeError:  # a user without a home: nothing is kept
        return Path(os.devnull, "hwcheck")
