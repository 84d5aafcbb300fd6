"""The first half of an acceptance: read nodes, plan, and change them by a run of ``hwcheck apply``."""

from __future__ import annotations

import argparse
import datetime as dt
import sys
from collections.abc import Sequence
from typing import Any

from hwcheck.apply import run_folder as states
from hwcheck.apply.run_folder import RunFolder
from hwcheck.cli.accept_after import After
from hwcheck.cli.accept_folder import AcceptFolder
from hwcheck.cli.applied import changes_of
from hwcheck.cli.carrying_out import carry_out, what_is_left, write_down
from hwcheck.cli.consent import demand_consent
from hwcheck.cli.fleet_reading import FleetReader, Judged
from hwcheck.cli.keeping import node_of
from hwcheck.cli.rolling import demand_writer, holder, home, kept_options
from hwcheck.cli.targets import fold
from hwcheck.errors import UsageError
from hwcheck.evidence_dir import FolderKeeper
from hwcheck.plan import NodePlan, Plan
from hwcheck.plan.file import plan_object
from hwcheck.report.plan_text import print_plan
from hwcheck.transports.target import Target


class Change:
    """
    What an acceptance changes.

    Args:
        arguments: of the verb.
        folder: its record, locked by the caller; names the run of apply once there is one.
        after: what to carry over after a part was swapped; None where all is measured.

    Attributes:
        count: nodes that were read; 0 before that.
    """

    def __init__(self, arguments: argparse.Namespace, folder: AcceptFolder, after: After | None = None) -> None:
        self._arguments = arguments
        self._folder = folder
        self._after = after
        self.count = 0

    def make(self) -> None:
        """
        Change what is to be changed, as far as it has not been done yet.

        Raises:
            UsageError: nobody consents, another acceptance is at a node, or a node cannot be accepted after a swap.
        """
        if self._folder.record["apply"]:
            self._go_on()
            return
        began = dt.datetime.now(dt.UTC)
        reader = FleetReader(self._arguments)
        judged = self._read(reader)
        self._folder.claim(one.name for one in judged)
        self._demand_after(judged)
        plan = reader.planning.plan([one.planned for one in judged])
        self._folder.note("check", ((one.name, one.error or one.planned.verdict.verdict) for one in judged), began)
        todo = [] if self._arguments.no_fix else [one for one in plan.nodes if not one.is_empty]
        if todo:
            states.demand_file_names(one.name for one in todo)
            demand_writer(self._arguments, _targets(judged, todo))
        self._demand_consent(plan, todo)
        if todo:
            self._begin(reader, judged, plan, todo)

    def _demand_after(self, judged: Sequence[Judged]) -> None:
        """Make sure that earlier figures still count, before anything is changed; of a node that answered."""
        if self._after is None:
            return
        told = [(one.name, one.planned.verdict.about) for one in judged if one.planned.verdict.about]
        wrong = [
            f"{name or 'this machine'}: {why}" for name, about in told if (why := self._after.why_not(name, about))
        ]
        if wrong:
            more = f"; and {len(wrong) - 4} more nodes" if len(wrong) > 4 else ""
            raise UsageError(f"--after {self._arguments.after}: {'; '.join(wrong[:4])}{more}")

    def _read(self, reader: FleetReader) -> list[Judged]:
        """Read all nodes; what they say before anything is changed is kept, for whoever asks later what was wrong."""
        with FolderKeeper(self._folder.evidence("before")) as keeper:
            found = list(reader.read(quiet=False, see=lambda outcome: keeper.keep(node_of(outcome))))
        self.count = len(found)
        return sorted(found, key=lambda one: one.place)

    def _demand_consent(self, plan: Plan, todo: Sequence[NodePlan]) -> None:
        print_plan(plan.nodes, fold, is_all=False)
        sys.stdout.flush()
        loads = not self._arguments.no_baseline
        deeds = [f"change {len(todo)} of {len(plan.nodes)} nodes"] * bool(todo)
        deeds += ["put those that are idle under load"] * loads
        if deeds:
            demand_consent(" and ".join(deeds), yes=self._arguments.yes)

    def _begin(self, reader: FleetReader, judged: Sequence[Judged], plan: Plan, todo: Sequence[NodePlan]) -> None:
        by_name = {one.name: one for one in judged}
        began = dt.datetime.now(dt.UTC)
        run = RunFolder.new(home(), kept_options(self._arguments), plan_object(plan), holder())
        with run.locked():
            findings = {one.name: by_name[one.name].planned.verdict.findings for one in todo}
            write_down(run, todo, findings, self._arguments)
            self._folder.record["apply"] = run.name
            self._folder.save()
            carry_out(self._arguments, run, reader, {one.name: one for one in todo}, _targets(judged, todo))
            self._note(run, began)

    def _go_on(self) -> None:
        """Finish the run of apply that was begun."""
        began = dt.datetime.now(dt.UTC)
        run = self._run()
        with run.locked():
            reader, plans, targets = what_is_left(self._arguments, run)
            if targets:
                carry_out(self._arguments, run, reader, plans, targets)
            self._note(run, began)

    def _note(self, run: RunFolder, began: dt.datetime) -> None:
        told = (
            (name, f"{one['state']}{': ' if one['why'] else ''}{one['why']}")
            for name, one in run.record["nodes"].items()
        )
        self._folder.note("apply", told, began)

    def _run(self) -> RunFolder:
        return RunFolder.load(home(), self._folder.record["apply"])

    def not_changed(self) -> dict[str, tuple[str, str]]:
        """Return nodes that are not changed as planned, each with its state and why: the roll-out may hold, too."""
        if not self._folder.record["apply"]:
            return {}
        run = self._run()
        held = str(run.record.get("why", ""))
        return {
            name: (known["state"], known["why"] or (held if known["state"] in states.UNFINISHED else ""))
            for name, known in run.record["nodes"].items()
            if known["state"] in (states.FAILED, states.QUARANTINED, states.REFUSED, *states.UNFINISHED)
        }

    def changes(self) -> list[dict[str, Any]]:
        """Return what was changed on the nodes, as the JSON of a run has it."""
        if not self._folder.record["apply"]:
            return []
        return changes_of(self._run())


def _targets(judged: Sequence[Judged], todo: Sequence[NodePlan]) -> list[Target]:
    by_name = {one.name: one for one in judged}
    return [by_name[one.name].target for one in todo]
