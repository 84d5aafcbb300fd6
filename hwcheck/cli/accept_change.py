"""The first half of an acceptance: read nodes, plan, and change them by a run of ``hwcheck apply``."""

from __future__ import annotations

import argparse
import datetime as dt
import sys
from collections.abc import Sequence
from typing import Any

from hwcheck.apply import run_folder as states
from hwcheck.apply.run_folder import RunFolder
from hwcheck.cli.accept_folder import AcceptFolder
from hwcheck.cli.applied import changes_of
from hwcheck.cli.carrying_out import carry_out, what_is_left, write_down
from hwcheck.cli.consent import demand_consent
from hwcheck.cli.fleet_reading import FleetReader, Judged
from hwcheck.cli.keeping import node_of
from hwcheck.cli.rolling import demand_writer, holder, home, kept_options
from hwcheck.cli.targets import fold
from hwcheck.evidence_dir import FolderKeeper
from hwcheck.plan import NodePlan, Plan
from hwcheck.plan.file import plan_object
from hwcheck.report.plan_text import print_plan


class Change:
    """
    What an acceptance changes.

    Args:
        arguments: of the verb.
        folder: its record; names the run of apply once there is one.

    Attributes:
        count: nodes that were read; 0 before that.
    """

    def __init__(self, arguments: argparse.Namespace, folder: AcceptFolder) -> None:
        self._arguments = arguments
        self._folder = folder
        self.count = 0

    def make(self) -> None:
        """
        Change what is to be changed, as far as it has not been done yet.

        Raises:
            UsageError: nobody consents.
        """
        if self._folder.record["apply"]:
            self._go_on()
            return
        began = dt.datetime.now(dt.UTC)
        reader = FleetReader(self._arguments)
        judged = self._read(reader)
        plan = reader.planning.plan([one.planned for one in judged])
        self._folder.note("check", ((one.name, one.error or one.planned.verdict.verdict) for one in judged), began)
        todo = [] if self._arguments.no_fix else [one for one in plan.nodes if not one.is_empty]
        self._demand_consent(plan, todo)
        if todo:
            with self._folder.alone_on(one.name for one in todo):
                self._begin(reader, judged, plan, todo)

    def _read(self, reader: FleetReader) -> list[Judged]:
        """Read all nodes; what they say before anything is changed is kept, for whoever asks later what was wrong."""
        place = self._folder.path / "evidence" / f"before-{dt.datetime.now(dt.UTC):%H%M%S}"
        with FolderKeeper(place) as keeper:
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
        states.demand_file_names(one.name for one in todo)
        by_name = {one.name: one for one in judged}
        targets = [by_name[one.name].target for one in todo]
        demand_writer(self._arguments, targets)
        began = dt.datetime.now(dt.UTC)
        run = RunFolder.new(home(), kept_options(self._arguments), plan_object(plan), holder())
        with run.locked():
            findings = {one.name: by_name[one.name].planned.verdict.findings for one in todo}
            write_down(run, todo, findings, self._arguments)
            self._folder.record["apply"] = run.name
            self._folder.save()
            carry_out(self._arguments, run, reader, {one.name: one for one in todo}, targets)
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

    @property
    def is_right(self) -> bool:
        """Whether nothing was to be changed, or all of it was."""
        return not self._folder.record["apply"] or not self._run().nodes(
            states.FAILED, states.QUARANTINED, states.REFUSED
        )

    def changes(self) -> list[dict[str, Any]]:
        """Return what was changed on the nodes, as the JSON of a run has it."""
        if not self._folder.record["apply"]:
            return []
        return changes_of(self._run())
