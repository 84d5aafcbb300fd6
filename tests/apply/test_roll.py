"""A roll-out wave by wave, with nodes that are made up: what is written, put back, held."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hwcheck.apply import run_folder as states
from hwcheck.apply.ansible import Event, NodeResult
from hwcheck.apply.canary import Canaries
from hwcheck.apply.drain import DrainError
from hwcheck.apply.roll import Patience, Ports, Reading, Roll
from hwcheck.apply.run_folder import RunFolder
from hwcheck.errors import UsageError
from hwcheck.facts import NODE
from hwcheck.findings import Finding, Status
from hwcheck.plan import NodePlan
from hwcheck.rollout import Wave, plan_waves

CHECK = "sysctl.swappiness"


def finding(check: str, status: Status) -> Finding:
    """Make a finding of the node."""
    return Finding(check, NODE, status, f"is {status}")


@dataclass
class Fleet:
    """
    Nodes that are made up: all that a roll-out asks for.

    Attributes:
        after: node → findings after the write; default: the changed check passes.
        results: node → what the module says; default: changed.
        wont_drain: node → why.
        boots: node → boot ids that it shows, read by read.
        reboot: nodes whose module began a reboot; their journals say so.
        away: node → how many plays in a row do not get there.
    """

    after: dict[str, list[Finding]] = field(default_factory=dict)
    results: dict[str, NodeResult] = field(default_factory=dict)
    wont_drain: dict[str, str] = field(default_factory=dict)
    boots: dict[str, list[str]] = field(default_factory=dict)
    reboot: tuple[str, ...] = ()
    away: dict[str, int] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)
    deeds: list[str] = field(default_factory=list)
    now: float = 0.0

    def run(
        self, nodes: list[str], variables: dict[str, Any], on_event: Event, *, check: bool = False
    ) -> dict[str, NodeResult]:
        """Write."""
        del on_event, check
        self.deeds += [f"{variables['hwcheck_stage']} {node}" for node in nodes]
        self.written += nodes
        act = {"do": "reboot", "target": "", "state": "begun", "boot_id": "boot-1"}
        for node in set(nodes) & set(self.reboot):
            file = Path(variables["hwcheck_run_dir"], "journal", f"{node}.json")
            file.write_text(json.dumps({"acts": [act]}), encoding="utf-8")
        good = [{"id": CHECK, "status": "changed", "why": ""}]
        taken = variables["hwcheck_stage"] == "undo"
        told = {
            node: self.results.get(node, NodeResult(ok=True, why="", results=[] if taken else good)) for node in nodes
        }
        for node in [node for node in nodes if self.away.get(node)]:
            self.away[node] -= 1
            told[node] = NodeResult(ok=False, why="refused", results=[], unreachable=True)
        return told

    def read(self, nodes: list[str]) -> Mapping[str, Reading]:
        """Read anew."""
        found = {}
        for node in nodes:
            boots = self.boots.get(node, ["boot-1"])
            boot = boots.pop(0) if len(boots) > 1 else boots[0]
            told = self.after.get(node, [finding(CHECK, Status.PASS)])
            found[node] = Reading(told, boot, self.errors.get(node, ""))
        return found

    def drain(self, node: str, reason: str) -> bool:
        """Take out."""
        del reason
        if node in self.wont_drain:
            raise DrainError(self.wont_drain[node])
        self.deeds.append(f"drain {node}")
        return node != "by-others"

    def undrain(self, node: str, reason: str) -> None:
        """Put back."""
        del reason
        self.deeds.append(f"undrain {node}")

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds

    def ports(self, *, drains: bool = True) -> Ports:
        """Return all of it."""
        silent = nullcontext(lambda *_: None)
        return Ports(
            self, self.read, self if drains else None, lambda _: None, lambda _: silent, self.sleep, lambda: self.now
        )


def roll_of(folder: Path, fleet: Fleet, names: list[str], patience: Patience | None = None, **more: Any) -> Roll:
    """Make a roll-out of nodes that are alike."""
    run = RunFolder.new(folder, {}, {}, "a test")
    plans = {name: NodePlan(name, "hgx-h200", "boot-1", "alike") for name in names}
    before = {name: [finding(CHECK, Status.WARN), finding("rdma.rate", Status.PASS)] for name in names}
    run.set_state(names, states.PLANNED)
    return Roll(run, plans, before, fleet.ports(), patience or Patience(0, 1, 60), **more)


def state(roll: Roll) -> dict[str, str]:
    """Return what has become of the nodes."""
    return {name: known["state"] for name, known in roll.run.record["nodes"].items()}


def test_all_nodes_are_drained_written_read_and_put_back(tmp_path: Path) -> None:
    """In this order, the canary alone first."""
    fleet = Fleet()
    roll = roll_of(tmp_path, fleet, ["n1", "n2"])
    assert roll.go(plan_waves(list(roll.plans.values()))) == ""
    assert fleet.deeds == ["drain n1", "apply n1", "undrain n1", "drain n2", "apply n2", "undrain n2"]
    assert state(roll) == {"n1": states.GOOD, "n2": states.GOOD}


def test_a_canary_that_gets_worse_holds_and_no_other_node_is_touched(tmp_path: Path) -> None:
    """It stays drained, with its finding."""
    fleet = Fleet(after={"n1": [finding(CHECK, Status.PASS), finding("rdma.rate", Status.FAIL)]})
    roll = roll_of(tmp_path, fleet, ["n1", "n2", "n3"])
    assert "canary n1 has become worse: rdma.rate" in roll.go(plan_waves(list(roll.plans.values())))
    assert fleet.written == ["n1"]
    assert "undrain n1" not in fleet.deeds
    assert state(roll) == {"n1": states.QUARANTINED, "n2": states.PLANNED, "n3": states.PLANNED}
    assert roll.run.record["nodes"]["n1"]["why"] == "rdma.rate : is fail"


def test_a_changed_key_that_is_not_right_holds(tmp_path: Path) -> None:
    """The write went well, and fresh evidence says otherwise: the evidence counts."""
    fleet = Fleet(after={"n1": [finding(CHECK, Status.WARN)]})
    roll = roll_of(tmp_path, fleet, ["n1", "n2"])
    assert f"{CHECK} is changed and still not right" in roll.go(plan_waves(list(roll.plans.values())))


def test_a_retired_key_is_judged_by_no_one(tmp_path: Path) -> None:
    """The check that once asked for it may stay, and be not right: it no longer wants what was taken away."""
    retired = NodeResult(ok=True, why="", results=[{"id": CHECK, "status": "changed", "why": "", "value": "absent"}])
    fleet = Fleet(after={"n1": [finding(CHECK, Status.WARN)]}, results={"n1": retired})
    roll = roll_of(tmp_path, fleet, ["n1"])
    assert roll.go(plan_waves(list(roll.plans.values()))) == ""
    assert state(roll) == {"n1": states.GOOD}


def test_a_node_that_is_not_idle_is_refused_and_the_others_go_on(tmp_path: Path) -> None:
    """Nothing was written to it, so it is put back; the roll-out does not hold for it."""
    busy = NodeResult(ok=False, why="the node is not idle, nothing was written: 77 python3 has /dev/nvidia0 open")
    fleet = Fleet(results={"n1": busy})
    roll = roll_of(tmp_path, fleet, ["n1", "n2"])
    assert roll.go(plan_waves(list(roll.plans.values()))) == ""
    assert state(roll) == {"n1": states.REFUSED, "n2": states.GOOD}
    assert "undrain n1" in fleet.deeds


def test_another_node_is_the_canary_where_the_first_is_busy(tmp_path: Path) -> None:
    """Nothing goes to a whole cohort before one node of it was changed and is good."""
    names = ["n1", "n2", "n3", "n4"]
    worse = {"n2": [finding("rdma.rate", Status.FAIL)]}
    roll = roll_of(tmp_path, Fleet(wont_drain={"n1": "has jobs"}, after=worse), names)
    assert "canary n2 has become worse" in roll.go(plan_waves(list(roll.plans.values()), ["1", "100%"]))
    assert state(roll) == {
        "n1": states.REFUSED, "n2": states.QUARANTINED, "n3": states.PLANNED, "n4": states.PLANNED
    }  # fmt: skip


def test_after_three_busy_canaries_a_person_decides(tmp_path: Path) -> None:
    """The others are not touched one by one."""
    names = ["n1", "n2", "n3", "n4"]
    roll = roll_of(tmp_path, Fleet(wont_drain=dict.fromkeys(names, "has jobs")), names)
    assert "none of 3 canaries could be tried" in roll.go(plan_waves(list(roll.plans.values()), ["1", "100%"]))
    assert state(roll)["n4"] == states.PLANNED


def test_a_busy_rack_is_followed_by_a_whole_rack() -> None:
    """The next canary is a unit too, and each cohort has its own."""
    plans = {
        name: NodePlan(name, "gb200", "boot-1", cohort, domain=domain)
        for name, cohort, domain in [
            ("a1", "a", "rack1"), ("a2", "a", "rack1"), ("a3", "a", "rack2"), ("a4", "a", "rack2"), ("b1", "b", ""),
            ("b2", "b", ""), ("a5", "a", "rack3"),
        ]
    }  # fmt: skip
    canaries = Canaries(plans, lambda node: node.startswith("b"))
    rest = [Wave(("a3", "b2")), Wave(("a4", "a5"))]
    assert canaries.after(Wave(("a1", "a2", "b1"), canary=True), rest) == (
        [Wave(("a3", "a4"), canary=True), Wave(("b2",)), Wave(("a5",))], "",
    )  # fmt: skip


def test_new_canaries_keep_to_one_failure_domain_each() -> None:
    """Two cohorts lack theirs, and their next nodes stand in different racks."""
    plans = {
        name: NodePlan(name, "hgx-h200", "boot-1", cohort, failure_domain=rack)
        for name, cohort, rack in [("a1", "a", "r1"), ("b1", "b", "r1"), ("a2", "a", "r1"), ("b2", "b", "r2")]
    }
    waves, why = Canaries(plans, lambda _: False).after(Wave(("a1", "b1"), canary=True), [Wave(("a2",)), Wave(("b2",))])
    assert (waves, why) == ([Wave(("a2",), canary=True), Wave(("b2",), canary=True)], "")


def test_a_node_that_cannot_be_drained_is_never_written_to(tmp_path: Path) -> None:
    """It has jobs."""
    fleet = Fleet(wont_drain={"n1": "still has jobs after 5 s"})
    roll = roll_of(tmp_path, fleet, ["n1", "n2"])
    roll.go(plan_waves(list(roll.plans.values())))
    assert fleet.written == ["n2"]
    assert "still has jobs" in roll.run.record["nodes"]["n1"]["why"]


def test_what_somebody_else_has_drained_stays_drained(tmp_path: Path) -> None:
    """Only our own drains are undone."""
    fleet = Fleet()
    roll = roll_of(tmp_path, fleet, ["by-others"])
    roll.go(plan_waves(list(roll.plans.values())))
    assert state(roll) == {"by-others": states.GOOD}
    assert "undrain by-others" not in fleet.deeds


def test_a_write_that_failed_holds(tmp_path: Path) -> None:
    """It stays drained."""
    failed = NodeResult(ok=False, why="EIO", results=[{"id": CHECK, "status": "failed", "why": "EIO"}])
    fleet = Fleet(results={"n1": failed})
    roll = roll_of(tmp_path, fleet, ["n1", "n2"])
    assert "n1 could not be changed: EIO" in roll.go(plan_waves(list(roll.plans.values())))
    assert fleet.written == ["n1"]
    assert "undrain n1" not in fleet.deeds


def test_a_write_that_ended_without_an_answer_counts_as_begun(tmp_path: Path) -> None:
    """The module was killed: nobody may take that node for untouched, so it holds and a rollback finds it."""
    killed = NodeResult(ok=False, begun=True, why="MODULE FAILURE")
    roll = roll_of(tmp_path, Fleet(results={"n1": killed}), ["n1", "n2"])
    assert "n1 could not be changed: MODULE FAILURE" in roll.go(plan_waves(list(roll.plans.values())))
    assert state(roll) == {"n1": states.FAILED, "n2": states.PLANNED}


def test_a_node_that_does_not_answer_any_more_is_quarantined(tmp_path: Path) -> None:
    """Silence after a change is worse than before."""
    fleet = Fleet(errors={"n1": "no route to host"})
    roll = roll_of(tmp_path, fleet, ["n1", "n2"])
    assert "evidence.reachable" in roll.go(plan_waves(list(roll.plans.values())))
    assert state(roll)["n1"] == states.QUARANTINED


def test_frozen_means_that_nothing_more_is_changed(tmp_path: Path) -> None:
    """The file is looked at before each wave."""
    freeze = tmp_path / "freeze"
    fleet = Fleet()
    roll = roll_of(tmp_path, fleet, ["n1", "n2"], Patience(0, 1, 60, freeze))
    freeze.touch()
    assert "changes are frozen" in roll.go(plan_waves(list(roll.plans.values())))
    assert fleet.written == []


def test_a_reboot_is_over_when_the_boot_id_has_changed(tmp_path: Path) -> None:
    """A node that still answers from its old boot has not rebooted yet."""
    fleet = Fleet(boots={"n1": ["boot-1", "boot-1", "boot-2"]}, reboot=("n1",))
    roll = roll_of(tmp_path, fleet, ["n1"])
    assert roll.go(plan_waves(list(roll.plans.values()))) == ""
    assert state(roll) == {"n1": states.GOOD}
    assert fleet.now >= 2


def test_a_node_that_does_not_come_back_has_failed(tmp_path: Path) -> None:
    """Within the time that is given; the roll-out holds."""
    fleet = Fleet(reboot=("n1", "n2"))
    roll = roll_of(tmp_path, fleet, ["n1", "n2"])
    assert "did not come back" in roll.go(plan_waves(list(roll.plans.values())))
    assert state(roll) == {"n1": states.FAILED, "n2": states.PLANNED}


@pytest.mark.parametrize(("known", "act", "plays"), [
    (states.BEGUN, "reboot", 3), (states.BEGUN, "restart", 1), (states.GOOD, "reboot", 1),
])  # fmt: skip
def test_a_rollback_waits_for_a_node_that_its_run_may_be_rebooting(
    tmp_path: Path, known: str, act: str, plays: int
) -> None:
    """The controller was killed while the node went down; any other node that is away is said to be so at once."""
    fleet = Fleet(away={"n1": 2})
    roll = roll_of(tmp_path, fleet, ["n1"])
    roll.run.give("n1", [], [{"do": act, "target": "", "disturbs": "node"}])
    roll.run.set_state(["n1"], known)
    assert roll.undo(["n1"])["n1"].ok is (plays == 3)
    assert fleet.deeds == ["undo n1"] * plays


def test_a_node_that_is_only_partly_taken_back_is_not_right(tmp_path: Path) -> None:
    """Something of it was changed by others since: it is neither as the run left it nor as before."""
    left = NodeResult(ok=True, why="", results=[{"target": "/etc/x", "why": "changed since by somebody else"}])
    roll = roll_of(tmp_path, Fleet(results={"n1": left}), ["n1"])
    roll.run.set_state(["n1"], states.GOOD)
    roll.undo(["n1"])
    assert roll.run.record["nodes"]["n1"] == {"state": states.QUARANTINED, "why": "partly taken back"}


def test_a_run_is_worked_on_by_one_controller(tmp_path: Path) -> None:
    """The second one on this machine is told; on another machine the lease of the node does that."""
    run = RunFolder.new(tmp_path, {}, {}, "a test")
    run.save()
    with run.locked(), pytest.raises(UsageError, match="worked on by another hwcheck"), RunFolder.load(
        tmp_path, run.name
    ).locked():  # fmt: skip
        pass


@pytest.mark.parametrize("name", ["../etc", "", "20260101-000000-beef"])
def test_a_run_that_is_not_there_is_named(name: str, tmp_path: Path) -> None:
    """With those that are."""
    run = RunFolder.new(tmp_path, {}, {}, "a test")
    run.save()
    with pytest.raises(UsageError, match=run.name):
        RunFolder.load(tmp_path, name)


def test_a_run_that_cannot_be_recorded_changes_nothing(tmp_path: Path) -> None:
    """No folder, no roll-out."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match="nothing is changed"):
        RunFolder.new(tmp_path / "file", {}, {}, "a test")
