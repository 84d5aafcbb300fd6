"""
Put nodes under load and judge what they measured: what ``hwcheck baseline run`` and ``hwcheck accept`` share.

A node is read first; one that somebody works on is never loaded. Figures that fail, are in doubt or near their edge are
measured once more, and the second figure counts.
"""

from __future__ import annotations

import argparse
import copy
import sys
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

from hwcheck.baselines.idle import why_not_idle
from hwcheck.baselines.own import sources_to_repeat
from hwcheck.checks.coverage import MEASURED
from hwcheck.cli import targets
from hwcheck.cli.judging import Bench
from hwcheck.cli.measuring_pairs import BETWEEN, measure_between
from hwcheck.engine import References
from hwcheck.errors import UsageError
from hwcheck.facts import NODE, Snapshot
from hwcheck.findings import Finding, NodeVerdict, Status, Urgency
from hwcheck.parse import take_snapshot
from hwcheck.report.progress import Progress
from hwcheck.sources import load_catalogue
from hwcheck.transports.gathered import evidence_of
from hwcheck.transports.outcome import HELLO, Outcome
from hwcheck.transports.target import Target

LOAD = "load"
UNREACHED = "it could not be reached"
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


def chosen_tests(arguments: argparse.Namespace) -> tuple[str, ...]:
    """
    Return what ``--test`` names: sources of the load of one node, and tests between two; () for all.

    Raises:
        UsageError: one is none; a slip of the pen would measure nothing.
    """
    known = [*(source.id for source in load_catalogue.SOURCES), *BETWEEN]
    chosen = tuple(name for names in arguments.tests for name in names.split(",") if name)
    for name in chosen:
        if name not in known:
            raise UsageError(f"--test {name}: measures nothing; there are {', '.join(known)}")
    return chosen


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
        self.left_out = UNREACHED
        if outcome.error is None:
            self.left_out = why_not_idle(take_snapshot(evidence_of(outcome)), ignored)

    def add(self, came: Outcome) -> None:
        """Add what a load has measured; of a figure that was had twice the later one wins, as with every fact."""
        if came.error is not None:
            self.left_out = f"it did not answer under load: {came.error}"
            return
        boots = [one.hello.get("boot_id", "") for one in (self.outcome, came)]
        if all(boots) and boots[0] != boots[1]:
            self.left_out = "it restarted before it was measured, or under the load"
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
        complete: adds to the facts of a node before it is judged; says why that cannot be, "" when it was done.

    Raises:
        UsageError: a test is none.
    """

    def __init__(
        self, arguments: argparse.Namespace, bench: Bench, references: ReferencesOf,
        complete: Callable[[Snapshot], str] = lambda _: "",
    ) -> None:  # fmt: skip
        self._arguments = arguments
        self._bench = bench
        self._references = references
        self._complete = complete
        self._tests = chosen_tests(arguments)

    def measure(self, read: Iterable[Outcome]) -> list[Measured]:
        """
        Measure nodes that were just read.

        Args:
            read: their answers to the quick or deep tier.
        """
        nodes = [_Node(outcome, self._arguments.idle_ignore) for outcome in read]
        single = tuple(name for name in self._tests if name not in BETWEEN)
        between = tuple(name for name in self._tests if name in BETWEEN)
        if single or not between:
            self._measure_each(nodes, single)
        if (between or not single) and not self._arguments.no_pairs:
            self._measure_between(nodes, between)
        return [self._measured(node) for node in nodes]

    def _measure_each(self, nodes: list[_Node], only: tuple[str, ...]) -> None:
        self._load(nodes, only)
        again: dict[tuple[str, ...], list[_Node]] = {}
        for node in nodes:
            names = () if node.left_out else self._to_repeat(node)
            if names:
                again.setdefault(names, []).append(node)
        for names, some in again.items():
            self._load(some, names)

    def _measure_between(self, nodes: list[_Node], tests: tuple[str, ...]) -> None:
        able = {node.outcome.target.name: node for node in nodes if not node.left_out}
        if len(able) > 1:
            known = {name: (one.outcome.target, take_snapshot(evidence_of(one.outcome))) for name, one in able.items()}
            for name, outcome in measure_between(self._arguments, known, tests).items():
                able[name].add(outcome)
        elif tests:
            print("hwcheck: nothing is measured between nodes: that needs two that are idle", file=sys.stderr)

    def only_judge(self, read: Iterable[Outcome]) -> list[Measured]:
        """Judge nodes that were just read, and put none under load."""
        found = []
        for outcome in read:
            verdict, why = self._judge(outcome, final=True)
            found.append(Measured(outcome.name, outcome.target, outcome, _noted(verdict, why), why))
        return found

    def _measured(self, node: _Node) -> Measured:
        """Judge a node for good; that it was not measured is a finding, so that nobody takes it for a healthy one."""
        verdict, why = self._judge(node.outcome, final=True)
        why = node.left_out or why or ("" if verdict.measurements else "no test gave a figure")
        return Measured(node.outcome.name, node.outcome.target, node.outcome, _noted(verdict, why), why)

    def _to_repeat(self, node: _Node) -> tuple[str, ...]:
        """Name the tests to run once more on a node: of those that were asked for only."""
        names = sources_to_repeat(self._judge(node.outcome, final=False)[0].findings)
        return tuple(name for name in names if not self._tests or name in self._tests)

    def _load(self, nodes: Iterable[_Node], only: tuple[str, ...]) -> None:
        able = {node.outcome.target.name: node for node in nodes if not node.left_out}
        if able:
            for outcome in read_nodes(self._arguments, LOAD, list(able), only):
                able[outcome.target.name].add(outcome)

    def _judge(self, outcome: Outcome, *, final: bool) -> tuple[NodeVerdict, str]:
        """Judge what a node has answered; and say why its facts could not be completed."""
        pipeline, evidence = self._bench.pipeline(outcome.target, final=final), evidence_of(outcome)
        if evidence.unreachable:
            return pipeline.judge(evidence), ""
        snapshot = take_snapshot(evidence)
        why = self._complete(snapshot)
        return pipeline.judge_snapshot(snapshot, references=self._references(snapshot)), why


def _noted(verdict: NodeVerdict, why: str) -> NodeVerdict:
    """Put why a node was not measured among its findings; of one that was not reached they say it already."""
    if why and why != UNREACHED:
        text = f"it was not measured: {why}"
        verdict.findings.append(Finding(MEASURED, NODE, Status.UNKNOWN, text[:500], Urgency.MAINTENANCE))
    return verdict
