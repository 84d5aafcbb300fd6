"""
Put nodes under load and judge what they measured: what ``hwcheck baseline run`` and ``hwcheck accept`` share.

A node is read first; one that somebody works on is never loaded. Figures that fail, are in doubt or near their edge are
measured once more, and the second figure counts.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from hwcheck.baselines.idle import why_not_idle
from hwcheck.baselines.own import sources_to_repeat
from hwcheck.cli import targets
from hwcheck.cli.judging import Bench
from hwcheck.engine import References
from hwcheck.evidence import Evidence
from hwcheck.facts import Snapshot
from hwcheck.findings import NodeVerdict
from hwcheck.parse import take_snapshot
from hwcheck.report.progress import Progress
from hwcheck.transports.gathered import evidence_of
from hwcheck.transports.outcome import HELLO, Outcome
from hwcheck.transports.target import Target

LOAD = "load"
ReferencesOf = Callable[[Snapshot], References]
"""Facts of a node → what its measurements are held against beside the profile."""


@dataclass(frozen=True, slots=True)
class Measured:
    """
    A node that was read and, where that was possible, measured.

    Attributes:
        name: of the node.
        target: how it was reached.
        evidence: all that was read, the results of the load among it.
        verdict: what is said of it.
        left_out: why it was not put under load; "" when it was.
    """

    name: str
    target: Target
    evidence: Evidence
    verdict: NodeVerdict
    left_out: str = ""


def read_nodes(
    arguments: argparse.Namespace, tier: str, nodes: Collection[str] = (), only: tuple[str, ...] = ()
) -> list[Outcome]:
    """
    Read nodes; in the order of the inventory.

    Args:
        arguments: of :func:`hwcheck.cli.targets.add_target_options`.
        tier: ``quick``, ``deep`` or ``load``.
        nodes: names; () for all.
        only: sources; () for all of the tier.
    """
    wanted = copy.copy(arguments)
    wanted.tier = tier
    if tier == LOAD:
        wanted.timeout, wanted.off = arguments.load_timeout, []
    if nodes and (arguments.inventory or arguments.nodes):
        wanted.nodes = ",".join(nodes)
    with (
        targets.Collection(wanted, only) as collection,
        Progress(len(collection.targets), targets.fold, quiet=arguments.quiet) as progress,
    ):
        found = []
        for outcome in collection:
            progress.count(outcome.name, unreachable=outcome.error is not None)
            found.append((collection.position(outcome), outcome))
        return [outcome for _, outcome in sorted(found, key=lambda pair: pair[0])]


class _Node:
    """A node while it is measured."""

    def __init__(self, outcome: Outcome, ignored: Collection[str]) -> None:
        self.target = outcome.target
        self.evidence = evidence_of(outcome)
        self.name = self.evidence.node
        self.left_out = "it could not be reached" if self.evidence.unreachable else ""
        self.left_out = self.left_out or why_not_idle(take_snapshot(self.evidence), ignored)

    def add(self, outcome: Outcome) -> None:
        """Add what a load has measured; of a figure that was had twice the later one wins, as with every fact."""
        came = evidence_of(outcome)
        if came.unreachable:
            self.left_out = f"it did not answer under load: {came.unreachable}"
            return
        self.evidence.outputs += [output for output in came.outputs if output.kind != HELLO]
        self.evidence.broken += came.broken


class Measuring:
    """
    Measures nodes.

    Args:
        arguments: of the verb: targets, ``load_timeout``, ``idle_ignore``, ``tests`` (sources of the load; [] for all).
        bench: what judges.
        references: what measurements are held against beside the profile.
    """

    def __init__(self, arguments: argparse.Namespace, bench: Bench, references: ReferencesOf) -> None:
        self._arguments = arguments
        self._bench = bench
        self._references = references

    def measure(self, read: Iterable[Outcome]) -> list[Measured]:
        """
        Measure nodes that were just read.

        Args:
            read: their answers to the quick or deep tier.
        """
        nodes = [_Node(outcome, self._arguments.idle_ignore) for outcome in read]
        self._load(nodes, tuple(name for names in self._arguments.tests for name in names.split(",") if name))
        again: dict[tuple[str, ...], list[_Node]] = {}
        for node in nodes:
            names = () if node.left_out else sources_to_repeat(self._judge(node, final=False).findings)
            if names:
                again.setdefault(names, []).append(node)
        for names, some in again.items():
            self._load(some, names)
        return [
            Measured(node.name, node.target, node.evidence, self._judge(node, final=True), node.left_out)
            for node in nodes
        ]  # fmt: skip

    def _load(self, nodes: Iterable[_Node], only: tuple[str, ...]) -> None:
        able = {node.target.name: node for node in nodes if not node.left_out}
        if able:
            for outcome in read_nodes(self._arguments, LOAD, list(able), only):
                able[outcome.target.name].add(outcome)

    def _judge(self, node: _Node, *, final: bool) -> NodeVerdict:
        pipeline = self._bench.pipeline(node.target, final=final)
        if node.evidence.unreachable:
            return pipeline.judge(node.evidence)
        snapshot = take_snapshot(node.evidence)
        return pipeline.judge_snapshot(snapshot, references=self._references(snapshot))
