"""Checks on what holds clocks down, or keeps them up."""

from typing import Any

import pytest

from hwcheck.engine import Judge
from hwcheck.facts import NODE, Fact, Snapshot, gpu_at
from hwcheck.profiles import ProfileSet

PROFILES = ProfileSet()
IDLE = {
    "gpu.clocks.reason.idle": True, "gpu.clocks.sm": 345, "gpu.clocks.max_sm": 1980, "gpu.persistence_mode": True,
    "gpu.processes": (),
}  # fmt: skip
WAITING = ({"pid": 7, "type": "C", "name": "python3"},)


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({}, "pass", "idle at 345 of 1980 MHz"),
        ({"gpu.clocks.sm": 1200}, "warn", "locked, or a job ended this moment"),
        ({"gpu.clocks.sm": 1980, "gpu.processes": WAITING}, "skip", "a process on the GPU"),
        ({"gpu.clocks.sm": 1980, "gpu.persistence_mode": False}, "skip", "just started"),
        ({"gpu.clocks.sm": 1980, "gpu.clocks.reason.idle": False}, "skip", "not idle"),
    ],
)
def test_only_a_gpu_that_nobody_uses_tells_of_a_lock(changes: dict[str, Any], status: str, words: str) -> None:
    """A waiting process keeps clocks up, and without persistence mode the GPU has just been started by us."""
    snapshot = Snapshot()
    snapshot.put(NODE, "evidence.collected", Fact(value=True))
    for name, value in {**IDLE, **changes}.items():
        snapshot.put(gpu_at("01:00.0"), name, Fact(value))
    (finding,) = (
        finding for finding in Judge(PROFILES.profile("hgx-h200")).findings(snapshot) if finding.check == "clocks.lock"
    )
    assert finding.status == status
    assert words in finding.message
