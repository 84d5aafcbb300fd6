"""
Put nodes under load and judge what they measured: what ``hwcheck baseline run`` and ``hwcheck accept`` share.

A node is read first; one that somebody works on is never loaded. Figures that fail, are in doubt or near their edge are
measured once more, and the second figure counts.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

from hwcheck.baselines.idle import why_not_idle
from hwcheck.baselines.own import sources_to_repeat
from hwcheck.cli import targets
from hwcheck.cli.judging import Bench
from hwcheck.engine import References
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
        outcome: all that it answered, the results of the load among it.
        verdict: what is said of it.
        left_out: why it was not put under load; "" when it was.
    """

    name: str
    target: Target
    outcome: Outcome
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
        self.outcome = outcome
        self.left_out = "it could not be reached"
        if outcome.error is None:
            self.left_out = why_not_idle(take_snapshot(evidence_of(outcome)), ignored)

    def add(self, came: Outcome) -> None:
        """Add what a load has measured; of a figure that was had twice the later one wins, as with every fact."""
        if came.error is not None:
            self.left_out = f"it did not answer under load: {came.error}"
            return
        answers = (*self.outcome.answers, *(answer for answer in came.answers if answer.kind != HELLO))
        self.outcome = replace(self.outcome, answers=answers, fault=self.outcome.fault or came.fault)


class Measuring:
    """
    Measures nodes.

    Args:
        arguments: of the verb: targets, ``load_timeout``, ``idle_ignore``, ``tests`` (sources of the load; [] for all).
        bench: what judges.
        references: what measurements are held against beside the profile.
        complete: adds to the facts of a node before it is judged; raises UsageError where that cannot be.
    """

    def __init__(
        self, arguments: argparse.Namespace, bench: Bench, references: ReferencesOf,
        complete: Callable[[Snapshot], None] = lambda _: None,
    ) -> None:  # fmt: skip
        self._arguments = arguments
        self._bench = bench
        self._references = references
        self._complete = complete

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
            Measured(node.outcome.name, node.outcome.target, node.outcome, self._judge(node, final=True), node.left_out)
            for node in nodes
        ]  # fmt: skip

    def only_judge(self, read: Iterable[Outcome]) -> list[Measured]:
        """Judge nodes that were just read, and put none under load."""
        nodes = [_Node(outcome, self._arguments.idle_ignore) for outcome in read]
        return [
            Measured(node.outcome.name, node.outcome.target, node.outcome, self._judge(node, final=True))
            for node in nodes
        ]

    def _load(self, nodes: Iterable[_Node], only: tuple[str, ...]) -> None:
        able = {node.outcome.target.name: node for node in nodes if not node.left_out}
        if able:
            for outcome in read_nodes(self._arguments, LOAD, list(able), only):
                able[outcome.target.name].add(outcome)

    def _judge(self, node: _Node, *, final: bool) -> NodeVerdict:
        pipeline, evidence = self._bench.pipeline(node.outcome.target, final=final), evidence_of(node.outcome)
        if evidence.unreachable:
            return pipeline.judge(evidence)
        snapshot = take_snapshot(evidence)
        self._complete(snapshot)
        return pipeline.judge_snapshot(snapshot, references=self._references(snapshot))
