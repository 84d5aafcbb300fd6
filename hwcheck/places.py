"""Where hwcheck keeps what it has to know tomorrow: one folder of the user who runs it."""

from __future__ import annotations

import os
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
