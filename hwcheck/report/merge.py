"""Several runs as one: nodes that were judged apart, in one report."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from hwcheck.errors import UsageError
from hwcheck.fleet import FLEET
from hwcheck.report.run_reading import started_of

_ORDER = ("pass", "unknown", "fail")


def merge(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """
    Put runs together.

    Of a node that several have the run that began last counts, in whichever order they are named. Nodes without a name
    are never taken for one and the same. A comparison of the nodes of a run stays as long as one of them counts.

    Args:
        runs: of schema ``hwcheck.run/1``.

    Returns:
        A run of the same schema: of the kind and profile that all share, else of none and ``several``.

    Raises:
        UsageError: there is none, or one has no time.
    """
    if not runs:
        raise UsageError("there is no run to report")
    if len(runs) == 1:
        return runs[0]
    in_time = sorted(range(len(runs)), key=lambda number: started_of(runs[number]))
    last = {node["name"]: number for number in in_time for node in runs[number]["nodes"]}
    merged: dict[str, Any] = {
        **runs[in_time[0]], "profile": _shared([run["profile"] for run in runs], {"name": "several", "hash": "0" * 16}),
    }  # fmt: skip
    for key in ("nodes", "findings", "incidents", "measurements", "stages", "changes"):
        merged[key] = []
    for number, run in enumerate(runs):
        own = {node["name"] for node in run["nodes"] if node["platform"] != FLEET}
        names = {name for name in own if not name or last[name] == number}
        across = {node["name"] for node in run["nodes"] if node["platform"] == FLEET} if names or not own else set()
        _add(merged, run, {**dict.fromkeys(names), **{name: _free(name, merged) for name in across}})
    said = [node["verdict"] for node in merged["nodes"]] + [run["verdict"] for run in runs if not run["nodes"]]
    merged["verdict"] = max(said, key=_ORDER.index)
    kind = _shared([run.get("kind") for run in runs], None)
    for key in ("kind", "run", "ended", "who"):
        merged.pop(key, None)
    return {**merged, "kind": kind} if kind else merged


def _free(name: str, merged: dict[str, Any]) -> str:
    """Return a name that no comparison of another run has taken."""
    taken = {node["name"] for node in merged["nodes"]}
    numbered = (f"{name} {number}" for number in itertools.count(2))
    return next(one for one in itertools.chain([name], numbered) if one not in taken)


def _add(merged: dict[str, Any], run: dict[str, Any], names: Mapping[str, str | None]) -> None:
    """Add what a run says of these nodes, under other names where they have one; indices of findings are counted on."""

    def called(row: dict[str, Any], key: str) -> dict[str, Any]:
        return {**row, key: names[row[key]] or row[key]}

    places: dict[int, int] = {}
    for index, finding in enumerate(run["findings"]):
        if finding["node"] in names:
            places[index] = len(merged["findings"])
            merged["findings"].append({**called(finding, "node"), "id": places[index]})
    merged["nodes"] += [called(node, "name") for node in run["nodes"] if node["name"] in names]
    for incident in run["incidents"]:
        if incident["lead"] in places:
            follows = [places[index] for index in incident["follows"] if index in places]
            merged["incidents"].append({**incident, "lead": places[incident["lead"]], "follows": follows})
    for key in ("measurements", "stages", "changes"):
        # runs of apply alone have changes and no nodes
        rows = [one for one in run.get(key, ()) if one["node"] in names or not run["nodes"]]
        merged[key] += [called(one, "node") if one["node"] in names else one for one in rows]


def _shared(values: Sequence[Any], other: Any) -> Any:
    return values[0] if all(value == values[0] for value in values) else other
