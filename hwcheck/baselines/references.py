"""
What measurements of a node are held against beside the profile: the pinned bounds of its cohort, its own history.

Pinned, and not worked out anew each time: a fleet that becomes slower together must not become its own excuse.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from hwcheck.baselines.bounds import Bound, fleet_bound, history_bound
from hwcheck.baselines.own import OWN, split
from hwcheck.baselines.validity import doubts
from hwcheck.errors import UsageError

SCHEMA = "hwcheck.references/1"


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


def pin(samples: Iterable[Sample], recorded: str) -> dict[str, Any]:
    """
    Make the bounds of each cohort.

    Args:
        samples: of healthy nodes; a figure that does not count (:func:`hwcheck.baselines.doubts`) is left out.
        recorded: when, ISO 8601.

    Returns:
        JSON: ``schema``, ``recorded``, ``cohorts`` (cohort → test → bound, with how many nodes it is of).
    """
    values: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    nodes: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for one in samples:
        test, _ = split(one.subject)
        if test in OWN and _counts(one):
            values[one.cohort, test, one.unit].append(one.value)
            nodes[one.cohort, test, one.unit].add(one.node)
    cohorts: dict[str, dict[str, Any]] = {}
    for key, found in sorted(values.items()):
        cohort, test, unit = key
        bound = fleet_bound(found, higher_is_better=OWN[test].higher_is_better)
        if bound is not None:
            cohorts.setdefault(cohort, {})[test] = {
                "value": bound.value, "median": bound.median, "count": bound.count, "nodes": len(nodes[key]),
                "unit": unit,
            }  # fmt: skip
    return {"schema": SCHEMA, "recorded": recorded, "cohorts": cohorts}


def read_pinned(text: str, where: str) -> dict[str, Any]:
    """
    Read what :func:`pin` made.

    Raises:
        UsageError: it is something else, or a bound is no number.
    """
    try:
        told = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from error
    if not isinstance(told, dict) or told.get("schema") != SCHEMA or not isinstance(told.get("cohorts"), dict):
        raise UsageError(f"{where} holds no references of hwcheck ({SCHEMA}); hwcheck baseline record makes them")
    for tests in told["cohorts"].values():
        for test, bound in tests.items() if isinstance(tests, dict) else [("", None)]:
            if not isinstance(bound, dict) or not all(is_number(bound.get(name)) for name in ("value", "median")):
                raise UsageError(f"{where}: the bound of {test or 'a cohort'} is damaged")
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
        if one.node == node and _counts(one):
            earlier[one.subject].append(one.value)
    found = {}
    for subject in subjects:
        test, _ = split(subject)
        if test not in OWN:
            continue
        higher = OWN[test].higher_is_better
        told = pinned.get("cohorts", {}).get(cohort, {}).get(test)
        fleet = Bound(told["value"], higher, "fleet", told["median"], int(told.get("count", 0))) if told else None
        own = history_bound(earlier[subject], higher_is_better=higher)
        found[subject] = tuple(bound for bound in (fleet, own) if bound is not None)
    return found


def _counts(one: Sample) -> bool:
    test, on = split(one.subject)
    return math.isfinite(one.value) and not one.conditions.get("error") and not doubts(test, on, dict(one.conditions))


def is_number(value: Any) -> bool:
    """Tell whether a JSON value is a figure: no truth value, no NaN, nothing infinite."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
