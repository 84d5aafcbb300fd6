"""Processes on a GPU are information."""

from __future__ import annotations

from hwcheck.checks import RELATIONS
from hwcheck.engine import Judge
from hwcheck.facts import Fact, Snapshot, gpu_index
from hwcheck.findings import Status
from hwcheck.profiles.layers import Profile


def test_processes_are_listed_and_never_a_fault() -> None:
    """No process is a pass, some are told, and more than three are counted."""
    snapshot = Snapshot()
    snapshot.put(gpu_index(0), "gpu.processes", Fact(()))
    some = tuple({"pid": pid, "type": "C", "name": "train"} for pid in range(5))
    snapshot.put(gpu_index(1), "gpu.processes", Fact(some))
    judge = Judge(Profile("test", "test", ("test",), {}, {}, ""))
    judge.checks = [RELATIONS["process.leftover"]]
    none, five = judge.findings(snapshot)
    assert none.status is Status.PASS
    assert five.status is Status.SKIP
    assert "train (0)" in five.message
    assert "2 more" in five.message
