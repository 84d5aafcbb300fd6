"""
What ``hwcheck apply`` does: read → plan → consent → roll out, in a run folder of its own.

Exit code: 0 all that was to be changed is changed and right · 1 something could not be changed, a node has become
worse, or the roll-out holds · 3 nothing of that, but a node could not be reached or was not idle · 2 usage.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hwcheck.apply import drain as drains
from hwcheck.apply import run_folder as states
from hwcheck.apply.ansible import NodeResult
from hwcheck.apply.roll import Patience, Ports, Reading, Roll
from hwcheck.apply.run_folder import RunFolder
from hwcheck.apply.words import plain, printable
from hwcheck.cli.fleet_reading import FleetReader, Judged
from hwcheck.cli.rolling import audit, demand_writer, holder, home, kept_options, restored_options, watch, writer_of
from hwcheck.cli.targets import fold
from hwcheck.errors import UsageError
from hwcheck.facts import NODE, Subject
from hwcheck.findings import Finding, Status
from hwcheck.plan import NodePlan, Plan
from hwcheck.plan.file import plan_object, read_plan
from hwcheck.report.plan_text import print_plan
from hwcheck.rollout import plan_waves
from hwcheck.transports.target import Target


def apply(arguments: argparse.Namespace) -> int:
    """Carry out the verb."""
    if arguments.evidence:
        raise UsageError("nothing can be changed on evidence; name nodes (-i, -w), an image (--root), or none")
    _check_roll_options(arguments)
    if arguments.resume:
        return _resume(arguments)
    reader = FleetReader(arguments)
    found = sorted(reader.read(quiet=False), key=lambda one: one.place)
    judged = {one.name: one for one in found}
    plan = _plan(arguments, reader, judged)
    print_plan(plan.nodes, fold, is_all=False)
    sys.stdout.flush()
    todo = [one for one in plan.nodes if not one.is_empty]
    short = not all(one.planned.told for one in judged.values())
    if not todo:
        print("Nothing to do, nothing was changed.")
        return 3 if short else 0
    states.demand_file_names(one.name for one in todo)
    targets = [judged[one.name].target for one in todo]
    demand_writer(arguments, targets)
    if arguments.dry_run:
        return _dry_run(arguments, todo, targets)
    _demand_consent(arguments, todo)
    run = RunFolder.new(home(), kept_options(arguments), plan_object(plan), holder())
    with run.locked():
        write_down(run, todo, {one.name: judged[one.name].planned.verdict.findings for one in todo}, arguments)
        return _roll(arguments, run, reader, {one.name: one for one in todo}, targets, short=short)


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
        run.give(one.name, *_for_node(one, arguments))
    run.set_state([one.name for one in todo], states.PLANNED)


def _check_roll_options(arguments: argparse.Namespace) -> None:
    """Refuse what cannot be understood before a node is asked or a run begins."""
    plan_waves([], arguments.wave.split(","))
    _drain_of(arguments)


def _drain_of(arguments: argparse.Namespace) -> drains.Drain | None:
    return drains.of(arguments.drain, arguments.undrain, arguments.drain_timeout) if arguments.drain else None


def _plan(arguments: argparse.Namespace, reader: FleetReader, judged: Mapping[str, Judged]) -> Plan:
    """Plan anew, or take the reviewed plan for the nodes that are asked."""
    if not arguments.planfile:
        return reader.planning.plan([one.planned for one in judged.values()])
    reviewed = read_plan(Path(arguments.planfile))
    strangers = [plan.name for plan in reviewed.nodes if plan.name not in judged and not plan.is_empty]
    if strangers:
        raise UsageError(f"{arguments.planfile} changes {fold(strangers)}, which the command line does not name")
    return reviewed


def _demand_consent(arguments: argparse.Namespace, todo: Sequence[NodePlan]) -> None:
    if arguments.yes:
        return
    count = f"{len(todo)} node{'s' if len(todo) > 1 else ''}"
    if not sys.stdin.isatty():
        raise UsageError(f"{count} would be changed; --yes says that this is wanted")
    print(f"Change {count}? Type yes: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() != "yes":
        raise UsageError("nothing was changed")


def _for_node(plan: NodePlan, arguments: argparse.Namespace) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
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


def _roll(
    arguments: argparse.Namespace, run: RunFolder, reader: FleetReader, plans: Mapping[str, NodePlan],
    targets: list[Target], *, short: bool,
) -> int:  # fmt: skip
    try:
        why = carry_out(arguments, run, reader, plans, targets)
    except (OSError, KeyboardInterrupt) as error:
        words = "interrupted" if isinstance(error, KeyboardInterrupt) else str(error)
        print(f"hwcheck: the run broke off: {words}", file=sys.stderr)
        print(f"hwcheck apply --resume {run.name} goes on; hwcheck rollback {run.name} takes back what was changed")
        return 1
    return _tell(run, why, short=short)


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


def _ports(arguments: argparse.Namespace, run: RunFolder, reader: FleetReader, targets: list[Target]) -> Ports:
    def read(nodes: list[str]) -> dict[str, Reading]:
        return {one.name: Reading(one.planned.verdict.findings, one.boot_id, one.error) for one in reader.read(nodes)}

    def say(text: str) -> None:
        print(plain(text), file=sys.stderr, flush=True)

    return Ports(
        writer_of(arguments, run, targets), read, _drain_of(arguments), say,
        lambda total: watch(total, quiet=arguments.quiet),
    )  # fmt: skip


def _patience(arguments: argparse.Namespace) -> Patience:
    freeze = Path(arguments.freeze) if arguments.freeze else None
    return Patience(arguments.settle, arguments.settle, arguments.reboot_timeout, freeze)


def _told(findings: Sequence[Finding]) -> list[list[str]]:
    return [
        [one.check, one.subject.kind, one.subject.id, str(one.status), one.message] for one in findings if one.counts
    ]


def _findings(told: Sequence[Sequence[str]]) -> list[Finding]:
    return [
        Finding(check, Subject(kind, id) if id else NODE, Status(status), message)
        for check, kind, id, status, message in told
    ]


def _tell(run: RunFolder, why: str, *, short: bool) -> int:
    """Say what has become of the run, and what a person can do now."""
    nodes = run.record["nodes"]
    for state, words in _WORDS.items():
        names = run.nodes(state)
        if names:
            reason = f": {plain(nodes[names[0]]['why'])}" if nodes[names[0]]["why"] else ""
            print(f"{len(names)} {words}: {fold(names) or 'this machine'}{reason}")
    left = [name for name, known in nodes.items() if known.get("refused")]
    for name in left:
        for refusal in nodes[name]["refused"]:
            print(f"{name or 'this machine'}: left as it is: {plain(refusal)}")
    if why:
        print(f"the roll-out holds: {plain(why)}")
        print(f"hwcheck apply --resume {run.name} goes on; hwcheck rollback {run.name} takes back what was changed")
    elif run.nodes(*set(_WORDS) - {states.REFUSED, states.PLANNED}):
        print(f"run {run.name}; hwcheck rollback {run.name} takes it back")
    else:
        print(f"run {run.name} has changed nothing; hwcheck apply --resume {run.name} tries again")
    if why or left or run.nodes(states.QUARANTINED, states.FAILED):
        return 1
    return 3 if short or run.nodes(states.REFUSED) else 0


_WORDS = {
    states.GOOD: "changed and right",
    states.QUARANTINED: "worse than before or not right, left drained",
    states.FAILED: "failed",
    states.REFUSED: "refused, nothing written",
    states.CHANGED: "changed, not yet looked at",
    states.BEGUN: "begun",
    states.PLANNED: "not touched",
}


def _dry_run(arguments: argparse.Namespace, todo: Sequence[NodePlan], targets: list[Target]) -> int:
    """Let each node say what it would write."""
    with tempfile.TemporaryDirectory(prefix="hwcheck-dry-") as folder:
        run = RunFolder(Path(folder), {})
        (run.path / "steps").mkdir()
        for plan in todo:
            run.give(plan.name, *_for_node(plan, arguments))
        given = {"hwcheck_stage": "apply", "hwcheck_run_dir": folder, "hwcheck_idle_ignore": arguments.idle_ignore}
        results = writer_of(arguments, run, targets).run(
            [plan.name for plan in todo], given, lambda *_: None, check=True
        )
    code = 0
    for name, result in results.items():
        print(f"\n{name or 'this machine'}:")
        code = max(code, _print_dry(result))
    return code


def _print_dry(result: NodeResult) -> int:
    if not result.ok:
        print(f"  {plain(result.why)}")
        return 3
    for one in result.results:
        told = f"{one['id']} {one['subject']} {one['key']} = {one['value']} {one['why']}"
        print(f"  {one['status']:13} {plain(told)}")
    for text in result.differences:
        print(printable(text), end="")
    return 0


def _resume(arguments: argparse.Namespace) -> int:
    """Go on with a run: what is done stays done, what was begun is done to its end, the rest follows in waves."""
    run = RunFolder.load(home(), arguments.resume)
    again = argparse.Namespace(**{**vars(arguments), **restored_options(run.record["targets"])})
    with run.locked():
        reader, plans, targets = what_is_left(again, run)
        if not targets:
            print(f"run {run.name} has nothing left to do")
            return 0
        return _roll(again, run, reader, plans, targets, short=False)


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
