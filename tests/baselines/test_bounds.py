"""Bounds that are learned from measurements."""

from __future__ import annotations

import math
import random

import pytest

from hwcheck.baselines import fleet_bound, history_bound


def test_eight_values_are_needed_for_a_fleet_and_three_for_a_past() -> None:
    """Fewer say nothing; what is no number is none of them."""
    assert fleet_bound([55.0] * 7 + [math.nan], higher_is_better=True) is None
    assert history_bound([55.0, 55.0, math.inf], higher_is_better=True) is None
    assert fleet_bound([0.0] * 8, higher_is_better=True) is None
    assert history_bound([55.0] * 3, higher_is_better=True) is not None


@pytest.mark.parametrize("higher", [True, False])
def test_values_that_all_agree_still_leave_a_band(*, higher: bool) -> None:
    """Five percent for bandwidth, twenty for a latency, on the side that is worse."""
    bound = fleet_bound([100.0] * 8, higher_is_better=higher)
    assert bound is not None
    assert bound.value == pytest.approx(95.0 if higher else 120.0)
    assert bound.holds(100.0)
    assert not bound.holds(94.9 if higher else 120.1)


def test_one_sick_node_moves_nothing() -> None:
    """The bound of nine nodes of which one runs at half speed is that of the other eight."""
    healthy = [54.9, 55.0, 55.1, 55.2, 55.3, 55.0, 55.1, 55.2]
    with_sick = fleet_bound([*healthy, 27.0], higher_is_better=True)
    without = fleet_bound(healthy, higher_is_better=True)
    assert with_sick is not None
    assert without is not None
    assert with_sick.value == pytest.approx(without.value, rel=0.01)
    assert not with_sick.holds(27.0)


def test_a_wide_fleet_has_a_wide_band() -> None:
    """What varies by itself needs more to stand out."""
    rng = random.Random(5)  # noqa: S311 - a repeatable sample
    bound = fleet_bound([rng.gauss(100, 5) for _ in range(200)], higher_is_better=True)
    assert bound is not None
    assert 60 < bound.value < 80
