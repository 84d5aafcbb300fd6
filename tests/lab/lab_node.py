"""Collect lab nodes in tree form as ``hwcheck lab shell NODE -- hwcheck check --live-root`` does."""

from __future__ import annotations

import os
import time
from unittest import mock

from hwcheck.evidence import Evidence
from hwcheck.lab.nodes import Node
from hwcheck.transports.cancel import Cancel
from hwcheck.transports.gathered import evidence_of
from hwcheck.transports.local import collect
from hwcheck.transports.outcome import Outcome
from hwcheck.transports.request import Request
from hwcheck.transports.target import LOCAL, Target

NOT_IN_A_TREE = ("space", "space-network", "nvme-health")
"""
Sources that the tree form cannot have: the space of the disk that the tree happens to lie on, and ioctls of a drive.

Beside these the clock of the kernel, the pause parameters of interfaces and the PTP clocks are absent: no kernel is
there.
"""


def evidence_from(node: Node, tier: str = "quick", deadline: float = 60.0, off: tuple[str, ...] = ()) -> Evidence:
    """Read a node with its own tools and library."""
    request = Request(tier=tier, root=str(node.root), off=(*NOT_IN_A_TREE, *off), deadline=deadline)
    target = Target(node.name, connection=LOCAL)
    with mock.patch.dict(os.environ, node.environment()):
        talk = collect(target, request, time.monotonic() + 90, Cancel())
    return evidence_of(Outcome.of(target, talk, request, 0.0))
