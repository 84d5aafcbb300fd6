"""What this machine cannot do (a full disk, a folder that may not be written) is a sentence, and never a verdict."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

from hwcheck.errors import MachineError


@contextlib.contextmanager
def told(what: str) -> Iterator[None]:
    """
    Turn an error of the system into one that is told; a traceback would end with 1, which means that a node fails.

    Args:
        what: was being read or written, for an error that names no file.

    Raises:
        MachineError: in place of the error; not for a reader that is gone, which is none.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise MachineError(f"{error.filename or what}: {error.strerror or error}") from error


@contextlib.contextmanager
def printing() -> Iterator[None]:
    """
    As :func:`told`, for what is printed while it is made.

    Raises:
        MachineError: standard output takes no more.
    """
    try:
        with told("standard output"):
            yield
    except MachineError:
        with contextlib.suppress(OSError, ValueError):  # else the interpreter's last flush tells it once more
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise
