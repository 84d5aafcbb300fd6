"""Between two boots of a node: a child of the keeper makes the node's files those of the next one."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

from hwcheck.lab import nodes
from hwcheck.lab.host.node import BOOTING

_DARK = 1.0  # seconds that a reboot takes at least: nobody listens meanwhile


def boot_files(folder: Path) -> None:
    """Be the firmware and the loader of a node. Never returns."""
    status = 1
    try:
        close_all({0, 1, 2})
        begun = time.monotonic()
        nodes.reboot(nodes.load(folder.parent, folder.name), user_space=False)
        (folder / BOOTING).touch()
        time.sleep(max(0.0, _DARK - (time.monotonic() - begun)))
        status = 0
    finally:
        os._exit(status)


def close_all(kept: set[int]) -> None:
    """Close what is the keeper's in a child of it."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for fd in [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]:
        if fd not in kept:
            with contextlib.suppress(OSError):  # the one that listed them
                os.close(fd)
