"""
Taking a node out of work before it is changed, and putting it back: Slurm, or any command of the site.

A node that somebody else has drained is worked on and stays drained: only our own drains are undone.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import tempfile
import time
from typing import IO, Protocol

from hwcheck.apply.words import plain
from hwcheck.errors import UsageError

_PAUSE = 5.0
_SHORT = 30.0
_MOST = 1 << 20
"""Bytes of what a command prints that are looked at."""


class DrainError(Exception):
    """A node could not be taken out of work; nothing is written to it."""


class TooLongError(DrainError):
    """A command was ended by us before it had come to its end."""


class Drain(Protocol):
    """Takes nodes out of work and puts them back."""

    def drain(self, node: str, reason: str) -> bool:
        """Take a node out, and wait until it is idle; tells whether it was us. Raises DrainError."""

    def undrain(self, node: str, reason: str) -> None:
        """Put back what we have taken out. Raises DrainError."""


def of(words: str, back: str, timeout: float) -> Drain:
    """
    Return what ``--drain`` and ``--undrain`` name.

    Args:
        words: ``slurm``, or a command that gets the node's name as its last argument and ends with 0 once the node is
            drained and idle.
        back: command that puts a node back; "" for none.
        timeout: seconds to wait for a node to become idle.

    Raises:
        UsageError: one of the commands cannot be read, or is blank.
    """
    if words == "slurm":
        return Slurm(timeout)
    return Command(_split("--drain", words), _split("--undrain", back) if back else [], timeout)


def _split(option: str, command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from error
    if not words:
        raise UsageError(f"{option}: {command!r} is no command")
    return words


class Command:
    """A command of the site."""

    def __init__(self, words: list[str], back: list[str], timeout: float) -> None:
        self._words, self._back, self._timeout = words, back, timeout

    def drain(self, node: str, reason: str) -> bool:
        """Run it; its end with 0 says that the node is idle. One that waits too long is ended, and its drain undone."""
        try:
            _run([*self._words, node], self._timeout, reason)
        except TooLongError:
            with contextlib.suppress(DrainError):
                self.undrain(node, reason)
            raise
        return True

    def undrain(self, node: str, reason: str) -> None:
        """Run the other one."""
        if self._back:
            _run([*self._back, node], self._timeout, reason)


class Slurm:
    """``scontrol``: drain with our reason, wait until no job is left, resume only where the reason is still ours."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout

    def drain(self, node: str, reason: str) -> bool:
        """Drain and wait."""
        state, told = _slurm_state(node)
        ours = "DRAIN" not in state or told.startswith(reason)
        if "DRAIN" not in state:
            _run(["scontrol", "update", f"NodeName={node}", "State=DRAIN", f"Reason={reason}"], _SHORT, reason)
        until = time.monotonic() + self._timeout
        while True:
            state, _ = _slurm_state(node)
            if not {"ALLOCATED", "MIXED", "COMPLETING"} & set(state):
                return ours
            if time.monotonic() > until:
                if ours:
                    self.undrain(node, reason)
                raise DrainError(f"still has jobs after {self._timeout:g} s ({'+'.join(state).lower()})")
            time.sleep(_PAUSE)

    def undrain(self, node: str, reason: str) -> None:
        """Resume, if it is still our drain."""
        state, told = _slurm_state(node)
        if "DRAIN" in state and told.startswith(reason):
            _run(["scontrol", "update", f"NodeName={node}", "State=RESUME"], _SHORT, reason)


def _slurm_state(node: str) -> tuple[list[str], str]:
    """Return state flags and reason: ``State=IDLE+DRAIN ... Reason=hwcheck ... [root@...]``."""
    said = _run(["scontrol", "--oneliner", "show", "node", node], _SHORT, "")
    state = re.search(r"\bState=(\S+)", said)
    why = re.search(r"\bReason=(.*?)(?: \[[^\]]*\])?\s*$", said)
    if state is None:
        raise DrainError(f"scontrol does not tell the state of {node}")
    return re.split(r"[+*]+", state[1].upper()), why[1] if why else ""


def _run(words: list[str], seconds: float, reason: str) -> str:
    """
    Run a command of the site and return what it printed.

    Its output goes to a file: of a pipe nobody would see the end while something that it left behind holds it open.
    """
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as complained:
        try:
            started = subprocess.Popen(  # noqa: S603 - the site's own command, without a shell
                words, stdin=subprocess.DEVNULL, stdout=said, stderr=complained,
                start_new_session=True, env={**os.environ, "HWCHECK_REASON": reason},
            )  # fmt: skip
        except FileNotFoundError:
            raise DrainError(f"{words[0]} is not there") from None
        except (OSError, ValueError) as error:
            raise DrainError(f"{words[0]} cannot be run: {getattr(error, 'strerror', None) or error}") from None
        try:
            code = started.wait(seconds)
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGKILL)
            started.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                raise TooLongError(f"{words[0]} took more than {seconds:g} s") from None
            raise
        text, why = _text(said), _text(complained)
    if code:
        raise DrainError(f"{words[0]} ended with {code}: {plain(why.strip() or text)[-200:]}")
    return text


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(_MOST).decode("utf-8", "replace")
