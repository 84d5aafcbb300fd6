"""Run a command as a process of this machine and move the bytes of a conversation both ways."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time

from hwcheck.errors import TransportError
from hwcheck.transports.cancel import Cancel
from hwcheck.transports.conversation import Conversation

_PIECE = 1 << 16
_COURTESY = 0.3
"""Seconds between SIGTERM and SIGKILL."""
_PATIENCE = 1.0
"""Seconds to wait for a killed process; one in state D stays, and nobody waits for it."""


def converse(argv: tuple[str, ...], talk: Conversation, last: float, cancel: Cancel) -> int | None:
    """
    Run the command until the end frame, the end of its output, or the deadline; nothing of it is left then.

    Args:
        argv: the command.
        talk: what to say and who listens.
        last: deadline, by the monotonic clock.
        cancel: ends it from outside.

    Returns:
        Exit status; None when it was cut off.

    Raises:
        TransportError: it cannot be started, or sudo refuses.
    """
    try:
        process = subprocess.Popen(  # noqa: S603 - a list of arguments, no shell
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
    except OSError as error:
        raise TransportError(f"cannot start {argv[0]}: {error.strerror}") from error
    try:
        with cancel.closing(lambda: _end(process)):
            return _wait(process, last) if _pump(process, talk, last) else None
    finally:
        _end(process, at_once=talk.decoder.ended)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE)


def _end(process: subprocess.Popen[bytes], *, at_once: bool = False) -> None:
    """
    Ask it to end, then make it.

    The children of the node program have groups of their own; asked, it takes them along. One that has said everything
    has none any more.
    """
    if not at_once:
        _signal(process, signal.SIGTERM)
    end = time.monotonic() + _COURTESY
    while not at_once and process.poll() is None and time.monotonic() < end:
        time.sleep(0.005)
    _signal(process, signal.SIGKILL)


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _wait(process: subprocess.Popen[bytes], last: float) -> int | None:
    """Return the exit status of a process that has closed its output."""
    try:
        return process.wait(max(0.0, min(_PATIENCE, last - time.monotonic())))
    except subprocess.TimeoutExpired:
        return None


def _pump(process: subprocess.Popen[bytes], talk: Conversation, last: float) -> bool:
    """Move bytes both ways; returns True when the output ended by itself, False on the end frame or the deadline."""
    assert process.stdin is not None  # noqa: S101 - PIPE was asked for
    assert process.stdout is not None  # noqa: S101 - as above
    assert process.stderr is not None  # noqa: S101 - as above
    todo = bytearray(talk.begin())
    with selectors.DefaultSelector() as selector:
        for stream in (process.stdin, process.stdout, process.stderr):
            os.set_blocking(stream.fileno(), False)
        selector.register(process.stdout, selectors.EVENT_READ)
        selector.register(process.stderr, selectors.EVENT_READ)
        writing = False
        while (left := last - time.monotonic()) > 0:
            if not process.stdin.closed and bool(todo) != writing:
                writing = bool(todo)
                if writing:
                    selector.register(process.stdin, selectors.EVENT_WRITE)
                else:
                    selector.unregister(process.stdin)
            if not process.stdin.closed and not todo and talk.sent_all:
                process.stdin.close()  # the end of the program text
            for key, _ in selector.select(left):
                if key.fileobj is process.stdin:
                    _write(key.fd, todo)
                    continue
                data = os.read(key.fd, _PIECE)
                if key.fileobj is process.stderr:
                    todo += talk.hear(data)
                    if not data:
                        selector.unregister(process.stderr)
                elif not data:
                    _last_words(process.stderr.fileno(), talk)
                    return True
                elif not talk.take(data):
                    return False
    return False


def _last_words(fd: int, talk: Conversation) -> None:
    """Take what is still in the pipe: why a program ended is said before its output closes, and read after it."""
    with contextlib.suppress(BlockingIOError):
        talk.hear(os.read(fd, _PIECE))


def _write(fd: int, todo: bytearray) -> None:
    """Write what fits. A reader that is gone shows at its output."""
    try:
        del todo[: os.write(fd, todo[:_PIECE])]
    except BlockingIOError:
        pass
    except BrokenPipeError:
        todo.clear()
