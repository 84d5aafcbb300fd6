"""What ``hwcheck baseline record``, ``compare`` and ``list`` do: pin bounds, set figures side by side."""

from __future__ import annotations

import argparse
import datetime as dt
import json
import statistics
import sys
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hwcheck.baselines import OWN
from hwcheck.baselines.own import split
from hwcheck.baselines.references import Sample, pin
from hwcheck.cli.referring import keep_pinned, load_pinned, named_store, open_store, pinned_file, samples, samples_of
from hwcheck.cli.reporting import find_run
from hwcheck.errors import UsageError
from hwcheck.lines import clean
from hwcheck.profiles import ProfileSet
from hwcheck.profiles.identify import GENERIC
from hwcheck.report.wanted import wanted


def record(arguments: argparse.Namespace) -> int:
    """Pin the bounds of each cohort; 3 where no cohort has figures enough."""
    found = [one for path in arguments.runs for one in samples_of(find_run(path, named_store()))]
    if not arguments.runs:
        store = open_store(arguments.store)
        if store is None:
            raise UsageError("no figures to pin: name runs, or a store")
        found = samples(store)
    recorded = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    fresh = pin(found, recorded)
    path = pinned_file(arguments.references)
    earlier = load_pinned(arguments.references if path.exists() else None)
    pinned = {**fresh, "cohorts": {**earlier.get("cohorts", {}), **fresh["cohorts"]}}
    if not fresh["cohorts"]:
        print(f"Nothing is pinned: {len(found)} figures, and no cohort has eight of one test that count.")
        return 3
    keep_pinned(path, json.dumps(pinned, indent=1) + "\n")
    for cohort, tests in fresh["cohorts"].items():
        print(f"{cohort}")
        for test, bound in tests.items():
            side = "at least" if OWN[test].higher_is_better else "at most"
            nodes = f"{bound['nodes']} {'node' if bound['nodes'] == 1 else 'nodes'}"
            print(f"  {test:15} {side} {bound['value']:.4g} {bound['unit']}: median {bound['median']:.4g} of "
                  f"{bound['count']} figures of {nodes}")  # fmt: skip
    print(f"pinned in {path}")
    return 0


def compare(arguments: argparse.Namespace) -> int:
    """Print the figures of a run beside the pinned bounds and an earlier run."""
    mine = samples_of(find_run(arguments.of, named_store()))
    beside = samples_of(find_run(arguments.beside, named_store())) if arguments.beside else []
    rows = _rows(mine, beside, load_pinned(arguments.references))
    if not rows:
        raise UsageError(f"{arguments.of} has no measurements")
    if arguments.format == "json":
        print(json.dumps(rows, indent=1))
        return 0
    table = Table("node", "measurement", "value", "earlier", "change", "cohort", "of median", box=None)
    table.columns[1].overflow = "fold"  # never cut: the end tells the device
    for row in rows:
        table.add_row(
            Text(clean(row["node"])), Text(clean(row["subject"])), f"{row['value']:.4g} {row['unit']}",
            _shown(row["earlier"]), _percent(row["change"]), _shown(row["median"]), _percent(row["of_median"]),
        )  # fmt: skip
    Console().print(table)
    return 0


def _rows(mine: list[Sample], beside: list[Sample], pinned: dict[str, Any]) -> list[dict[str, Any]]:
    before = {(one.node, one.subject): one.value for one in beside}
    rows = []
    for one in mine:
        test, _ = split(one.subject)
        bound = pinned.get("cohorts", {}).get(one.cohort, {}).get(test)
        earlier, median = before.get((one.node, one.subject)), bound["median"] if bound else None
        rows.append({
            "node": one.node, "subject": one.subject, "value": one.value, "unit": one.unit, "earlier": earlier,
            "change": one.value / earlier - 1 if earlier else None, "median": median,
            "of_median": one.value / median - 1 if median else None,
        })  # fmt: skip
    return rows


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:+.1f} %"


def show(arguments: argparse.Namespace) -> int:
    """Print what is measured, by which source, and what it is held against."""
    profiles = ProfileSet()
    profile = profiles.profile(arguments.profile or GENERIC)
    pinned = load_pinned(arguments.references)
    counts: dict[str, list[float]] = {}
    for tests in pinned.get("cohorts", {}).values():
        for test, bound in tests.items():
            counts.setdefault(test, []).append(bound["value"])
    table = Table("test", "source", "bound of the platform", "pinned cohorts", box=None)
    for test, own in OWN.items():
        floor = profile.bounds.get(own.bound)
        told = counts.get(test, [])
        table.add_row(
            test, own.source or "between nodes", "" if floor is None else wanted(floor),
            f"{len(told)}: {statistics.median(told):.4g}" if told else "",
        )  # fmt: skip
    Console().print(table)
    if not arguments.profile:
        print("Bounds of a platform: --profile NAME; their sources: hwcheck explain NAME.", file=sys.stderr)
    return 0
