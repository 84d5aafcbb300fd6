"""Several runs as one: nodes that were judged apart, in one report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hwcheck.errors import UsageError

_ORDER = ("pass", "unknown", "fail")


def merge(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """
    Put runs together.

    Args:
        runs: of schema ``hwcheck.run/1``; the later one of a node counts.

    Returns:
        A run of the same schema: of the kind and profile that all share, else of none and ``several``.

    Raises:
        UsageError: there is none.
    """
    if not runs:
        raise UsageError("there is no run to report")
    if len(runs) == 1:
        return runs[0]
    last = {node["name"]: number for number, run in enumerate(runs) for node in run["nodes"]}
    merged: dict[str, Any] = {
        **runs[0], "profile": _shared([run["profile"] for run in runs], {"name": "several", "hash": "0" * 16}),
        "started": min(run["started"] for run in runs),
    }  # fmt: skip
    for key in ("nodes", "findings", "incidents", "measurements", "stages", "changes"):
        merged[key] = []
    for number, run in enumerate(runs):
        _add(merged, run, {name for name, owner in last.items() if owner == number})
    merged["verdict"] = max((node["verdict"] for node in merged["nodes"]), key=_ORDER.index, default="pass")
    kind = _shared([run.get("kind") for run in runs], None)
    for key in ("kind", "run", "ended", "who"):
        merged.pop(key, None)
    return {**merged, "kind": kind} if kind else merged


def _add(merged: dict[str, Any], run: dict[str, Any], names: set[str]) -> None:
    """Add what a run says of these nodes; indices of findings are counted on."""
    places: dict[int, int] = {}
    for index, finding in enumerate(run["findings"]):
        if finding["node"] in names:
            places[index] = len(merged["findings"])
            merged["findings"].append({**finding, "id": places[index]})
    merged["nodes"] += [node for node in run["nodes"] if node["name"] in names]
    for incident in run["incidents"]:
        if incident["lead"] in places:
            follows = [places[index] for index in incident["follows"] if index in places]
            merged["incidents"].append({**incident, "lead": places[incident["lead"]], "follows": follows})
    for key in ("measurements", "stages", "changes"):
        merged[key] += [one for one in run.get(key, ()) if one["node"] in names]


def _shared(values: Sequence[Any], other: Any) -> Any:
    return values[0] if all(value == values[0] for value in values) else other
