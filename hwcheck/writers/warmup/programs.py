"""The programs that warm a path, and that none of them is left behind, whatever happens to its end or to ours."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
import time
from typing import Any

METHODS = {"rping": "rping", "send_lat": "ib_send_lat"}
"""Method that takes both ends → its program."""
RPING_MESSAGES = 10
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PR_SET_PDEATHSIG = 1


def path_of(program: str) -> str | None:
    """Return where a program is on this node; None when it is not installed."""
    return shutil.which(program, path=os.environ.get("PATH", "") + os.pathsep + _PATH)


def words(method: str, request: dict[str, Any], device: str, port: int, address: str, *, serves: bool) -> list[str]:
    """
    Return the command line of one end; both ends have the same options, as perftest demands.

    Args:
        method: of :data:`METHODS`.
        request: ``iterations``, ``gid_index``.
        device: RDMA device; "" for the program's own choice.
        port: where the ends find each other.
        address: of the server.
        serves: whether it is the server's.
    """
    if method == "rping":
        side = ["-s"] if serves else ["-c"]
        return ["rping", *side, "-a", address, "-p", str(port), "-C", str(RPING_MESSAGES)]
    line = ["ib_send_lat", "-n", str(request["iterations"]), "-U", "-F", "-p", str(port)]
    line += ["-d", device] if device else []
    line += ["-x", str(request["gid_index"])] if request.get("gid_index") is not None else []
    return line if serves else [*line, address]


class Program:
    """
    A program that has been started; leaving the ``with`` block ends it.

    It runs in a process group of its own and ends with this process, so a port never stays taken.
    """

    def __init__(self, line: list[str]) -> None:
        self._line = [path_of(line[0]) or line[0], *line[1:]]
        self._out = tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__; a pipe could fill up

    def __enter__(self) -> Program:  # noqa: PYI034 - Python 3.9 has no Self
        parent = os.getpid()
        self._process = subprocess.Popen(  # noqa: S603 - fixed words and addresses that were checked
            self._line, stdin=subprocess.DEVNULL, stdout=self._out, stderr=subprocess.STDOUT, start_new_session=True,
            preexec_fn=lambda: _die_with(parent),  # noqa: PLW1509 - this process has one thread
            env={**os.environ, "LC_ALL": "C"},
        )  # fmt: skip
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self._out.close()

    def wait(self, until: float) -> int | None:
        """Return how it ended; None when it has not by then (:func:`time.monotonic`)."""
        try:
            return self._process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            return None

    def end(self) -> None:
        """End it and what it has started."""
        for signal_ in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal_)
            if self.wait(time.monotonic() + 1.0) is not None:
                break

    def said(self) -> str:
        """Return what it has printed, at most 256 KiB."""
        self._out.seek(0)
        return self._out.read(1 << 18).decode("utf-8", "replace")


def _die_with(parent: int) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def last_line(text: str) -> str:
    """Return the last line that says something, for a message."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "".join(char for char in (lines[-1] if lines else "said nothing") if char.isprintable())[:200]
