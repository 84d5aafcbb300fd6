"""Where hwcheck keeps what it has to know tomorrow: one folder of the user who runs it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hwcheck.errors import MachineError


def state_home() -> Path:
    """
    Return the folder of our state, ``$XDG_STATE_HOME/hwcheck``.

    Raises:
        MachineError: this user has no home.
    """
    home = os.environ.get("XDG_STATE_HOME", "")
    try:
        return (Path(home) if home.startswith("/") else Path.home() / ".local" / "state") / "hwcheck"
    except RuntimeError as error:
        raise MachineError("this user has no home folder: set HOME or XDG_STATE_HOME") from error


def write_whole(place: Path, data: bytes, mode: int = 0o600, *, sync: bool = True) -> None:
    """
    Replace a file, whole or not at all: beside its place first, on the disk, then moved there.

    Args:
        place: of the file; its folder is there.
        data: all of it.
        mode: of the file; for its owner alone where nothing else is asked for.
        sync: wait until the disk has it; not for what is written for each of many nodes and can be lost.

    Raises:
        OSError: it cannot be written; the old one, if any, is still there.
    """
    descriptor, begun = tempfile.mkstemp(prefix=".begun-", dir=place.parent)  # 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(descriptor, mode)
            if sync:
                os.fsync(descriptor)
        Path(begun).replace(place)
    except BaseException:
        Path(begun).unlink(missing_ok=True)
        raise
