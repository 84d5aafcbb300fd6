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
from hwcheck.report.json_run import run_object
from hwcheck.report.merge import merge

SCHEMA = json.loads((resources.files("hwcheck") / "report/run.schema.json").read_text(encoding="utf-8"))


def run_of(name: str, status: Status, layers: str = "a" * 16) -> dict[str, Any]:
    """Make a run of one node, with an incident."""
    urgency = None if status is Status.PASS else Urgency.NOW
    findings = [
        Finding("xid.79", NODE, status, "it fell off", urgency), Finding("xid.45", NODE, status, "cleaned up", urgency),
    ]  # fmt: skip
    joined, measured = [Incident(0, (1,), "it follows")], [Measurement("x.y", "x.y", 1.0, "", {})]
    verdict = NodeVerdict(name, "hgx-h200", "pci-id", findings, joined, measured)
    return run_object([verdict], "hwcheck 0.1.0", {"name": "auto", "hash": layers}, "2026-01-01T00:00:00+00:00")


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
