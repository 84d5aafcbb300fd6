"""Measurements between nodes: the rate of the link, what makes a figure count, and whose fault a slow one is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hwcheck.engine import Judge
from hwcheck.evidence import Evidence, Output
from hwcheck.findings import Finding, NodeVerdict, Status
from hwcheck.fleet import Fleet
from hwcheck.parse import take_snapshot
from hwcheck.profiles import ProfileSet

PROFILE = ProfileSet().profile("base")
RAIL = "0000:1b:00.0/1"
FINE = {
    "rail": RAIL, "link_rate": 400.0, "client_rate": 400.0, "server_rate": 400.0, "client_state": "ACTIVE",
    "server_state": "ACTIVE", "samples": 5000, "spread": 0.5, "busy": 1.0, "numa_node": 0, "numa_bound": True,
    "rdma_users": [], "transport": "IB", "transport_expected": "IB",
}  # fmt: skip


def line(client: str, server: str, value: float | None, test: str = "rdma.write", **conditions: Any) -> str:
    """Make a line as the sources write it; None for a pair that has no figure."""
    about = {**FINE, "client": client, "server": server, **conditions}
    unit = "us" if test.endswith(("latency", "warmup")) else "Gb/s"
    figure = {"error": "it vanished"} if value is None else {"value": value, "unit": unit, "samples": [value]}
    return json.dumps({"test": test, "on": f"{client}/mlx5_0>{server}/mlx5_0", **figure, "conditions": about})


def judge(*lines: str, name: str = "n") -> tuple[list[Finding], Fleet]:
    """Judge the lines of a node; and show it to a fleet."""
    snapshot = take_snapshot(Evidence(name, [Output("hwcheck.load", list(lines), file="load")], collected=True))
    found = Judge(PROFILE).findings(snapshot)
    fleet = Fleet()
    fleet.see(snapshot, NodeVerdict(name, "", "none", found))
    return [one for one in found if one.check == "baseline.pair"], fleet


def statuses(*lines: str) -> dict[str, Status]:
    """Return what is said of each pair."""
    return {one.subject.id.partition("@")[2]: one.status for one in judge(*lines)[0]}


@pytest.mark.parametrize(("value", "status"), [(392, Status.PASS), (360, Status.PASS), (359, Status.FAIL)])
def test_a_pair_reaches_its_share_of_the_link(value: float, status: Status) -> None:
    """Nine tenths of 400 Gb/s."""
    (found,) = judge(line("a", "b", value))[0]
    assert (found.status, found.expected) == (status, ">= 360 Gb/s")


def test_a_slow_port_is_held_against_the_rate_of_its_rail_and_named() -> None:
    """A port that came up at half the rate reaches nine tenths of what it has, and that is no pass."""
    (found,) = judge(line("a", "b", 196, server_rate=200.0))[0]
    assert found.status is Status.FAIL
    assert found.message.endswith("below 90% of 400 Gb/s; likely due to b")


def test_a_node_that_is_well_with_others_is_not_failed_for_a_slow_partner() -> None:
    """It warns, and names the partner."""
    found = judge(line("a", "b", 180), line("c", "a", 392))[0]
    assert [(one.status, one.message.rpartition("; ")[2]) for one in found] == [
        (Status.WARN, "likely due to b or the way to it, not to a"),
        (Status.PASS, "rdma.write from c to a (adapter at 0000:1b:00.0/1): 392 Gb/s, at least 90% of 400 Gb/s"),
    ]


def test_a_node_that_is_slow_with_every_partner_fails() -> None:
    """Two partners are enough."""
    found = judge(line("a", "b", 180), line("b", "c", 190))[0]
    assert [one.status for one in found] == [Status.FAIL, Status.FAIL]
    assert all(one.message.endswith("b is slow with every partner") for one in found)


def test_a_single_slow_pair_may_be_due_to_either_end() -> None:
    """Nobody passes by it."""
    (found,) = judge(line("a", "b", 180))[0]
    assert found.status is Status.FAIL
    assert found.message.endswith("likely due to either end: a or b; measure each with a third node")


@pytest.mark.parametrize(("conditions", "name"), [
    ({"client_state": "ACTIVE, then DOWN"}, "port"),
    ({"server_state": "INIT"}, "port"),
    ({"rdma_users": ["812 ib_read_bw"]}, "foreign process"),
    ({"numa_bound": False}, "numa"),
    ({"transport": "Ethernet"}, "transport"),
    ({"gpudirect": False}, "gpudirect"),
    ({"samples": 3}, "samples"),
])  # fmt: skip
@pytest.mark.parametrize("value", [100, 392])
def test_a_condition_seen_false_makes_the_figure_unknown(conditions: dict[str, Any], name: str, value: float) -> None:
    """Good or bad."""
    (found,) = judge(line("a", "b", value, **conditions))[0]
    assert found.status is Status.UNKNOWN
    assert f"does not count ({name})" in found.message


def test_busy_hosts_make_tcp_unknown() -> None:
    """CPUs take part in it."""
    assert statuses(line("a", "b", 3, "tcp", link_rate=10.0, busy=40.0)) == {"a/mlx5_0>b/mlx5_0": Status.UNKNOWN}


@pytest.mark.parametrize(("value", "rate", "status"), [
    (9.4, 10.0, Status.PASS), (4.0, 10.0, Status.FAIL), (4.0, 100.0, Status.SKIP), (4.0, 0, Status.SKIP),
])  # fmt: skip
def test_tcp_is_held_against_links_that_cpus_can_fill(value: float, rate: float, status: Status) -> None:
    """Faster ones are told."""
    rates = {"link_rate": rate, "client_rate": 0, "server_rate": 0}
    text = line("a", "b", value, "tcp", **rates, transport="eth0", transport_expected="eth0")
    assert statuses(text) == {"a/mlx5_0>b/mlx5_0": status}


def test_an_end_that_vanished_is_unknown_with_the_reason() -> None:
    """And says nothing of the others of its rail."""
    found = judge(line("a", "b", None), line("a", "c", 392))[0]
    assert [one.status for one in found] == [Status.UNKNOWN, Status.PASS]
    assert found[0].message.endswith("no figure: it vanished")


def test_latency_and_first_message_are_told() -> None:
    """They have no bound here."""
    found = judge(
        line("a", "b", 1.3, "rdma.latency"),
        line("a", "b", 12.0, "warmup", first_us=12.0, steady_us=1.3, ratio=9.23),
    )[0]
    assert [one.status for one in found] == [Status.SKIP, Status.SKIP]
    assert "12 us (first message; 1.3 us after it, ratio 9.23)" in found[1].message


def test_the_fleet_names_the_node_that_slow_pairs_have_in_common() -> None:
    """Its partners are well with each other."""
    nodes = {"a": ("ab", "da"), "b": ("ab", "bc"), "c": ("bc", "cd"), "d": ("cd", "da")}
    fleet = Fleet()
    for name, pairs in nodes.items():
        lines = [line(*pair, 180 if "b" in pair else 392) for pair in pairs]
        snapshot = take_snapshot(Evidence(name, [Output("hwcheck.load", lines, file="load")], collected=True))
        fleet.see(snapshot, NodeVerdict(name, "", "none", Judge(PROFILE).findings(snapshot)))
    verdict = fleet.verdict()
    assert verdict is not None
    assert [(one.status, one.message, one.observed) for one in verdict.findings
            if one.check == "baseline.pair_culprit"] == [
        (Status.FAIL, f"rdma.write, adapter at {RAIL}: b is likely at fault: slow with a, c", ["b"]),
    ]  # fmt: skip


def test_the_fleet_is_well_where_all_pairs_are() -> None:
    """One line for each rail; pairs that do not count are not among them."""
    fleet = Fleet()
    for name in "ab":
        lines = [line("a", "b", 392), line("a", "c", 100, samples=1)]
        snapshot = take_snapshot(Evidence(name, [Output("hwcheck.load", lines, file="load")], collected=True))
        fleet.see(snapshot, NodeVerdict(name, "", "none", Judge(PROFILE).findings(snapshot)))
    verdict = fleet.verdict()
    assert verdict is not None
    found = [one for one in verdict.findings if one.check == "baseline.pair_culprit"]
    assert [(one.status, one.message.rpartition(": ")[2]) for one in found] == [
        (Status.PASS, "none of 1 pairs is below the rate of its link"),
    ]
