"""Fabric health: the summary, and the details with or without it."""

from __future__ import annotations

from typing import Any

import pytest

from hwcheck.engine import Judge
from hwcheck.facts import Fact, Missing, Reason, Snapshot, gpu_at
from hwcheck.findings import Finding
from hwcheck.profiles import ProfileSet

JUDGE = Judge(ProfileSet().profile("gb200"))
GPU = gpu_at("18:00.0")
ABSENT = Missing(Reason.ABSENT, "N/A")
FINE = {"bandwidth": "Full", "route_unhealthy": False, "route_recovery": False, "access_recovery": False}


def health(**values: Any) -> Finding:
    """Judge the health of one GPU."""
    snapshot = Snapshot()
    for name, value in values.items():
        snapshot.put(GPU, f"gpu.fabric.{name}", Fact(value))
    (finding,) = [one for one in JUDGE.findings(snapshot) if one.check == "fabric.health"]
    return finding


@pytest.mark.parametrize(
    ("values", "status"),
    [
        ({"health": "Healthy"}, "pass"),
        ({"health": "Healthy", **FINE}, "pass"),
        ({"health": "Unhealthy"}, "fail"),
        ({"health": "Limited Capacity", "bandwidth": "Degraded"}, "warn"),
        ({"bandwidth": "Full"}, "pass"),
        ({"bandwidth": "Degraded"}, "warn"),
        ({"health": ABSENT, **FINE}, "pass"),
        ({"health": ABSENT, **FINE, "bandwidth": "Degraded"}, "warn"),
        ({"health": ABSENT, **FINE, "access_recovery": True}, "warn"),
        ({"route_unhealthy": True}, "fail"),
        ({"misconfigured": "No Partition"}, "fail"),
        ({"health": "Healthy", "bandwidth": "Degraded"}, "warn"),
        ({"health": "Healthy", "route_unhealthy": True}, "fail"),
        ({"health": "Gesund"}, "unknown"),
        ({"bandwidth": "halb"}, "unknown"),
        ({"health": ABSENT, "bandwidth": ABSENT}, "skip"),
        ({"health": "Healthy", "bandwidth": Missing(Reason.FAILED, "Unknown Error")}, "unknown"),
    ],
)
def test_the_worst_of_summary_and_details_counts(values: dict[str, Any], status: str) -> None:
    """A detail speaks where there is no summary, and is not covered by one that says Healthy."""
    assert health(**values).status == status


def test_the_reason_is_said() -> None:
    """The message names what is wrong, for the one who has to look."""
    assert "bandwidth Degraded" in health(bandwidth="Degraded").message
