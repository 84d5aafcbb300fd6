"""Measurements between nodes: what is asked of whom, with the transports made up."""

from __future__ import annotations

import argparse
from typing import Any, Self

import pytest

from hwcheck.cli import measuring_pairs
from hwcheck.errors import UsageError
from hwcheck.facts import Fact, Snapshot, Subject
from hwcheck.transports.outcome import Outcome
from hwcheck.transports.stream import Answer
from hwcheck.transports.target import Target


class Collection:
    """No connection at all."""

    collect = None

    def __init__(self, _arguments: argparse.Namespace) -> None:
        """Take what the real one takes."""

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """End."""


def node(name: str, gpus: int = 2) -> tuple[Target, Snapshot]:
    """Make a node with so many GPUs."""
    snapshot = Snapshot(name)
    for number in range(gpus):
        snapshot.put(Subject("gpu", f"0000:{number:02x}:00.0"), "gpu.index", Fact(number))
    return Target(name), snapshot


def answer(kind: str) -> Answer:
    """Make an answer of a node."""
    return Answer(kind, "ok", 1.0, "", "", b"")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """Return what was asked for, in order."""
    told: list[tuple[str, Any]] = []

    def pairs(plan: Any, reached: Any, *_: object, **__: object) -> dict[str, Outcome]:
        told.append(("pairs", sorted({pair.test for pair in plan.pairs})))
        return {name: Outcome(target, (answer("pair"),)) for name, target in reached.items()}

    def collective(head: Target, hosts: list[str], gpus: int, *_: object, **__: object) -> Outcome:
        told.append(("nccl", (head.name, hosts, gpus)))
        return Outcome(head, (answer("nccl"),))

    monkeypatch.setattr(measuring_pairs, "measure_pairs", pairs)
    monkeypatch.setattr(measuring_pairs, "measure_collective", collective)
    monkeypatch.setattr(measuring_pairs.targets, "Collection", Collection)
    return told


def measure(*tests: str, counts: tuple[int, ...] = (2, 2, 2)) -> dict[str, list[str]]:
    """Measure between nodes with so many GPUs each; returns node → kinds of its answers."""
    nodes = {f"n{number}": node(f"n{number}", count) for number, count in enumerate(counts, 1)}
    arguments = argparse.Namespace(gpu_memory=False, pair_seconds=1.0, fanout=8, quiet=True, load_timeout=10.0)
    found = measuring_pairs.measure_between(arguments, nodes, tests)
    return {name: [one.kind for one in outcome.answers] for name, outcome in found.items()}


def test_nodes_without_rdma_are_measured_by_tcp(asked: list[tuple[str, Any]]) -> None:
    """Where nothing is asked for, and no collective is run then."""
    assert set(measure()) == {"n1", "n2", "n3"}
    assert asked == [("pairs", ["tcp"])]


def test_a_collective_is_run_once_for_all_nodes_where_it_is_asked_for(asked: list[tuple[str, Any]]) -> None:
    """On the first of them, whose result it is; pairs only where they are asked for as well."""
    assert measure("nccl") == {"n1": ["nccl"]}
    assert asked == [("nccl", ("n1", ["n1", "n2", "n3"], 2))]
    assert measure("tcp", "nccl")["n1"] == ["pair", "nccl"]


def test_a_collective_needs_nodes_that_are_alike(asked: list[tuple[str, Any]]) -> None:
    """Nothing is launched over nodes with different numbers of GPUs."""
    with pytest.raises(UsageError, match="n1 2, n2 4"):
        measure("nccl", counts=(2, 4))
    assert asked == []
