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
from hwcheck.baselines.references import NODES_LEAST, Sample, merged, pin
from hwcheck.cli.planning import keep
from hwcheck.cli.referring import load_pinned, named_store, open_store, pinned_file, samples, samples_of
from hwcheck.cli.reporting import find_run
from hwcheck.errors import UsageError
from hwcheck.lines import clean
from hwcheck.profiles import ProfileSet
from hwcheck.profiles.identify import GENERIC
from hwcheck.report.run_reading import started_of
from hwcheck.report.wanted import wanted


def record(arguments: argparse.Namespace) -> int:
    """Pin the bounds of each cohort; 3 where no cohort has figures enough."""
    found = _figures(arguments)
    path = pinned_file(arguments.references)
    earlier = load_pinned(path) if path.exists() else {}
    fresh = pin(found, dt.datetime.now(dt.UTC).isoformat(timespec="seconds"), _Floors().holds)
    if not fresh["cohorts"]:
        print(f"Nothing is pinned: {len(found)} figures, and no cohort has eight of one test that count, of "
              f"{NODES_LEAST} nodes at least.")  # fmt: skip
        return 3
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    keep(path, json.dumps(merged(earlier, fresh), indent=1) + "\n")
    for cohort, tests in fresh["cohorts"].items():
        print(clean(cohort))
        for test, bound in tests.items():
            side = "at least" if OWN[test].higher_is_better else "at most"
            print(f"  {test:15} {side} {bound['value']:.4g} {bound['unit']}: median {bound['median']:.4g} of "
                  f"{bound['count']} parts of {bound['nodes']} nodes")  # fmt: skip
    print(f"pinned in {path}")
    return 0


def _figures(arguments: argparse.Namespace) -> list[Sample]:
    """Return the figures of the runs named, or of the store, the newest first; not those of nodes that fail."""
    if arguments.runs:
        runs = sorted((find_run(name, named_store()) for name in arguments.runs), key=started_of, reverse=True)
        failing = [{node["name"] for node in run["nodes"] if node["verdict"] == "fail"} for run in runs]
        return [one for run, bad in zip(runs, failing, strict=True) for one in samples_of(run) if one.node not in bad]
    store = open_store(arguments.store)
    if store is None:
        raise UsageError("no figures to pin: name runs, or a store")
    return samples(store)


class _Floors:
    """The bounds of the platforms: a figure below its own is none of a healthy node, whoever else has such."""

    def __init__(self) -> None:
        self._profiles = ProfileSet()
        self._floors: dict[str, dict[str, float]] = {}

    def holds(self, sample: Sample) -> bool:
        """Tell whether a figure meets the bound of its platform; true where there is none."""
        platform = sample.cohort.partition(",")[0]
        if platform not in self._floors:
            is_known = platform in self._profiles.platforms
            self._floors[platform] = self._profiles.profile(platform).bound_values if is_known else {}
        own = OWN[split(sample.subject)[0]]
        floor = self._floors[platform].get(own.bound)
        return floor is None or (sample.value >= floor if own.higher_is_better else sample.value <= floor)


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
        value = "not measured" if row["value"] is None else f"{row['value']:.4g} {clean(row['unit'])}"
        table.add_row(
            Text(clean(row["node"])), Text(clean(row["subject"])), Text(value),
            _shown(row["earlier"]), _percent(row["change"]), _shown(row["median"]), _percent(row["of_median"]),
        )  # fmt: skip
    Console().print(table)
    return 0


def _rows(mine: list[Sample], beside: list[Sample], pinned: dict[str, Any]) -> list[dict[str, Any]]:
    """Set figures side by side; those that only the earlier run has stand at the end, without a value."""
    before = {(one.node, one.subject): one for one in beside}
    rows = []
    for one in mine:
        test, _ = split(one.subject)
        bound = pinned.get("cohorts", {}).get(one.cohort, {}).get(test)
        median = bound["median"] if bound and bound["unit"] == one.unit else None
        then = before.pop((one.node, one.subject), None)
        earlier = then.value if then is not None and then.unit == one.unit else None
        rows.append({
            "node": one.node, "subject": one.subject, "value": one.value, "unit": one.unit, "earlier": earlier,
            "change": one.value / earlier - 1 if earlier else None, "median": median,
            "of_median": one.value / median - 1 if median else None,
        })  # fmt: skip
    return rows + [
        {"node": one.node, "subject": one.subject, "value": None, "unit": one.unit, "earlier": one.value,
         "change": None, "median": None, "of_median": None}
        for one in before.values()
    ]  # fmt: skip


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
