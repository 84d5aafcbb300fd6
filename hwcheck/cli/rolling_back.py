"""What ``hwcheck rollback`` does: each node takes back what the run changed, where nobody has changed it since."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping

from hwcheck.apply import drain as drains
from hwcheck.apply import run_folder as states
from hwcheck.apply.ansible import NodeResult
from hwcheck.apply.roll import Patience, Ports, Roll
from hwcheck.apply.run_folder import RunFolder
from hwcheck.cli.rolling import audit, home, restored_options, watch, writer_of
from hwcheck.cli.targets import Collection, fold
from hwcheck.errors import UsageError

_TOUCHED = (states.BEGUN, states.CHANGED, states.GOOD, states.QUARANTINED, states.FAILED)


def rollback(arguments: argparse.Namespace) -> int:
    """Carry out the verb."""
    run = RunFolder.load(home(), arguments.of)
    again = argparse.Namespace(**{**vars(arguments), **restored_options(run.record["targets"])})
    with run.locked():
        wanted = _named(arguments.nodes, run.nodes(*_TOUCHED))
        if not wanted:
            print(f"run {run.name} has changed nothing that is not taken back already")
            return 0
        _demand_consent(arguments, wanted)
        audit(f"rollback of run {run.name} begins on {fold(wanted)}")
        with Collection(again) as collection:
            targets = [target for target in collection.targets if target.name in wanted or not target.name]
        drain = drains.of(again.drain, again.undrain, again.drain_timeout) if again.drain else None
        ports = Ports(
            writer_of(again, run, targets), lambda _: {}, drain, lambda text: print(text, file=sys.stderr),
            lambda total: watch(total, quiet=arguments.quiet),
        )  # fmt: skip
        patience = Patience(reboot=again.reboot_timeout)
        results = Roll(run, {}, {}, ports, patience).undo(wanted)
        audit(f"rollback of run {run.name} has ended")
        return _tell(run, results)


def _named(nodeset: str, touched: list[str]) -> list[str]:
    if not nodeset:
        return touched
    from hwcheck.transports.nodesets import expand  # noqa: PLC0415 - only where nodes are named

    names = expand(nodeset)
    strangers = [name for name in names if name not in touched]
    if strangers:
        raise UsageError(f"the run has changed nothing on {fold(strangers)}")
    return names


def _demand_consent(arguments: argparse.Namespace, wanted: list[str]) -> None:
    if arguments.yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"{fold(wanted)} would be changed back; --yes says that this is wanted")
    print(f"Change {fold(wanted)} back? Type yes: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() != "yes":
        raise UsageError("nothing was changed")


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
