"""This machine: the same bytes as over SSH, fed to a Python of its own."""

from __future__ import annotations

import sys
import time

from hwcheck.transports.cancel import Cancel
from hwcheck.transports.conversation import Conversation
from hwcheck.transports.process import converse
from hwcheck.transports.request import Request
from hwcheck.transports.target import Target


def collect(target: Target, request: Request, last: float, cancel: Cancel) -> Conversation:
    """
    Read this machine.

    Args:
        target: its name, and as whom to read it.
        request: what to read.
        last: deadline, by the monotonic clock.
        cancel: ends it from outside.

    Raises:
        TransportError: the program did not start, or what came back is no stream at all.
    """
    talk = Conversation(request.program(), target.python or sys.executable, target.become, request.heard)
    began = time.monotonic()
    status = converse(talk.argv, talk, last, cancel)
    late = time.monotonic() >= last
    talk.finish(status, late=last - began if late else 0.0)
    return talk
