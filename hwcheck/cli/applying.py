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

from hwcheck.apply import run_folder as states
from hwcheck.apply.ansible import NodeResult
from hwcheck.apply.run_folder import RunFolder
from hwcheck.apply.words import plain, printable
from hwcheck.cli.carrying_out import carry_out, demand_roll_options, for_node, what_is_left, write_down
from hwcheck.cli.consent import demand_consent
from hwcheck.cli.differences import folded
from hwcheck.cli.fleet_reading import FleetReader, Judged
from hwcheck.cli.rolling import demand_writer, holder, home, kept_options, restored_options, writer_of
from hwcheck.cli.targets import fold
from hwcheck.errors import UsageError
from hwcheck.plan import NodePlan, Plan
from hwcheck.plan.file import plan_object, read_plan
from hwcheck.report.plan_text import print_plan
from hwcheck.transports.target import Target


def apply(arguments: argparse.Namespace) -> int:
    """Carry out the verb."""
    if arguments.evidence:
        raise UsageError("nothing can be changed on evidence; name nodes (-i, -w), an image (--root), or none")
    demand_roll_options(arguments)
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
    demand_consent(f"change {len(todo)} node{'s' if len(todo) > 1 else ''}", yes=arguments.yes)
    run = RunFolder.new(home(), kept_options(arguments), plan_object(plan), holder())
    with run.locked():
        write_down(run, todo, {one.name: judged[one.name].planned.verdict.findings for one in todo}, arguments)
        return _roll(arguments, run, reader, {one.name: one for one in todo}, targets, short=short)


def _plan(arguments: argparse.Namespace, reader: FleetReader, judged: Mapping[str, Judged]) -> Plan:
    """Plan anew, or take the reviewed plan for the nodes that are asked."""
    if not arguments.planfile:
        return reader.planning.plan([one.planned for one in judged.values()])
    reviewed = read_plan(Path(arguments.planfile))
    strangers = [plan.name for plan in reviewed.nodes if plan.name not in judged and not plan.is_empty]
    if strangers:
        raise UsageError(f"{arguments.planfile} changes {fold(strangers)}, which the command line does not name")
    return reviewed


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
            run.give(plan.name, *for_node(plan, arguments))
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
    print(printable(folded(result.differences)), end="")
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
