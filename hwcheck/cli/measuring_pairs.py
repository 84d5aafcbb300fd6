"""Measurements between the nodes of one command line: who with whom, by the transport that reads them too."""

from __future__ import annotations

import argparse
import copy
import sys
from collections.abc import Mapping
from dataclasses import replace

from hwcheck.baselines.pairs import TESTS, plan_pairs
from hwcheck.baselines.ports import ends_of
from hwcheck.cli import targets
from hwcheck.errors import UsageError
from hwcheck.facts import Snapshot
from hwcheck.transports.collective import measure_collective
from hwcheck.transports.fan_out import Collect
from hwcheck.transports.outcome import Outcome
from hwcheck.transports.pair_request import Manner
from hwcheck.transports.pairs import measure_pairs
from hwcheck.transports.target import Target

COLLECTIVE = "nccl"
"""An all-reduce over all nodes at once, by mpirun or srun on the first of them."""
BETWEEN = (*TESTS, COLLECTIVE)
"""What ``--test`` may name beside the sources of one node."""
Known = Mapping[str, tuple[Target, Snapshot]]
"""Name of a node → how it is reached, and its facts."""


def measure_between(arguments: argparse.Namespace, nodes: Known, tests: tuple[str, ...]) -> dict[str, Outcome]:
    """
    Measure between nodes, each pair by itself and no node in two at once.

    Args:
        arguments: of the verb: how nodes are reached, ``pair_seconds``, ``gpu_memory``.
        nodes: idle ones, whose load is wanted.
        tests: of :data:`BETWEEN`; () for RDMA where there is any, else TCP.

    Returns:
        Node → what to add to its evidence.
    """
    of_pairs = tuple(test for test in tests if test != COLLECTIVE)
    with targets.Collection(copy.copy(arguments)) as collection:
        found = _pairs(arguments, nodes, of_pairs, collection.collect) if of_pairs or not tests else {}
        if COLLECTIVE in tests:
            outcome = _collective(arguments, nodes, collection.collect)
            before = found.get(outcome.target.name)
            answers = (*before.answers, *outcome.answers) if before is not None else outcome.answers
            found[outcome.target.name] = replace(outcome, answers=answers)
    return found


def _pairs(arguments: argparse.Namespace, nodes: Known, tests: tuple[str, ...], collect: Collect) -> dict[str, Outcome]:
    ends = [ends_of(snapshot, name, target.failure_domain) for name, (target, snapshot) in nodes.items()]
    plan = plan_pairs(ends, tests, gpu=arguments.gpu_memory)
    manner = Manner(seconds=arguments.pair_seconds, gpu=arguments.gpu_memory)
    reached = {name: target for name, (target, _) in nodes.items()}
    at_once = max(1, arguments.fanout // 2)
    return measure_pairs(plan, reached, collect, manner, at_once=at_once, say=lambda text: _say(arguments, text))


def _collective(arguments: argparse.Namespace, nodes: Known, collect: Collect) -> Outcome:
    """
    Run one all-reduce over all nodes; its result is the first one's.

    Raises:
        UsageError: they have different numbers of GPUs.
    """
    counts = {name: len(snapshot.subjects("gpu")) for name, (_, snapshot) in nodes.items()}
    if len(set(counts.values())) != 1:
        told = ", ".join(f"{name} {count}" for name, count in list(counts.items())[:6])
        raise UsageError(f"--test {COLLECTIVE} needs nodes with as many GPUs each: {told}")
    head, (target, _) = next(iter(nodes.items()))
    _say(arguments, f"{COLLECTIVE} over {len(nodes)} nodes, launched on {head}")
    return measure_collective(target, list(nodes), counts[head], collect, limit=arguments.load_timeout)


def _say(arguments: argparse.Namespace, text: str) -> None:
    if not arguments.quiet:
        print(f"hwcheck: {text}", file=sys.stderr, flush=True)
