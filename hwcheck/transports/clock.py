"""What is left of a node's time: for all of it, and for one step."""

from __future__ import annotations

import time

from hwcheck.errors import TransportError


class Clock:
    """What is left of the deadline, and of the time for one step."""

    def __init__(self, last: float, step: float) -> None:
        self.last, self._step = last, step

    def step(self, doing: str) -> float:
        """
        Return the seconds for one step.

        Raises:
            TransportError: there are none.
        """
        left = self.last - time.monotonic()
        if left <= 0:
            raise TransportError(f"timed out while {doing}")
        return min(left, self._step)
