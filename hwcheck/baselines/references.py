"""
What measurements of a node are held against beside the profile: the pinned bounds of its cohort, its own history.

Pinned, and not worked out anew each time: a fleet that becomes slower together must not become its own excuse.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from hwcheck.baselines.bounds import Bound, fleet_bound, history_bound
from hwcheck.baselines.own import OWN, split
from hwcheck.baselines.validity import doubts
from hwcheck.errors import UsageError

SCHEMA = "hwcheck.references/1"
NODES_LEAST = 3
"""Nodes of a bound: of two that differ nobody knows which one is slow."""


class Sample(NamedTuple):
    """
    A figure that was measured.

    Attributes:
        node, cohort: whose.
        subject: of the measurement, ``hwcheck.h2d@0000:18:00.0``.
        value, unit: the figure.
        conditions: under which it was had.
        run: which run measured it.
    """

    node: str
    cohort: str
    subject: str
    value: float
    unit: str
    conditions: Mapping[str, Any]
    run: str = ""


def pin(
    samples: Iterable[Sample], recorded: str, is_healthy: Callable[[Sample], bool] = lambda _: True
) -> dict[str, Any]:
    """
    Make the bounds of each cohort.

    A part counts once, however often it was measured, and a bound is of :data:`NODES_LEAST` nodes at least: one node
    that is slow as a whole must not become its own measure.

    Args:
        samples: the newest first; a figure that does not count (:func:`hwcheck.baselines.doubts`) is left out.
        recorded: when, ISO 8601.
        is_healthy: tells whether a figure is one of a healthy node.

    Returns:
        JSON: ``schema``, ``cohorts`` (cohort → test → bound, with when it was recorded and of how many nodes it is).
    """
    values: dict[tuple[str, str], dict[tuple[str, str], float]] = defaultdict(dict)
    for one in samples:
        test, _ = split(one.subject)
        if test in OWN and one.unit == OWN[test].unit and _counts(one) and is_healthy(one):
            values[one.cohort, test].setdefault((one.node, one.subject), one.value)
    cohorts: dict[str, dict[str, Any]] = {}
    for (cohort, test), found in sorted(values.items()):
        nodes = {node for node, _ in found}
        bound = fleet_bound(found.values(), higher_is_better=OWN[test].higher_is_better)
        if bound is not None and len(nodes) >= NODES_LEAST:
            cohorts.setdefault(cohort, {})[test] = {
                "value": bound.value, "median": bound.median, "count": bound.count, "nodes": len(nodes),
                "unit": OWN[test].unit, "recorded": recorded,
            }  # fmt: skip
    return {"schema": SCHEMA, "cohorts": cohorts}


def merged(earlier: Mapping[str, Any], fresh: Mapping[str, Any]) -> dict[str, Any]:
    """Put new bounds over earlier ones; a test that was not pinned anew keeps its bound."""
    old, new = earlier.get("cohorts", {}), fresh["cohorts"]
    cohorts = {name: {**old.get(name, {}), **new.get(name, {})} for name in sorted({*old, *new})}
    return {**fresh, "cohorts": cohorts}


def read_pinned(text: str, where: str) -> dict[str, Any]:
    """
    Read what :func:`pin` made.

    Raises:
        UsageError: it is something else, or a bound is no number or in another unit than its test.
    """
    try:
        told = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from error
    if not isinstance(told, dict) or told.get("schema") != SCHEMA or not isinstance(told.get("cohorts"), dict):
        raise UsageError(f"{where} holds no references of hwcheck ({SCHEMA}); hwcheck baseline record makes them")
    for tests in told["cohorts"].values():
        for test, bound in tests.items() if isinstance(tests, dict) else [("", None)]:
            if not isinstance(bound, dict) or not all(
                is_number(bound.get(name)) for name in ("value", "median", "count")
            ):
                raise UsageError(f"{where}: the bound of {test or 'a cohort'} is damaged")
            if test in OWN and bound.get("unit") != OWN[test].unit:
                raise UsageError(f"{where}: the bound of {test} is in {bound.get('unit')}, not in {OWN[test].unit}")
    return told


def references_of(
    node: str, cohort: str, subjects: Iterable[str], pinned: Mapping[str, Any], history: Iterable[Sample]
) -> dict[str, tuple[Bound, ...]]:
    """
    Gather the bounds of a node's measurements.

    Args:
        node: whose.
        cohort: that it belongs to.
        subjects: of its measurements.
        pinned: as :func:`read_pinned` returns it; {} for none.
        history: figures of earlier runs; those of other nodes, and those that do not count, are passed over.
    """
    earlier: dict[str, list[float]] = defaultdict(list)
    for one in history:
        test, _ = split(one.subject)
        if one.node == node and test in OWN and one.unit == OWN[test].unit and _counts(one):
            earlier[one.subject].append(one.value)
    found = {}
    for subject in subjects:
        test, _ = split(subject)
        if test not in OWN:
            continue
        higher = OWN[test].higher_is_better
        told = pinned.get("cohorts", {}).get(cohort, {}).get(test)
        fleet = Bound(told["value"], higher, "fleet", told["median"], int(told["count"])) if told else None
        own = history_bound(earlier[subject], higher_is_better=higher)
        found[subject] = tuple(bound for bound in (fleet, own) if bound is not None)
    return found


def _counts(one: Sample) -> bool:
    test, on = split(one.subject)
    return math.isfinite(one.value) and not one.conditions.get("error") and not doubts(test, on, dict(one.conditions))


def is_number(value: Any) -> bool:
    """Tell whether a JSON value is a figure: no truth value, no NaN, nothing infinite."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
