"""
Many nodes at once: a fixed number of threads, results as they come, deadlines that hold whatever a thread does.

A node that is late beyond all its own time limits (a name server that hangs, say) is given up: its thread is left alone
and another takes its place. So one node never keeps the report of the others waiting.

A node that hung up or was slow to let us in is asked once more, after the others: a healthy node must not be called
unreachable because its sshd had its hands full, or because this machine had.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from hwcheck.errors import TransportError
from hwcheck.transports.cancel import Cancel
from hwcheck.transports.conversation import Conversation
from hwcheck.transports.outcome import Outcome
from hwcheck.transports.request import Request
from hwcheck.transports.target import Target

Collect = Callable[[Target, Request, float, Cancel], Conversation]
"""A transport: (node, what to read, deadline by the monotonic clock, what stops it) → the finished conversation."""

GRACE = 3.0
"""Seconds that a thread may be late before it is given up."""


@dataclass(frozen=True, slots=True)
class Limits:
    """
    How much at once, and how long.

    Attributes:
        fanout: nodes at once.
        host: seconds for one node, connection included.
        total: seconds for all; 0 for no limit.
    """

    fanout: int = 32
    host: float = 60.0
    total: float = 0.0


class FanOut:
    """
    Asks nodes; go through it to get each outcome as it comes.

    Args:
        targets: nodes, in order.
        collect: the transport.
        request: what to read.
        limits: how much at once, and how long.
    """

    def __init__(self, targets: Iterable[Target], collect: Collect, request: Request, limits: Limits) -> None:
        self._waiting = deque((target, True) for target in targets)  # node, whether it may be asked once more
        self._open = len(self._waiting)
        self._collect = collect
        self._request = request
        self._limits = limits
        self._cancel = Cancel()
        self._lock = threading.Lock()
        self._running: dict[int, tuple[Target, float]] = {}
        self._threads: dict[int, threading.Thread] = {}
        # bounded: what waits to be judged is held in memory, a snapshot's worth a node
        self._done: queue.Queue[Outcome] = queue.Queue(maxsize=max(1, min(limits.fanout, 8)))
        self._last = time.monotonic() + limits.total if limits.total else float("inf")
        self._number = 0

    def start(self) -> None:
        """Begin; what follows may load modules meanwhile."""
        for _ in range(min(self._limits.fanout, len(self._waiting))):
            self._thread()

    def _thread(self) -> None:
        self._number += 1
        thread = threading.Thread(target=self._work, args=(self._number,), name=f"hwcheck-{self._number}", daemon=True)
        self._threads[self._number] = thread
        thread.start()

    def _work(self, number: int) -> None:
        while True:
            with self._lock:
                if not self._waiting or self._cancel.done or number not in self._threads:
                    return
                target, may_repeat = self._waiting.popleft()
                began = time.monotonic()
                self._running[number] = (target, began)
            outcome = self._ask(target, began)
            with self._lock:
                if self._running.pop(number, None) is None:
                    return  # given up: this node is in the report already
                if may_repeat and outcome.error is not None and outcome.error.passing and not self._cancel.done:
                    self._waiting.append((target, False))
                    continue
            self._done.put(outcome)

    def _ask(self, target: Target, began: float) -> Outcome:
        last = min(began + self._limits.host, self._last)
        try:
            talk = self._collect(target, self._request, last, self._cancel)
        except TransportError as error:
            return Outcome(target, error=error, seconds=time.monotonic() - began)
        except Exception as error:  # noqa: BLE001 - whatever a library raises for one node must not end the others
            reason = TransportError(f"{type(error).__name__}: {error}")
            return Outcome(target, error=reason, seconds=time.monotonic() - began)
        return Outcome.of(target, talk, self._request, time.monotonic() - began)

    def __iter__(self) -> Iterator[Outcome]:
        """Give outcomes as they come; ends all connections when it is left early."""
        if not self._number:
            self.start()
        try:
            while self._open:
                try:
                    outcomes = [self._done.get(timeout=0.25)]
                except queue.Empty:
                    outcomes = self._given_up()
                for outcome in outcomes:
                    self._open -= 1
                    yield outcome
        finally:
            self.stop()

    def _given_up(self) -> list[Outcome]:
        now = time.monotonic()
        late: list[tuple[Target, float]] = []
        with self._lock:
            for number, (target, began) in list(self._running.items()):
                if now > min(began + self._limits.host, self._last) + GRACE:
                    del self._running[number], self._threads[number]
                    late.append((target, now - began))
            if now > self._last + GRACE:
                late += [(target, 0.0) for target, _ in self._waiting]
                self._waiting.clear()
        outcomes = []
        for target, seconds in late:
            if self._waiting:
                self._thread()
            reason = f"timed out after {seconds:.0f} s" if seconds else "its turn did not come within the total time"
            outcomes.append(Outcome(target, error=TransportError(reason), seconds=seconds))
        return outcomes

    def stop(self) -> None:
        """End all connections and processes; waits briefly for the threads."""
        self._cancel.stop()
        end = time.monotonic() + 2.0
        for thread in list(self._threads.values()):
            while thread.is_alive() and time.monotonic() < end:
                try:  # one that waits to hand over its outcome
                    self._done.get_nowait()
                except queue.Empty:
                    thread.join(0.05)
