"""Plan what was read, and print or keep it: what ``hwcheck plan`` does once nodes are being read."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hwcheck import __version__
from hwcheck.cli.judging import Bench
from hwcheck.cli.targets import Collection, fold
from hwcheck.errors import UsageError
from hwcheck.facts import Snapshot
from hwcheck.findings import NodeVerdict, Status
from hwcheck.parse import take_snapshot, take_snapshots
from hwcheck.pipeline import Pipeline
from hwcheck.places import write_whole
from hwcheck.plan import NodePlan, Plan, check_asked, plan_node
from hwcheck.plan.file import dump_plan
from hwcheck.profiles.identify import GENERIC
from hwcheck.readers import read_paths
from hwcheck.report.progress import Progress
from hwcheck.transports.gathered import evidence_of
from hwcheck.transports.outcome import Outcome

WORK, UNTOLD = 4, 3


@dataclass(frozen=True, slots=True)
class Planned:
    """
    A node, judged and planned.

    Attributes:
        verdict: what was said of it.
        plan: what would be changed.
    """

    verdict: NodeVerdict
    plan: NodePlan

    @property
    def told(self) -> bool:
        """Whether all that was asked of it was answered, so that nothing can be missing in the plan."""
        unknown = any(finding.status is Status.UNKNOWN and finding.counts for finding in self.verdict.findings)
        return not (self.plan.refused or unknown)


class Planning:
    """
    Judges and plans.

    Args:
        arguments: of :func:`hwcheck.cli.plan.add_plan_options`.

    Raises:
        ProfileError: a layer or waiver file does not load.
        UsageError: no such family, or an opt-in that names nothing.
    """

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._bench = Bench(arguments)
        self._asked = tuple(name for names in arguments.opt_in for name in names.split(",") if name)
        profiles = self._bench.posted.profiles
        unknown = check_asked(self._asked, profiles.profile(arguments.profile or GENERIC), profiles.families)
        if unknown:
            raise UsageError(f"--opt-in {unknown}: no check and no family")
        self.name = arguments.profile or "auto"

    def plan(self, planned: Sequence[Planned]) -> Plan:
        """Put nodes together."""
        profile = {"name": self.name, "hash": self._bench.posted.profiles.hash}
        created = self._bench.started.isoformat(timespec="seconds")
        return Plan(f"hwcheck {__version__}", profile, created, tuple(one.plan for one in planned))

    def of_evidence(self, paths: list[str]) -> tuple[Planning, list[Planned]]:
        """Plan by evidence named on the command line."""
        planned: list[Planned] = []
        for evidence in read_paths(paths):
            if evidence.unreachable:
                planned.append(self._unread(self._bench.posted.judge(evidence)))
                continue
            planned.extend(self._of_snapshot(self._bench.posted, snapshot) for snapshot in take_snapshots(evidence))
        if not planned:
            raise UsageError("nothing to plan by in " + ", ".join(paths))
        return self, planned

    def of_nodes(self, collection: Collection, *, quiet: bool) -> tuple[Planning, list[Planned]]:
        """Plan nodes as they answer; in the order of the inventory."""
        for target in collection.targets:
            self._bench.pipeline(target)  # a host's layer that does not load stops before anything is read
        found: list[tuple[int, Planned]] = []
        with Progress(len(collection.targets), fold, quiet=quiet) as progress:
            for outcome in collection:
                one = self.of_outcome(outcome)
                found.append((collection.position(outcome), one))
                progress.count(outcome.name, failing=not one.plan.is_empty, unreachable=outcome.error is not None)
        return self, [one for _, one in sorted(found, key=lambda pair: pair[0])]

    def of_outcome(self, outcome: Outcome) -> Planned:
        """Plan one node that was read."""
        pipeline, evidence = self._bench.pipeline(outcome.target), evidence_of(outcome)
        if evidence.unreachable:
            return self._unread(pipeline.judge(evidence))
        one = self._of_snapshot(pipeline, take_snapshot(evidence))
        return replace(one, plan=replace(one.plan, failure_domain=outcome.target.failure_domain))

    def _of_snapshot(self, pipeline: Pipeline, snapshot: Snapshot) -> Planned:
        verdict = pipeline.judge_snapshot(snapshot)
        profile = pipeline.profiles.profile(verdict.platform)
        return Planned(verdict, plan_node(verdict, snapshot, profile, self._asked, pipeline.only))

    def _unread(self, verdict: NodeVerdict) -> Planned:
        profile = self._bench.posted.profiles.profile(verdict.platform)
        return Planned(verdict, plan_node(verdict, None, profile, self._asked))


def tell(arguments: argparse.Namespace, made: tuple[Planning, list[Planned]]) -> int:
    """Keep and print a plan; returns the exit code."""
    planning, planned = made
    plan = planning.plan(planned)
    if arguments.output is not None:
        keep(arguments.output, dump_plan(plan))
    if arguments.format == "json":
        sys.stdout.write(dump_plan(plan))
    elif arguments.format == "ansible-vars":
        from hwcheck.report.plan_vars import ansible_vars  # noqa: PLC0415 - only this form needs it

        sys.stdout.write(ansible_vars(plan.nodes))
    else:
        from hwcheck.report.plan_text import print_plan  # noqa: PLC0415 - rich is slow to import

        print_plan(plan.nodes, fold)
        if arguments.output is not None:
            print(f"hwcheck: kept in {arguments.output}", file=sys.stderr)
    sys.stdout.flush()
    return exit_code(planned, detailed=arguments.detailed_exitcode)


def exit_code(planned: Iterable[Planned], *, detailed: bool) -> int:
    """Return 4 where there is work and that was asked for, else 3 where something could not be told, else 0."""
    nodes = list(planned)
    if detailed and any(not one.plan.is_empty for one in nodes):
        return WORK
    return 0 if all(one.told for one in nodes) else UNTOLD


def keep(path: Path, text: str) -> None:
    """
    Write a file whole or not at all, readable by its owner only.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        write_whole(path, text.encode())
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error
