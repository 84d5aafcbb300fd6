"""Read the nodes of a command line, judge and plan them, as often as a roll-out needs it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hwcheck.cli.planning import Planned, Planning
from hwcheck.cli.targets import Collection, fold
from hwcheck.report.progress import Progress
from hwcheck.transports.outcome import Outcome
from hwcheck.transports.target import Target


@dataclass(frozen=True, slots=True)
class Judged:
    """
    A node that was asked.

    Attributes:
        name: what the inventory, the command line or the node itself calls it.
        target: how it was reached.
        planned: its verdict and plan.
        error: why it did not answer; "" when it did.
        boot_id: of the boot that it was read in; "" when unknown.
        place: in the inventory.
    """

    name: str
    target: Target
    planned: Planned
    error: str = ""
    boot_id: str = ""
    place: int = 0


class FleetReader:
    """
    Reads nodes.

    Args:
        arguments: of :func:`hwcheck.cli.plan.add_plan_options`.
    """

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self.planning = Planning(arguments)

    def read(
        self, nodes: list[str] | None = None, *, quiet: bool = True, see: Callable[[Outcome], None] | None = None
    ) -> Iterator[Judged]:
        """
        Read nodes, all of them or those named, as they answer.

        Args:
            nodes: names; None for all.
            quiet: show no progress.
            see: gets what each node answered, before it is judged.

        Raises:
            UsageError: the command line does not fit together.
        """
        arguments = argparse.Namespace(**vars(self._arguments))
        if nodes is not None and (arguments.inventory or arguments.nodes):
            arguments.nodes = ",".join(nodes)
        with (
            Collection(arguments) as collection,
            Progress(len(collection.targets), fold, quiet=quiet or arguments.quiet) as progress,
        ):
            for outcome in collection:
                if see is not None:
                    see(outcome)
                planned = self.planning.of_outcome(outcome)
                failing = planned.verdict.verdict == "fail"
                progress.count(outcome.name, failing=failing, unreachable=outcome.error is not None)
                error = str(outcome.error) if outcome.error is not None else ""
                name = outcome.target.name or planned.plan.name
                with progress.hidden():
                    yield Judged(
                        name, outcome.target, planned, error, outcome.hello.get("boot_id", ""),
                        collection.position(outcome),
                    )  # fmt: skip
