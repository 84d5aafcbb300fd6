"""A file that is there whole or not at all: what is printed goes into another one, which takes its place at the end."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def printed_to(path: Path | None) -> Iterator[None]:
    """
    Send standard output to a file; who reads it meanwhile sees the old one.

    Args:
        path: of the file; None leaves standard output alone. What is no plain file (``/dev/null``) is written into,
            never replaced.

    Raises:
        OSError: it cannot be written; the old one is still there.
    """
    if path is None:
        yield
        return
    place = path.resolve()  # a link stays one
    if place.exists() and not place.is_file():
        with place.open("w", encoding="utf-8") as file, contextlib.redirect_stdout(file):
            yield
        return
    number, name = tempfile.mkstemp(prefix=".hwcheck-", suffix=".begun", dir=place.parent)
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            with contextlib.redirect_stdout(file):
                yield
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(_mode(place))
        Path(name).replace(place)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _mode(place: Path) -> int:
    """Return the mode of the file that is replaced, or that of a new one."""
    if place.exists():
        return place.stat().st_mode & 0o777
    mask = os.umask(0o022)
    os.umask(mask)
    return 0o666 & ~mask
