"""Stop everything at once: what is open is closed from outside, so that no thread waits for a node any longer."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from hwcheck.errors import TransportError

Closer = Callable[[], object]


class Cancel:
    """Holds, for each connection or process that is open, what ends it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._closers: dict[int, Closer] = {}
        self._number = 0
        self.done = False

    @contextlib.contextmanager
    def closing(self, closer: Closer) -> Iterator[None]:
        """
        Within this, ``closer`` is called when everything is to stop.

        Raises:
            TransportError: it has stopped already.
        """
        with self._lock:
            if self.done:
                raise TransportError("interrupted")
            self._number += 1
            key = self._number
            self._closers[key] = closer
        try:
            yield
        finally:
            with self._lock:
                self._closers.pop(key, None)

    def stop(self) -> None:
        """Close all that is open; what begins later is refused."""
        with self._lock:
            self.done = True
            closers = list(self._closers.values())
        for closer in closers:
            with contextlib.suppress(Exception):  # one that is gone already must not keep the others open
                closer()
