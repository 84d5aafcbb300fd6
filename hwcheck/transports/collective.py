"""A collective over several nodes, launched on one of them: what was asked of it, and how."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hwcheck.baselines.collective import PROGRAM, collective_lines, environment
from hwcheck.errors import TransportError
from hwcheck.transports.cancel import Cancel
from hwcheck.transports.fan_out import Collect
from hwcheck.transports.outcome import Outcome
from hwcheck.transports.request import Request
from hwcheck.transports.target import Target


@dataclass(frozen=True, slots=True)
class CollectiveRequest(Request):
    """
    nccl-tests over several nodes.

    Attributes:
        order: see :func:`hwcheck.sources.load_collective.main`.
    """

    order: dict[str, Any] = field(default_factory=dict)

    def call(self) -> str:
        """Return the last line of the program, which starts it."""
        words = f"launch({self.order!r}, deadline={self.deadline!r})"
        return f"from hwcheck.sources.load_collective import main as launch\n{words}"


def measure_collective(
    head: Target, hosts: Sequence[str], gpus: int, collect: Collect, adapters: Sequence[str] = (), limit: float = 600.0
) -> Outcome:
    """
    Run an all-reduce over several nodes.

    Args:
        head: node that launches it; its outcome is the collective's.
        hosts: names by which the nodes reach each other, the head's first.
        gpus: of each node.
        collect: the transport.
        adapters: RDMA devices for NCCL; () for its own choice.
        limit: seconds.

    Returns:
        What came: output of nccl-tests, or absent with what is missing on the head.
    """
    told = environment(adapters)
    order = {"lines": collective_lines(hosts, gpus, list(told)), "program": PROGRAM, "environment": told}
    request = CollectiveRequest(tier="load", deadline=max(1.0, limit - 5.0), only=("load-collective",), order=order)
    began = time.monotonic()
    try:
        talk = collect(head, request, began + limit, Cancel())
    except TransportError as error:
        return Outcome(head, error=error, seconds=time.monotonic() - began)
    return Outcome.of(head, talk, request, time.monotonic() - began)
