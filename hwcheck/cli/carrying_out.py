"""What ``apply`` and ``accept`` share: a run is written down, carried out, and taken up again where it was killed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hwcheck.apply import drain as drains
from hwcheck.apply import run_folder as states
from hwcheck.apply.roll import Patience, Ports, Reading, Roll
from hwcheck.apply.run_folder import RunFolder
from hwcheck.apply.words import plain
from hwcheck.cli.fleet_reading import FleetReader
from hwcheck.cli.rolling import audit, watch, writer_of
from hwcheck.cli.targets import fold
from hwcheck.facts import NODE, Subject
from hwcheck.findings import Finding, Status
from hwcheck.plan import NodePlan
from hwcheck.plan.file import read_plan
from hwcheck.rollout import plan_waves
from hwcheck.transports.target import Target


def demand_roll_options(arguments: argparse.Namespace) -> None:
    """Refuse what cannot be understood before a node is asked or a run begins; raises UsageError."""
    plan_waves([], arguments.wave.split(","))
    drain_of(arguments)


def write_down(
    run: RunFolder, todo: Sequence[NodePlan], findings: Mapping[str, Sequence[Finding]], arguments: argparse.Namespace
) -> None:
    """
    Record what a new run is to do, before it does anything.

    Args:
        run: locked by the caller.
        todo: plans of the nodes.
        findings: node → what was said of it, on which its plan rests.
        arguments: of the verb: whether it may reboot.
    """
    run.write("before.json", {one.name: _told(findings[one.name]) for one in todo})
    for one in todo:
        run.give(one.name, *for_node(one, arguments))
    run.set_state([one.name for one in todo], states.PLANNED)


def for_node(plan: NodePlan, arguments: argparse.Namespace) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return what a node is given: steps, and acts with the reboot as the last."""
    acts: list[dict[str, Any]] = [{"do": act.do, "target": act.target, "disturbs": act.disturbs} for act in plan.acts]
    if _reboots(plan, arguments):
        acts.append({"do": "reboot", "target": "", "disturbs": "node", "checks": _rebooted_for(plan)})
    return [step.for_node() for step in plan.steps], acts


def _rebooted_for(plan: NodePlan) -> list[str]:
    """Return the ids of the steps that a reboot is for; none when a check without a step wants it for itself."""
    steps = [step for step in plan.steps if {step.id, *step.also} & set(plan.reboot)]
    covered = {id for step in steps for id in (step.id, *step.also)}
    return sorted({step.id for step in steps}) if covered.issuperset(plan.reboot) else []


def _reboots(plan: NodePlan, arguments: argparse.Namespace) -> bool:
    return bool(plan.reboot) and not arguments.no_reboot and not arguments.root


def carry_out(
    arguments: argparse.Namespace, run: RunFolder, reader: FleetReader, plans: Mapping[str, NodePlan],
    targets: list[Target],
) -> str:  # fmt: skip
    """
    Change nodes, as far as the run has not done it yet.

    Args:
        arguments: of the verb.
        run: locked by the caller.
        reader: reads nodes anew.
        plans: node → plan, of all nodes of the run.
        targets: how they are reached.

    Returns:
        Why it holds; "" when all is done.
    """
    audit(f"run {run.name} begins on {len(plans)} nodes: {fold(list(plans))}")
    before = {name: _findings(told) for name, told in (run.read("before.json") or {}).items()}
    roll = Roll(
        run, plans, before, _ports(arguments, run, reader, targets), _patience(arguments),
        {"hwcheck_idle_ignore": arguments.idle_ignore},
    )  # fmt: skip
    left = [plan for name, plan in plans.items() if roll.state(name) in states.UNFINISHED]
    domains = {plan.name: plan.domain for plan in left if plan.domain}
    why = roll.go(plan_waves(left, arguments.wave.split(","), domains, arguments.max_down, arguments.max_domains))
    run.end("held" if why else "done", why)
    audit(f"run {run.name} {'holds: ' + why if why else 'is done'}")
    return why


def what_is_left(
    arguments: argparse.Namespace, run: RunFolder
) -> tuple[FleetReader, dict[str, NodePlan], list[Target]]:
    """
    Take up a run that was killed or is held.

    Args:
        arguments: those of the run.
        run: locked by the caller.

    Returns:
        What reads its nodes, all plans, and how the nodes with work left are reached; [] when there are none.
    """
    plans = {one.name: one for one in read_plan(run.path / "plan.json").nodes if one.name in run.record["nodes"]}
    reader = FleetReader(arguments)
    run.set_state(run.nodes(states.REFUSED, states.FAILED), states.PLANNED)
    nodes = run.nodes(*states.UNFINISHED)
    return reader, plans, [one.target for one in reader.read(nodes)] if nodes else []


def _ports(arguments: argparse.Namespace, run: RunFolder, reader: FleetReader, targets: list[Target]) -> Ports:
    def read(nodes: list[str]) -> dict[str, Reading]:
        return {one.name: Reading(one.planned.verdict.findings, one.boot_id, one.error) for one in reader.read(nodes)}

    def say(text: str) -> None:
        print(plain(text), file=sys.stderr, flush=True)

    return Ports(
        writer_of(arguments, run, targets), read, drain_of(arguments), say,
        lambda total: watch(total, quiet=arguments.quiet),
    )  # fmt: skip


def _patience(arguments: argparse.Namespace) -> Patience:
    freeze = Path(arguments.freeze) if arguments.freeze else None
    return Patience(arguments.settle, arguments.settle, arguments.reboot_timeout, freeze)


def drain_of(arguments: argparse.Namespace) -> drains.Drain | None:
    """Return what takes nodes out of work; raises UsageError where that cannot be understood."""
    return drains.of(arguments.drain, arguments.undrain, arguments.drain_timeout) if arguments.drain else None


def _told(findings: Sequence[Finding]) -> list[list[str]]:
    return [
        [one.check, one.subject.kind, one.subject.id, str(one.status), one.message] for one in findings if one.counts
    ]


def _findings(told: Sequence[Sequence[str]]) -> list[Finding]:
    return [
        Finding(check, Subject(kind, id) if id else NODE, Status(status), message)
        for check, kind, id, status, message in told
    ]
