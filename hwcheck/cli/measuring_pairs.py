"""Measurements between the nodes of one command line: who with whom, by the transport that reads them too."""

from __future__ import annotations

import argparse
import copy
import sys
from collections.abc import Mapping

from hwcheck.baselines.pairs import plan_pairs
from hwcheck.baselines.ports import ends_of
from hwcheck.cli import targets
from hwcheck.facts import Snapshot
from hwcheck.transports.outcome import Outcome
from hwcheck.transports.pair_request import Manner
from hwcheck.transports.pairs import measure_pairs
from hwcheck.transports.target import Target


def measure_between(
    arguments: argparse.Namespace, nodes: Mapping[str, tuple[Target, Snapshot]], tests: tuple[str, ...]
) -> dict[str, Outcome]:
    """
    Measure between nodes, each pair by itself and no node in two at once.

    Args:
        arguments: of the verb: how nodes are reached, ``pair_seconds``, ``gpu_memory``.
        nodes: name → how it is reached, and its facts; idle, and their load is wanted.
        tests: () for RDMA where there is any, else TCP.

    Returns:
        Node → what to add to its evidence.
    """
    ends = [ends_of(snapshot, name, target.failure_domain) for name, (target, snapshot) in nodes.items()]
    plan = plan_pairs(ends, tests, gpu=arguments.gpu_memory)
    manner = Manner(seconds=arguments.pair_seconds, gpu=arguments.gpu_memory)

    def say(text: str) -> None:
        if not arguments.quiet:
            print(f"hwcheck: {text}", file=sys.stderr, flush=True)

    with targets.Collection(copy.copy(arguments)) as collection:
        reached = {name: target for name, (target, _) in nodes.items()}
        at_once = max(1, arguments.fanout // 2)
        return measure_pairs(plan, reached, collection.collect, manner, at_once=at_once, say=say)
