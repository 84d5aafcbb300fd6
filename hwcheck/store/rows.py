"""What the store answers with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Kept:
    """
    A run that is kept.

    Attributes:
        name: unique.
        kind: ``check``, ``apply``, ``baseline``, ``accept`` or ``gate``.
        at: when it began by the controller's clock, seconds since 1970; no later than when it was kept.
        ended: as ``at``; None where the run does not say.
        who: user and host that ran it.
        verdict: over all nodes.
        nodes: how many it has.
        doubt: why its times are not to be trusted; "" where they are.
    """

    name: str
    kind: str
    at: float
    ended: float | None
    who: str
    verdict: str
    nodes: int
    doubt: str


@dataclass(frozen=True, slots=True)
class Sample:
    """A measured value; ``taken`` is when its run began by the controller's clock, seconds since 1970."""

    node: str
    cohort: str
    name: str
    subject: str
    value: float
    unit: str
    taken: float
    conditions: dict[str, Any]
    run: str


@dataclass(frozen=True, slots=True)
class Waived:
    """A finding that the site accepts, of the last run that judged it; ``expires`` is the last day, ISO 8601."""

    check: str
    subject: str
    owner: str
    reason: str
    expires: str


@dataclass(frozen=True, slots=True)
class NodeState:
    """
    How a node stands.

    Attributes:
        node: its name.
        state: ``ok``, ``failing`` (a fail that nothing has shown right since) or ``unknown``.
        run, at: the last run that has the node, and when it began.
        simulated: a lab node.
        failing: checks and subjects that fail and are not waived.
        waived: what is accepted.
    """

    node: str
    state: str
    run: str
    at: float
    simulated: bool
    failing: tuple[tuple[str, str], ...]
    waived: tuple[Waived, ...]
