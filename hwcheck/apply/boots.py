"""
After a rollback: which nodes run what the run has set until they boot once more, and their reboot where it is wanted.

What counts from a boot (kernel arguments) is taken back in files; a node that has booted since the run wrote them still
runs with it. Which ones wait is kept in the run's record, so that the reboot may follow later (``rollback --reboot``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hwcheck.apply.ansible import NodeResult
from hwcheck.apply.roll import Roll
from hwcheck.plan import NodePlan

WAITING = "unbooted"
"""Key of the run's record: node → the boot in which it was taken back; "" when that could not be read."""
_REBOOT = {"do": "reboot", "target": "", "disturbs": "node"}


class Boots:
    """
    Boots that a rollback leaves to be done.

    Args:
        roll: the rollback's, with the run and its ports.
        plans: node → plan of the run.
    """

    def __init__(self, roll: Roll, plans: Mapping[str, NodePlan]) -> None:
        self._roll = roll
        self._plans = plans
        self._waiting: dict[str, str] = roll.run.record.setdefault(WAITING, {})

    def waiting(self, nodes: Sequence[str] = ()) -> list[str]:
        """Return the nodes that wait for a boot, of those named; of all where none is."""
        return [node for node in self._waiting if not nodes or node in nodes]

    def note(self, nodes: Sequence[str]) -> None:
        """Record which nodes, taken back just now, have booted with what the run had changed."""
        asked = [node for node in nodes if node in self._plans and self._counts_from_boot(node)]
        readings = self._roll.ports.read(asked) if asked else {}
        for node in asked:
            boot = readings[node].boot_id if node in readings and not readings[node].error else ""
            if not boot or boot != self._plans[node].boot_id:
                self._waiting[node] = boot
        self._roll.run.save()

    def _counts_from_boot(self, node: str) -> bool:
        changes = (self._roll.run.read(f"journal/{node}.json") or {}).get("changes")
        plan = self._plans[node]
        return bool(changes and plan.reboot and plan.boot_id)  # of an image nothing runs

    def _act(self, nodes: list[str]) -> dict[str, NodeResult]:
        given = {"acts": [_REBOOT]}
        variables = {**self._roll.play_variables("act"), "hwcheck_acts": given["acts"], "hwcheck_given": given}
        with self._roll.ports.watch(len(nodes)) as on_event:
            return self._roll.ports.play.run(nodes, variables, on_event)

    def reboot(self, nodes: Sequence[str] = ()) -> dict[str, str]:
        """
        Reboot nodes that wait, and wait until each shows another boot; one that has booted by itself is done already.

        Returns:
            node → why it still waits.
        """
        asked = self.waiting(nodes)
        readings = self._roll.ports.read(asked) if asked else {}
        boots = {node: one.boot_id for node, one in readings.items() if one.boot_id and not one.error}
        left = {node: "it does not answer" for node in asked if node not in boots}
        due = {node: boot for node, boot in boots.items() if self._waiting[node] in ("", boot)}
        if due:
            results = self._act(list(due))
            left.update({node: result.why for node, result in results.items() if not result.ok})
            gone = self._roll.await_boot({node: boot for node, boot in due.items() if node not in left})
            left.update(dict.fromkeys(gone, "it did not come back from its reboot in time"))
        for node in asked:
            if node not in left:
                del self._waiting[node]
        self._roll.run.save()
        return left
