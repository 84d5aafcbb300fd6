"""Read a node through a back end of testinfra, which runs a command and returns what it printed, and nothing else."""

from __future__ import annotations

import base64
import binascii
import time
from typing import Protocol

from hwcheck.errors import TransportError
from hwcheck.evidence import Evidence
from hwcheck.transports.conversation import Conversation
from hwcheck.transports.gathered import evidence_of
from hwcheck.transports.outcome import Outcome
from hwcheck.transports.request import Request
from hwcheck.transports.target import Target

# The program goes in as an argument: no back end has a standard input. Its answer is binary, which Ansible's is not.
_SCRIPT = "printf %s '{}' | base64 -d | python3 -I -S - | base64"
_LONGEST = 128 << 10
"""Bytes that Linux takes as one argument (MAX_ARG_STRLEN)."""


class Result(Protocol):
    """What a back end returns of a command."""

    rc: int
    stdout: str
    stderr: str


class Host(Protocol):
    """The part of testinfra's host that is used."""

    def run(self, command: str) -> Result:
        """Run a command in the shell of the node."""


def read(host: Host, request: Request) -> Evidence:
    """
    Read a node.

    Args:
        host: testinfra's.
        request: what to read.

    Returns:
        Evidence; of a node that did not answer, with the reason and nothing else.
    """
    program = base64.b64encode(request.program()).decode("ascii")
    assert len(program) < _LONGEST, len(program)  # noqa: S101 - of our own making, not the node's
    began = time.monotonic()
    result = host.run(_SCRIPT.format(program))
    talk = Conversation(b"")
    try:
        talk.take(base64.b64decode(result.stdout, validate=False))
        talk.finish(result.rc)
    except (TransportError, binascii.Error) as error:
        words = result.stderr.strip()[-300:]
        reason = TransportError(f"{error}: {words}" if words else str(error))
        return evidence_of(Outcome(Target(""), error=reason, seconds=time.monotonic() - began))
    return evidence_of(Outcome.of(Target(""), talk, request, time.monotonic() - began))
