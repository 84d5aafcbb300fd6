"""
Bounds that are learned: from nodes of the same kind, and from the node's own earlier runs.

The middle is the median and the width comes from the median absolute deviation (MAD), so that one sick node among eight
moves neither. A width has a least value: where all nodes agree to a thousandth, a healthy one may still differ by more.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass

FLEET_LEAST = 8
HISTORY_LEAST = 3
_SIGMA = 1.4826
"""MAD of a normal distribution → its standard deviation."""
_WIDTH = 6.0
"""Standard deviations between middle and bound: of 20,000 figures of healthy nodes none is beyond by chance."""
_SMALL_SAMPLE = 4.0
"""The fewer values, the wider: the MAD of eight falls short by half one time in ten."""
_LEAST_BANDWIDTH, _LEAST_LATENCY = 0.05, 0.20
"""Least width as a share of the middle: one percent is the usual difference of healthy nodes, latencies vary more."""


@dataclass(frozen=True, slots=True)
class Bound:
    """
    The edge of what is right for a measurement.

    Attributes:
        value: the edge, in the unit of the measurement.
        higher_is_better: the measurement must be at least ``value``; else at most.
        origin: ``fleet`` or ``history``.
        median: middle of the values it was made of.
        count: how many those were.
    """

    value: float
    higher_is_better: bool
    origin: str
    median: float
    count: int

    def holds(self, value: float) -> bool:
        """Tell whether a measurement is on the right side."""
        return value >= self.value if self.higher_is_better else value <= self.value

    @property
    def text(self) -> str:
        """Say where it comes from."""
        whose = "the fleet" if self.origin == "fleet" else "this node's earlier runs"
        return f"median {self.median:.6g} of {self.count} values of {whose}"


def fleet_bound(values: Iterable[float], *, higher_is_better: bool) -> Bound | None:
    """
    Make the bound of a cohort.

    Args:
        values: valid measurements of the other nodes, in one unit; what is not finite is passed over.
        higher_is_better: True for bandwidth, False for latency.

    Returns:
        None with fewer than eight values, or when they are all zero.
    """
    return _bound(values, FLEET_LEAST, "fleet", higher_is_better=higher_is_better)


def history_bound(values: Iterable[float], *, higher_is_better: bool) -> Bound | None:
    """
    Make the bound of a node's own earlier measurements of one subject.

    Args:
        values: as for :func:`fleet_bound`, of this subject alone.
        higher_is_better: as for :func:`fleet_bound`.

    Returns:
        None with fewer than three values, or when they are all zero.
    """
    return _bound(values, HISTORY_LEAST, "history", higher_is_better=higher_is_better)


def _bound(values: Iterable[float], least: int, origin: str, *, higher_is_better: bool) -> Bound | None:
    kept = [value for value in values if math.isfinite(value)]
    if len(kept) < least:
        return None
    middle = statistics.median(kept)
    if middle <= 0:
        return None
    deviation = _SIGMA * statistics.median(abs(value - middle) for value in kept) * (1 + _SMALL_SAMPLE / len(kept))
    narrowest = _LEAST_BANDWIDTH if higher_is_better else _LEAST_LATENCY
    width = max(_WIDTH * deviation, narrowest * middle)
    edge = middle - width if higher_is_better else middle + width
    return Bound(max(edge, 0.0), higher_is_better, origin, middle, len(kept))
