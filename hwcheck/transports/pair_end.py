"""One end of a measurement between two nodes while it runs: a thread that asks its node, and what is known of it."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

from hwcheck.errors import TransportError
from hwcheck.transports.cancel import Cancel
from hwcheck.transports.fan_out import Collect
from hwcheck.transports.pair_request import PairRequest
from hwcheck.transports.stream import Answer
from hwcheck.transports.target import Target

COURTESY = 5.0
"""Seconds in which an end may end by itself once the other has gone: by then it has said why."""
_LISTENING = "hwcheck.pair"
_LINGER = 2.0


class End:
    """
    Asks one node in a thread of its own; a context manager that ends it in any case.

    Args:
        target: the node.
        order: what it is to do.
        collect: the transport.
        limit: seconds for all of it, connection included.
        cancel: ends it from outside, with all others.
    """

    def __init__(self, target: Target, order: dict[str, Any], collect: Collect, limit: float, cancel: Cancel) -> None:
        self.name = target.name
        self._target, self._collect, self._cancel = target, collect, cancel
        self._last = time.monotonic() + limit
        self._own = Cancel()
        self._listens = threading.Event()
        self._request = PairRequest(tier="load", deadline=max(1.0, limit - COURTESY), heard=self._hear, order=order)
        self._thread = threading.Thread(target=self._ask, name=f"hwcheck-{order['role']}", daemon=True)
        self._answers: list[Answer] = []
        self.done = threading.Event()
        self.listening: dict[str, Any] = {}
        self.error = ""

    def __enter__(self) -> End:  # noqa: PYI034 - never subclassed
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._own.stop()
        self._thread.join(_LINGER)  # one that a library holds is left alone

    def _hear(self, answer: Answer) -> None:
        if answer.kind != _LISTENING:
            self._answers.append(answer)
            return
        try:
            told = json.loads(answer.payload)
        except ValueError:
            return
        if isinstance(told, dict) and isinstance(told.get("port"), int):
            self.listening = told
            self._listens.set()

    def _ask(self) -> None:
        try:
            with self._cancel.closing(self._own.stop):
                talk = self._collect(self._target, self._request, self._last, self._own)
            self.error = talk.fault
        except TransportError as error:
            self.error = str(error)
        except Exception as error:  # noqa: BLE001 - whatever a library raises is this end's way of going away
            self.error = f"{type(error).__name__}: {error}"
        finally:
            self.done.set()
            self._listens.set()  # nobody waits for it any more

    def wait_listening(self, seconds: float) -> bool:
        """Wait until it says that it listens; False when it ended before, or did not in time."""
        self._listens.wait(seconds)
        return bool(self.listening)

    @property
    def answers(self) -> list[Answer]:
        """What came so far."""
        return list(self._answers)

    @property
    def trouble(self) -> str:
        """Why it has no good answer, once it is done; "" where it has."""
        bad = [answer for answer in self._answers if answer.status != "ok"]
        return self.error or (bad[0].detail or bad[0].status if bad else "")

    @property
    def lacks(self) -> Answer | None:
        """The answer by which it says that it has no tool for this."""
        return next((answer for answer in self._answers if answer.status == "absent"), None)
