"""Who works on a node: by the holders of its devices, and by what NVML says runs on its GPUs."""

from __future__ import annotations

from typing import Any

import pytest

from hwcheck.baselines.idle import why_not_idle
from hwcheck.facts import NODE, Fact, Missing, Origin, Reason, Snapshot, Subject

HERE = Origin("test")


def node(holders: Any, *running: tuple[dict[str, Any], ...]) -> Snapshot:
    """Return a node with these holders, and what runs on each of its GPUs."""
    snapshot = Snapshot("n1")
    snapshot.put(NODE, "process.holders", Fact(holders, HERE))
    for index, processes in enumerate(running):
        snapshot.put(Subject("gpu", f"0000:{index:02x}:00.0"), "gpu.processes", Fact(processes, HERE))
    return snapshot


def holder(name: str, pid: int = 7) -> dict[str, Any]:
    """Return one process."""
    return {"name": name, "pid": pid}


@pytest.mark.parametrize("name", ["nvidia-persiste", "dcgm-exporter", "nv-fabricmanage"])
def test_daemons_are_no_work(name: str) -> None:
    """They hold devices all the time."""
    assert why_not_idle(node((holder(name),))) == ""
    assert why_not_idle(node((), (holder(f"/usr/bin/{name}"),))) == ""


def test_one_process_is_named_once_however_many_gpus_it_holds() -> None:
    """By its files and by NVML it is the same one."""
    assert why_not_idle(node((), *[(holder("/usr/bin/python3", 9),)] * 8)) == "it is not idle: python3 (9)"
    assert why_not_idle(node((holder("train", 9),), (holder("train", 9),))) == "it is not idle: train (9)"


def test_many_are_cut_short() -> None:
    """Four, and that there are more."""
    told = why_not_idle(node(tuple(holder("rank", pid) for pid in range(1, 9))))
    assert told == "it is not idle: rank (1), rank (2), rank (3), rank (4) and more"


def test_a_site_may_name_programs_that_are_no_work() -> None:
    """By the name that the kernel has."""
    assert why_not_idle(node((holder("agent"),), (holder("/opt/agent"),)), ["agent"]) == ""


def test_where_nobody_can_tell_a_node_is_not_idle() -> None:
    """A list that could not be read is no empty list."""
    told = why_not_idle(node(Missing(Reason.DENIED, "open files of other users")))
    assert told == "who uses its devices could not be told: open files of other users"
    assert "could not be told" in why_not_idle(Snapshot("n1"))
