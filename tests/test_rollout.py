"""In which order nodes are changed, and when a roll-out holds."""

from __future__ import annotations

import pytest

from hwcheck.errors import UsageError
from hwcheck.facts import NODE, Subject
from hwcheck.findings import Finding, Status
from hwcheck.plan import NodePlan
from hwcheck.rollout import Comparison, compare, plan_waves, reason_to_hold

PASS, WARN, FAIL, UNKNOWN, SKIP = Status.PASS, Status.WARN, Status.FAIL, Status.UNKNOWN, Status.SKIP
KEY = ("rdma.rate", "mlx5_0/1")


def plans(count: int, cohort: str = "hgx-h200, driver 1", first: int = 1) -> list[NodePlan]:
    """Make plans of nodes n1, n2 ... that are alike."""
    return [NodePlan(f"n{number}", "hgx-h200", cohort=cohort) for number in range(first, first + count)]


def findings(**status: Status) -> list[Finding]:
    """Make findings: ``sysctl__swappiness=PASS``."""
    return [Finding(name.replace("__", "."), NODE, value, f"{name} is {value}") for name, value in status.items()]


def test_each_cohort_has_a_canary_before_all_others() -> None:
    """Nodes that behave alike fail alike, so one of each kind goes first; then shares of the whole fleet."""
    waves = plan_waves([*plans(30), *plans(10, "gb200, driver 2", 31)])
    assert waves[0].nodes == ("n1", "n31")
    assert waves[0].canary
    assert [len(wave.nodes) for wave in waves] == [2, 2, 10, 26]
    assert [wave.canary for wave in waves] == [True, False, False, False]
    assert sorted(name for wave in waves for name in wave.nodes) == sorted(f"n{number}" for number in range(1, 41))


def test_a_failure_domain_is_never_split() -> None:
    """The trays of a rack are changed together, whatever the size of the wave."""
    domains = {f"n{number}": "rack 1" if number <= 18 else "rack 2" for number in range(1, 37)}
    waves = plan_waves(plans(36), ("1", "10%"), domains)
    assert [len(wave.nodes) for wave in waves] == [18, 18]


def test_the_interruption_budget_cuts_waves() -> None:
    """No more nodes are out of work at once than are allowed to be."""
    waves = plan_waves(plans(20), ("1", "100%"), most=4)
    assert [len(wave.nodes) for wave in waves] == [1, 4, 4, 4, 4, 3]


def placed(*racks: str, cohort: str = "alike") -> list[NodePlan]:
    """Make plans of nodes n1, n2 ... that stand in these racks."""
    return [
        NodePlan(f"n{number}", "hgx-h200", cohort=cohort, failure_domain=rack) for number, rack in enumerate(racks, 1)
    ]


def test_a_wave_touches_one_declared_failure_domain() -> None:
    """Racks come one after the other, whatever the order of the inventory; a share is cut, never exceeded."""
    waves = plan_waves(placed(*"ababab", "", ""), ("1", "100%"))
    assert [wave.nodes for wave in waves] == [("n1",), ("n2", "n4", "n6"), ("n3", "n5"), ("n7", "n8")]
    waves = plan_waves(placed(*"aaabbb"), ("1", "2"))
    assert [wave.nodes for wave in waves] == [("n1",), ("n2", "n3"), ("n4", "n5"), ("n6",)]


def test_canaries_of_several_cohorts_do_not_touch_two_domains_at_once() -> None:
    """They are canaries one after the other, before any wave."""
    other = [NodePlan("m1", "gb200", cohort="other", failure_domain="b")]
    waves = plan_waves([*placed("a", "a"), *other], ("1", "100%"))
    assert [(wave.nodes, wave.canary) for wave in waves] == [(("n1",), True), (("m1",), True), (("n2",), False)]


def test_more_failure_domains_at_once_are_asked_for() -> None:
    """A fleet of many small racks need not go rack by rack; 0 is no bound."""
    racks = placed(*"aabbccdd")
    assert [len(wave.nodes) for wave in plan_waves(racks, ("1", "100%"), most_domains=2)] == [1, 3, 4]
    assert [len(wave.nodes) for wave in plan_waves(racks, ("1", "100%"), most_domains=0)] == [1, 7]


def test_an_nvlink_domain_in_two_failure_domains_goes_whole_and_alone() -> None:
    """It cannot be changed by halves; nobody else is out of work meanwhile."""
    nvlink = {"n2": "cluster", "n3": "cluster"}
    waves = plan_waves(placed(*"aabb"), ("1", "100%"), nvlink)
    assert [wave.nodes for wave in waves] == [("n1",), ("n2", "n3"), ("n4",)]


def test_where_no_failure_domain_is_declared_waves_are_as_wide_as_asked() -> None:
    """An inventory that says nothing is one domain."""
    assert [len(wave.nodes) for wave in plan_waves(placed(*[""] * 9), ("1", "100%"))] == [1, 8]


@pytest.mark.parametrize("size", ["", "0", "0%", "101%", "-1", "half", "5.5"])
def test_a_size_that_is_none_is_refused(size: str) -> None:
    """Before anything is changed."""
    with pytest.raises(UsageError, match="size of a wave"):
        plan_waves(plans(3), ("1", size))


def test_what_gets_worse_and_stays_so_counts() -> None:
    """A port that was down for one read only is settling, not worse."""
    before = findings(rdma__rate=PASS, time__offset=WARN)
    bad, good = findings(rdma__rate=FAIL, time__offset=PASS), findings(rdma__rate=PASS, time__offset=PASS)
    assert compare("n1", before, [bad, bad, bad], ()).worse == ((("rdma.rate", ""), "rdma__rate is fail"),)
    assert compare("n1", before, [bad, bad, good], ()).is_good
    assert compare("n1", findings(rdma__rate=FAIL), [bad, bad, bad], ()).is_good


def test_what_cannot_be_told_any_more_is_worse() -> None:
    """A source that fell silent after the change is no pass."""
    before, after = findings(nvlink__active=PASS), findings(nvlink__active=UNKNOWN)
    assert not compare("n1", before, [after], ()).is_good
    assert compare("n1", findings(nvlink__active=UNKNOWN), [after], ()).is_good


def test_new_findings_that_fail_are_worse() -> None:
    """A subject that was not there before: an interface that came up wrong."""
    one = Finding("rdma.rate", Subject("port", "mlx5_0/1"), FAIL, "is slow")
    assert compare("n1", [], [[one]], ()).worse == ((KEY, "is slow"),)


def test_measurements_and_the_log_are_not_compared() -> None:
    """A value has its spread, and the log tells of the change itself."""
    after = findings(baseline__hbm=FAIL, xid__79=FAIL, process__left=FAIL)
    assert compare("n1", findings(baseline__hbm=PASS), [after], ()).is_good


def test_a_warning_alone_quarantines_nobody() -> None:
    """But a changed key that still warns is not right."""
    after = findings(sysctl__swappiness=WARN)
    assert compare("n1", findings(sysctl__swappiness=PASS), [after], ()).is_good
    assert compare("n1", [], [after], ["sysctl.swappiness"]).not_right


def test_a_changed_key_that_is_not_right_holds_at_once() -> None:
    """On whatever node."""
    one = Comparison("n9", not_right=((("sysctl.swappiness", ""), "is 60"),))
    assert reason_to_hold(canary=False, comparisons=[one], touched=500) == (
        "n9: sysctl.swappiness is changed and still not right: is 60"
    )


def test_a_canary_that_gets_worse_holds() -> None:
    """One is enough there."""
    worse = Comparison("n1", worse=((KEY, "is slow"),))
    assert "canary n1" in reason_to_hold(canary=True, comparisons=[worse], touched=1)
    assert not reason_to_hold(canary=False, comparisons=[worse], touched=1)


@pytest.mark.parametrize(("bad", "touched", "holds"), [(1, 10, False), (2, 10, True), (2, 100, False), (3, 100, True)])
def test_one_check_on_several_nodes_holds(bad: int, touched: int, *, holds: bool) -> None:
    """Two nodes and more than two of a hundred."""
    worse = [Comparison(f"n{number}", worse=((KEY, "is slow"),)) for number in range(bad)]
    assert bool(reason_to_hold(canary=False, comparisons=worse, touched=touched)) is holds


def test_different_checks_on_different_nodes_do_not_hold() -> None:
    """Those are nodes with troubles of their own; each is quarantined."""
    worse = [Comparison("n1", worse=((KEY, ""),)), Comparison("n2", worse=((("gpu.count", ""), ""),))]
    assert not reason_to_hold(canary=False, comparisons=worse, touched=10)
