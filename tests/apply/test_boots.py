"""A rollback of what counts from a boot: who still runs with it is said, and rebooted where that is wanted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hwcheck.apply import run_folder as states
from hwcheck.apply.ansible import NodeResult
from hwcheck.apply.boots import WAITING, Boots
from hwcheck.apply.roll import Roll
from hwcheck.plan import NodePlan
from tests.apply.test_roll import Fleet, roll_of

PLAN = {"n1": NodePlan("n1", "hgx-h200", "boot-1", reboot=("kernel.iommu",))}


def taken_back(folder: Path, fleet: Fleet, plans: dict[str, NodePlan] | None = None, changes: Any = ("x",)) -> Roll:
    """Take a node back that a run had changed."""
    roll = roll_of(folder, fleet, ["n1"])
    roll.run.write("journal/n1.json", {"changes": list(changes), "acts": []})
    roll.run.set_state(["n1"], states.GOOD)
    roll.undo(["n1"], Boots(roll, PLAN if plans is None else plans).note)
    return roll


def test_a_node_that_has_booted_with_the_change_waits_for_another_boot(tmp_path: Path) -> None:
    """Which boot it was taken back in is kept in the run's record."""
    roll = taken_back(tmp_path, Fleet(boots={"n1": ["boot-2"]}))
    assert roll.run.record[WAITING] == {"n1": "boot-2"}


@pytest.mark.parametrize(
    ("plan", "boot", "changes"),
    [
        (PLAN["n1"], "boot-1", ("x",)),
        (NodePlan("n1", "hgx-h200", "boot-1"), "boot-2", ("x",)),
        (PLAN["n1"], "boot-2", ()),
        (NodePlan("n1", "hgx-h200", "", reboot=("kernel.iommu",)), "", ("x",)),
    ],
    ids=["not booted since", "nothing counts from a boot", "nothing was changed", "an image"],
)
def test_no_boot_is_asked_for_without_need(plan: NodePlan, boot: str, changes: Any, tmp_path: Path) -> None:
    """What runs is as before already, or nothing runs."""
    roll = taken_back(tmp_path, Fleet(boots={"n1": [boot]}), {"n1": plan}, changes)
    assert roll.run.record[WAITING] == {}


def test_a_node_whose_boot_cannot_be_read_waits(tmp_path: Path) -> None:
    """Could not tell is not fine."""
    roll = taken_back(tmp_path, Fleet(errors={"n1": "no route to host"}))
    assert roll.run.record[WAITING] == {"n1": ""}


def test_a_reboot_ends_the_waiting_once_the_node_shows_another_boot(tmp_path: Path) -> None:
    """Not when the order was given: it still answers from the old boot for a while."""
    fleet = Fleet(boots={"n1": ["boot-2", "boot-2", "boot-2", "boot-3"]})
    roll = taken_back(tmp_path, fleet)
    assert Boots(roll, PLAN).reboot() == {}
    assert fleet.deeds == ["undo n1", "act n1"]
    assert fleet.now >= 2
    assert roll.run.record[WAITING] == {}


def test_a_node_that_was_rebooted_by_others_since_is_left_alone(tmp_path: Path) -> None:
    """Nobody takes it out of work twice."""
    fleet = Fleet(boots={"n1": ["boot-2", "boot-3"]})
    roll = taken_back(tmp_path, fleet)
    assert Boots(roll, PLAN).reboot() == {}
    assert fleet.deeds == ["undo n1"]
    assert roll.run.record[WAITING] == {}


def test_a_node_that_is_not_idle_or_does_not_come_back_waits_on(tmp_path: Path) -> None:
    """With the reason; the next rollback --reboot tries again."""
    fleet = Fleet(boots={"n1": ["boot-2"]})
    roll = taken_back(tmp_path, fleet)
    assert Boots(roll, PLAN).reboot() == {"n1": "it did not come back from its reboot in time"}
    fleet.results["n1"] = NodeResult(ok=False, why="the node is not idle")
    assert Boots(roll, PLAN).reboot() == {"n1": "the node is not idle"}
    assert roll.run.record[WAITING] == {"n1": "boot-2"}


def test_a_node_is_put_back_to_work_after_its_reboot(tmp_path: Path) -> None:
    """A job that starts before it would be killed by it."""
    fleet = Fleet(boots={"n1": ["boot-2", "boot-2", "boot-3"]})
    roll = roll_of(tmp_path, fleet, ["n1"])
    roll.run.write("journal/n1.json", {"changes": ["x"], "acts": []})
    roll.run.record["drained"] = ["n1"]
    boots = Boots(roll, PLAN)

    def then(nodes: list[str]) -> None:
        boots.note(nodes)
        assert boots.reboot(nodes) == {}

    roll.undo(["n1"], then)
    assert fleet.deeds == ["undo n1", "act n1", "undrain n1"]
