"""What ``hwcheck rollback`` does: each node takes back what the run changed, where nobody has changed it since."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping

from hwcheck.apply import drain as drains
from hwcheck.apply import run_folder as states
from hwcheck.apply.ansible import NodeResult
from hwcheck.apply.boots import WAITING, Boots
from hwcheck.apply.roll import Patience, Ports, Reading, Roll
from hwcheck.apply.run_folder import RunFolder
from hwcheck.apply.words import plain
from hwcheck.cli.consent import demand_consent
from hwcheck.cli.rolling import audit, home, restored_options, watch, writer_of
from hwcheck.cli.targets import Collection, fold
from hwcheck.errors import PlanError, UsageError
from hwcheck.plan import NodePlan
from hwcheck.plan.file import read_plan

_TOUCHED = (states.BEGUN, states.CHANGED, states.GOOD, states.QUARANTINED, states.FAILED)


def rollback(arguments: argparse.Namespace) -> int:
    """Carry out the verb."""
    run = RunFolder.load(home(), arguments.of)
    again = argparse.Namespace(**{**vars(arguments), **restored_options(run.record["targets"])})
    with run.locked():
        due = run.record.get(WAITING, {}) if arguments.reboot else {}
        named = _named(arguments.nodes, list(dict.fromkeys([*run.nodes(*_TOUCHED), *due])))
        wanted = [node for node in named if node in run.nodes(*_TOUCHED)]
        if not named:
            print(f"run {run.name} has changed nothing that is not taken back already")
            return 0
        demand_consent(f"change {fold(named)} back", yes=arguments.yes)
        audit(f"rollback of run {run.name} begins on {fold(wanted)}")
        with Collection(again) as collection:
            targets = [target for target in collection.targets if target.name in named or not target.name]
        drain = drains.of(again.drain, again.undrain, again.drain_timeout) if again.drain else None
        ports = Ports(
            writer_of(again, run, targets), lambda nodes: _read_boots(again, nodes), drain,
            lambda text: print(text, file=sys.stderr), lambda total: watch(total, quiet=arguments.quiet),
        )  # fmt: skip
        patience = Patience(reboot=again.reboot_timeout)
        roll = Roll(run, {}, {}, ports, patience, {"hwcheck_idle_ignore": again.idle_ignore})
        code = _take_back(roll, named, wanted, reboots=arguments.reboot)
        audit(f"rollback of run {run.name} has ended")
        return code


def _take_back(roll: Roll, named: list[str], wanted: list[str], *, reboots: bool) -> int:
    """Take nodes back, and reboot those that need it where that is wanted; returns the exit code."""
    boots = Boots(roll, _plans(roll.run))
    left: dict[str, str] = {}

    def then(nodes: list[str]) -> None:
        boots.note(nodes)
        left.update(boots.reboot(named) if reboots else {})

    results = roll.undo(wanted, then) if wanted else {}
    if not wanted:
        then([])
    return max(_tell(roll.run, results), _tell_boots(roll.run, boots.waiting(named), left))


def _plans(run: RunFolder) -> dict[str, NodePlan]:
    """Return the plans of a run; without them it is taken back all the same, and who needs a boot is not known."""
    try:
        return {one.name: one for one in read_plan(run.path / "plan.json").nodes}
    except PlanError as error:
        print(f"which nodes have to boot is not known: {plain(str(error))}", file=sys.stderr)
        return {}


def _read_boots(arguments: argparse.Namespace, nodes: list[str]) -> dict[str, Reading]:
    """Read in which boot nodes are; nothing is judged, so no layer of the run has to be there still."""
    asked = argparse.Namespace(**vars(arguments))
    if asked.inventory or asked.nodes:
        asked.nodes = ",".join(nodes)
    with Collection(asked) as collection:
        return {
            outcome.target.name or nodes[0]: Reading(
                (), outcome.hello.get("boot_id", ""), str(outcome.error) if outcome.error is not None else ""
            )
            for outcome in collection
        }


def _named(nodeset: str, touched: list[str]) -> list[str]:
    if not nodeset:
        return touched
    from hwcheck.transports.nodesets import expand  # noqa: PLC0415 - only where nodes are named

    names = expand(nodeset)
    strangers = [name for name in names if name not in touched]
    if strangers:
        raise UsageError(f"the run has changed nothing on {fold(strangers)}")
    return names


def _tell_boots(run: RunFolder, waiting: list[str], left: Mapping[str, str]) -> int:
    """Say which nodes still run with what was taken back, and why a reboot that was wanted has not ended that."""
    for name, why in left.items():
        print(f"{name or 'this machine'}: not rebooted: {plain(why)}")
    if waiting:
        names = fold(waiting) or "this machine"
        print(f"{names}: the old values count from the next boot; hwcheck rollback {run.name} --reboot does it")
    return 1 if left else 0


def _tell(run: RunFolder, results: Mapping[str, NodeResult]) -> int:
    code = 0
    for name, result in results.items():
        if not result.ok:
            print(f"{name or 'this machine'}: not taken back: {result.why}")
            code = 1
        for left in result.results:
            print(f"{name or 'this machine'}: left as it is: {left.get('target')}: {left.get('why')}")
            code = 1
    good = run.nodes(states.UNDONE)
    if good:
        print(f"{len(good)} taken back: {fold(good)}")
    return code
