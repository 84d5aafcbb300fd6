"""Runs of several nodes as one run."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import jsonschema
import pytest

from hwcheck.errors import UsageError
from hwcheck.facts import NODE
from hwcheck.findings import Finding, Incident, Measurement, NodeVerdict, Status, Urgency
from hwcheck.fleet import FLEET
from hwcheck.report.json_run import run_object
from hwcheck.report.merge import merge

SCHEMA = json.loads((resources.files("hwcheck") / "report/run.schema.json").read_text(encoding="utf-8"))


def run_of(name: str, status: Status, layers: str = "a" * 16, hour: int = 0) -> dict[str, Any]:
    """Make a run of one node, with an incident."""
    urgency = None if status is Status.PASS else Urgency.NOW
    findings = [
        Finding("xid.79", NODE, status, "it fell off", urgency), Finding("xid.45", NODE, status, "cleaned up", urgency),
    ]  # fmt: skip
    joined, measured = [Incident(0, (1,), "it follows")], [Measurement("x.y", "x.y", 1.0, "", {})]
    verdict = NodeVerdict(name, "hgx-h200", "pci-id", findings, joined, measured)
    return run_object([verdict], "hwcheck 0.1.0", {"name": "auto", "hash": layers}, f"2026-01-01T{hour:02}:00:00+00:00")


def test_nodes_that_were_judged_apart_are_one_run() -> None:
    """Findings are counted on and incidents still name theirs; the worst verdict is that of all."""
    told = merge([run_of("n1", Status.PASS), run_of("n2", Status.FAIL)])
    jsonschema.validate(told, SCHEMA)
    assert [finding["id"] for finding in told["findings"]] == [0, 1, 2, 3]
    assert [(one["lead"], one["follows"]) for one in told["incidents"]] == [(0, [1]), (2, [3])]
    assert told["verdict"] == "fail"
    assert told["profile"]["name"] == "auto"


def test_the_later_run_of_a_node_counts() -> None:
    """An earlier one of it is left out, its measurements as well."""
    told = merge([run_of("n1", Status.FAIL), run_of("n2", Status.PASS), run_of("n1", Status.PASS, "b" * 16)])
    assert sorted(node["name"] for node in told["nodes"]) == ["n1", "n2"]
    assert told["verdict"] == "pass"
    assert told["profile"]["name"] == "several"
    assert len(told["measurements"]) == 2


def test_one_run_stays_as_it_is_and_none_is_an_error() -> None:
    """Nothing is made up."""
    run = run_of("n1", Status.PASS)
    assert merge([run]) is run
    with pytest.raises(UsageError):
        merge([])


def fleet_of(status: Status, *names: str, hour: int = 0) -> dict[str, Any]:
    """Make a run of several nodes that pass, with their comparison."""
    fine = [Finding("xid.79", NODE, Status.PASS, "none")]
    nodes = [NodeVerdict(name, "hgx-h200", "pci-id", fine) for name in names]
    across = NodeVerdict(FLEET, FLEET, "none", [Finding("driver.same", NODE, status, "two drivers", Urgency.NOW)])
    profile = {"name": "auto", "hash": "a" * 16}
    return run_object([*nodes, across], "hwcheck 0.1.0", profile, f"2026-01-01T{hour:02}:00:00+00:00")


def test_the_run_that_began_last_counts_in_whichever_order_they_are_named() -> None:
    """A shell sorts names, not times."""
    old, new = run_of("n1", Status.FAIL, hour=1), run_of("n1", Status.PASS, hour=2)
    for runs in ([old, new], [new, old]):
        told = merge(runs)
        assert (told["verdict"], len(told["findings"])) == ("pass", 2)
        assert told["started"] == old["started"]


def test_nodes_without_a_name_are_not_one_and_the_same() -> None:
    """Posted outputs of two machines: the failing one must not be lost."""
    told = merge([run_of("", Status.FAIL), run_of("", Status.PASS)])
    assert [node["verdict"] for node in told["nodes"]] == ["fail", "pass"]
    assert told["verdict"] == "fail"


def test_comparisons_of_several_fleets_stand_side_by_side() -> None:
    """What failed across the nodes of one is not lost to another that passes."""
    told = merge([fleet_of(Status.FAIL, "n1", "n2"), fleet_of(Status.PASS, "n3", "n4")])
    across = {node["name"]: node["verdict"] for node in told["nodes"] if node["platform"] == FLEET}
    assert across == {FLEET: "fail", f"{FLEET} 2": "pass"}
    assert {finding["node"] for finding in told["findings"] if finding["check"] == "driver.same"} == set(across)
    assert told["verdict"] == "fail"


def test_a_comparison_of_nodes_that_all_have_a_later_run_is_left_out() -> None:
    """Nothing of it is so any more."""
    told = merge([fleet_of(Status.FAIL, "n1", "n2", hour=1), fleet_of(Status.PASS, "n1", "n2", hour=2)])
    assert [node["verdict"] for node in told["nodes"] if node["platform"] == FLEET] == ["pass"]
    assert told["verdict"] == "pass"


def test_runs_without_nodes_keep_their_verdict_and_their_changes() -> None:
    """A run of apply says what it changed, and judges no node."""
    changes = [{"node": "n1", "check": "gpu.persistence", "status": "failed"}]
    bare = {**run_object([], "hwcheck 0.1.0", {"name": "auto", "hash": "a" * 16}, "2026-01-01T00:00:00+00:00"),
            "verdict": "fail", "changes": changes}  # fmt: skip
    told = merge([bare, run_of("n2", Status.PASS)])
    assert (told["verdict"], told["changes"]) == ("fail", changes)
    assert merge([bare, bare])["verdict"] == "fail"


def test_a_run_whose_time_is_none_is_refused() -> None:
    """Nobody could say which one is the later."""
    with pytest.raises(UsageError, match="no time"):
        merge([run_of("n1", Status.PASS), {**run_of("n1", Status.FAIL), "started": "yesterday"}])
