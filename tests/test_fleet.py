"""Fleet checks: what only a look at all nodes can tell."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from hwcheck.facts import NODE, Fact, Origin, Snapshot, Subject, gpu_at
from hwcheck.findings import Finding, NodeVerdict, Status
from hwcheck.fleet import FLEET, FOLDS, Fleet
from hwcheck.report.text import Summary, render_summary

RACK = "aa000001-0000-4000-8000-000000000001"


def node(
    name: str, *, driver: str = "580.95.05", cluster: str = RACK, clique: int = 7, firmware: str = "28.43.2566"
) -> Snapshot:
    """Make a tray of two GPUs and two adapters."""
    snapshot = Snapshot(name)
    origin = Origin("test")
    snapshot.put(NODE, "driver.version", Fact(driver, origin))
    for address in ("0008:01:00.0", "0009:01:00.0"):
        snapshot.put(gpu_at(address), "gpu.fabric.cluster", Fact(cluster, origin))
        snapshot.put(gpu_at(address), "gpu.fabric.clique", Fact(clique, origin))
    for device in ("mlx5_0", "mlx5_1"):
        snapshot.put(Subject("nic", device), "rdma.device.psid", Fact("MT_0000000838", origin))
        snapshot.put(Subject("nic", device), "rdma.device.fw", Fact(firmware, origin))
    return snapshot


def answers(*nodes: Snapshot, failing: dict[str, str] | None = None) -> dict[str, list[Finding]]:
    """Let a fleet see the nodes; ``failing`` maps a node to a check that fails there. Returns check → findings."""
    fleet = Fleet()
    for snapshot in nodes:
        check = (failing or {}).get(snapshot.node)
        findings = [Finding(check, NODE, Status.FAIL, "broken")] if check else []
        fleet.see(snapshot, NodeVerdict(snapshot.node, "gb200", "pci-id", findings))
    verdict = fleet.verdict()
    found: dict[str, list[Finding]] = {}
    for finding in verdict.findings if verdict else []:
        found.setdefault(finding.check, []).append(finding)
    return found


def test_one_driver_of_another_version_fails_the_domain() -> None:
    """A tray whose driver differs from its NVLink domain is named; the domain fails."""
    (finding,) = answers(node("t1"), node("t2"), node("t3", driver="580.65.06"))["driver.domain_set"]
    assert finding.status is Status.FAIL
    assert "t3 not on 580.95.05" in finding.message


def test_single_boards_are_no_domain() -> None:
    """HGX nodes with UUID zero may run different drivers: they share no NVLink domain."""
    zero = "00000000-0000-0000-0000-000000000000"
    assert "driver.domain_set" not in answers(node("a", cluster=zero), node("b", cluster=zero, driver="570.1"))


def test_two_cliques_in_a_domain_warn() -> None:
    """Two cliques of one cluster UUID are told, since a partition may be meant."""
    (finding,) = answers(node("t1"), node("t2", clique=8))["fabric.domain_clique"]
    assert (finding.status, finding.observed) == (Status.WARN, {7: 2, 8: 2})


def test_majority_firmware_only_warns() -> None:
    """An adapter with another firmware than most of its PSID is a warning that names its node."""
    (finding,) = answers(node("t1"), node("t2"), node("t3", firmware="28.39.1002"))["firmware.nic_fleet"]
    assert finding.status is Status.WARN
    assert "28.39.1002 on t3" in finding.message


def test_one_check_on_many_nodes_is_one_cause() -> None:
    """The same check failing on three of five nodes is told as one shared cause."""
    failing = dict.fromkeys(("t1", "t2", "t3"), "rdma.port_down")
    (finding,) = answers(*(node(f"t{n}") for n in range(5)), failing=failing)["evidence.shared_cause"]
    assert "3 of 5 nodes" in finding.message
    assert "evidence.shared_cause" not in answers(*(node(f"t{n}") for n in range(5)), failing={"t1": "rdma.port_down"})


def test_a_fleet_of_one_says_nothing() -> None:
    """There is nothing to compare a single node with."""
    assert answers(node("t1")) == {}


@pytest.mark.parametrize("id", FOLDS)
def test_every_fleet_check_explains_itself(id: str) -> None:
    """A fleet check has a title and the five headings that explain prints."""
    item = FOLDS[id]
    assert item.title.endswith(".")
    for heading in ("What it checks:", "Why it matters:", "How to fix:", "Applies to:", "Source:"):
        assert heading in item.text


def test_a_clock_that_is_off_is_named() -> None:
    """A node whose clock differs from the others by more than its round trip allows is a warning."""
    nodes = [node(f"t{n}") for n in range(4)]
    for number, (snapshot, skew) in enumerate(zip(nodes, (0.001, 0.002, 0.0015, 0.250), strict=True)):
        snapshot.put(NODE, "time.skew", Fact(skew, Origin("test", line=number)))
        snapshot.put(NODE, "time.skew.slack", Fact(0.004, Origin("test", line=number)))
    (finding,) = answers(*nodes)["time.fleet_skew"]
    assert (finding.status, "t3: +0.2" in finding.message) == (Status.WARN, True)


def test_what_is_said_of_the_fleet_counts_as_no_node() -> None:
    """Two nodes are two nodes; a fleet that fails is listed all the same."""
    bad = Finding("driver.domain_set", NODE, Status.FAIL, "two drivers")
    summary = Summary()
    for verdict in (
        *(NodeVerdict(name, "gb200", "name", []) for name in "ab"),
        NodeVerdict(FLEET, FLEET, "none", [bad]),
    ):
        summary.add(verdict)
    said = io.StringIO()
    render_summary(summary, Console(file=said, width=80))
    assert "2 nodes: 2 pass" in said.getvalue()
    assert "FAIL     fleet  driver.domain_set" in said.getvalue()
