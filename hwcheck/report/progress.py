"""
Progress on standard error: done, failing, unreachable, and when it will be over. Never on standard output.

A bar where standard error is a terminal; else a plain line now and then, so that a log of CI stays short.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Self

EVERY = 5.0
"""Seconds between plain lines."""
_REDRAW = 0.1
_NAMED = 80
"""Characters of node names in a line."""


class Progress:
    """
    Counts nodes; a context manager.

    Args:
        total: nodes in all.
        fold: writes names as a node set.
        quiet: say nothing.
        stream: where to; default standard error.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        total: int,
        fold: Callable[[list[str]], str],
        *,
        quiet: bool = False,
        stream: Any = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._total = total
        self._fold = fold
        self._stream = stream if stream is not None else sys.stderr
        self._clock = clock
        self._began = self._said = clock()
        self._done = 0
        self._failing: list[str] = []
        self._unreachable: list[str] = []
        self._quiet = quiet or total < 2
        self._bar: Any = None

    def __enter__(self) -> Self:
        """Begin."""
        if not self._quiet and self._stream.isatty():
            from rich.console import Console  # noqa: PLC0415 - slow to import, and only a terminal needs it
            from rich.live import Live  # noqa: PLC0415 - as above

            # transient: the report that follows on standard output is not mixed with it
            self._bar = Live(
                console=Console(file=self._stream),
                transient=True,
                auto_refresh=False,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End; the last line stays, also after an interruption."""
        if self._bar is not None:
            self._bar.stop()
        if not self._quiet:
            self._say(self.line())

    def count(self, node: str, *, failing: bool = False, unreachable: bool = False) -> None:
        """Take a finished node in."""
        self._done += 1
        if unreachable:
            self._unreachable.append(node)
        elif failing:
            self._failing.append(node)
        if self._quiet:
            return
        now = self._clock()
        if now - self._said >= (_REDRAW if self._bar is not None else EVERY):
            self._said = now
            if self._bar is not None:
                from rich.text import Text  # noqa: PLC0415 - as above

                self._bar.update(Text(self.line()), refresh=True)
            else:
                self._say(self.line())

    @contextlib.contextmanager
    def hidden(self) -> Iterator[None]:
        """Take the bar away while something else is written to the terminal."""
        if self._bar is None or not sys.stdout.isatty():
            yield
            return
        self._bar.stop()
        try:
            yield
        finally:
            if self._done < self._total:  # the summary that follows the last node has no bar under it
                self._bar.start()

    def line(self) -> str:
        """Return the state in one line."""
        parts = [f"{self._done} of {self._total} nodes done"]
        for word, names in (("failing", self._failing), ("unreachable", self._unreachable)):
            if names:
                folded = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in self._fold(names))
                shown = folded if len(folded) <= _NAMED else folded[:_NAMED] + "..."
                parts.append(f"{len(names)} {word} ({shown})")
        seconds = self._clock() - self._began
        if 0 < self._done < self._total:
            parts.append(f"about {seconds / self._done * (self._total - self._done):.0f} s to go")
        else:
            parts.append(f"{seconds:.1f} s")
        return ", ".join(parts)

    def _say(self, line: str) -> None:
        print(f"hwcheck: {line}", file=self._stream, flush=True)
