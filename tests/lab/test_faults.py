"""Each fault of the lab, on each platform, is found for what it is, and brings nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hwcheck.checks import RELATIONS
from hwcheck.facts import Snapshot
from hwcheck.findings import Finding, NodeVerdict, Status
from hwcheck.lab import nodes
from hwcheck.lab.faults import FAULTS, Fault, UnknownFaultError, catalogue, find
from hwcheck.lab.platforms import PLATFORMS
from hwcheck.parse import take_snapshot
from hwcheck.pipeline import Pipeline
from hwcheck.profiles import ProfileSet
from tests.lab.lab_node import evidence_from

TABLE = [
    (platform, name)
    for platform in PLATFORMS
    for name, fault in catalogue().items()
    if platform in fault.platforms and not fault.load  # those are seen by measuring only
]
BAD = (Status.FAIL, Status.WARN, Status.UNKNOWN)
ENOUGH = 30
HANG_SECONDS = 2.5


@dataclass
class Patient:
    """A node of one platform that is broken and mended again, and how it looked when it was healthy."""

    node: nodes.Node
    library: bool
    healthy: dict[str, Snapshot]


@pytest.fixture(scope="module", name="pipeline")
def _pipeline(root: Path) -> Pipeline:
    return Pipeline(ProfileSet([root / "inventories/lab/site.yaml"]))


@pytest.fixture(scope="module", name="patients")
def _patients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Patient]]:
    home = tmp_path_factory.mktemp("lab")
    found: dict[str, Patient] = {}
    for platform in PLATFORMS:
        node, lacks = nodes.up(home, f"node-{platform}", platform, [])
        healthy = {tier: take_snapshot(evidence_from(node, tier)) for tier in ("quick", "deep")}
        found[platform] = Patient(node, not lacks, healthy)
    yield found
    for patient in found.values():
        nodes.down(home, patient.node)


def matches(check: str, wanted: tuple[str, ...]) -> bool:
    """Tell whether a check is named, by its id or its family."""
    return check in wanted or check.partition(".")[0] in wanted


def alone_or_leading(verdict: NodeVerdict) -> list[Finding]:
    """Return what is not pass or skip, less what an incident explains by another finding."""
    followers = {index for incident in verdict.incidents for index in incident.follows}
    return [f for index, f in enumerate(verdict.findings) if f.status in BAD and index not in followers]


@pytest.mark.lab
@pytest.mark.slow
@pytest.mark.parametrize(("platform", "name"), TABLE, ids=[f"{platform}-{name}" for platform, name in TABLE])
def test_fault_is_led_by_what_it_is(platform: str, name: str, patients: dict[str, Patient], pipeline: Pipeline) -> None:
    """The finding that the fault declares stands alone or leads; nothing stands beside it that no incident explains."""
    patient, fault = patients[platform], FAULTS[name]
    if fault.library and not patient.library:
        pytest.skip("no C compiler, and nvidia-smi does not tell it")
    nodes.break_node(patient.node, name)
    try:
        tier = "deep" if fault.deep else "quick"
        evidence = evidence_from(patient.node, tier, HANG_SECONDS if fault.hangs else 60.0)
        verdict = pipeline.judge(evidence, patient.healthy[tier])
    finally:
        nodes.mend(patient.node)
    left = alone_or_leading(verdict)
    expected = (*fault.leads, *fault.also)
    assert [f"{f.status} {f.check} {f.subject} {f.message}" for f in left if not matches(f.check, expected)] == []
    if fault.told:
        assert any(f.status is Status.SKIP and f.observed for f in verdict.findings if f.check in fault.told)
    else:
        assert any(matches(finding.check, fault.leads) for finding in left)


def test_there_are_many_faults() -> None:
    """The lab has faults of nearly all families that a node can have faults in."""
    assert len(catalogue()) >= ENOUGH
    families = {family for fault in FAULTS.values() for family in fault.families}
    wanted = "driver gpu clocks power thermal hbm nvlink fabric imex c2c pcie rdma roce time numa cpu memory"
    assert families >= {
        *wanted.split(),
        "storage",
        "firmware",
        "limits",
        "sysctl",
        "kernel",
        "xid",
        "sxid",
        "service",
        "process",
        "evidence",
    }


@pytest.mark.parametrize("name", sorted(catalogue()))
def test_fault_says_what_it_is(name: str) -> None:
    """A fault has one sentence, and something that it should lead to: checks or families that exist."""
    fault: Fault = FAULTS[name]
    assert fault.text.endswith(".")
    assert fault.leads or fault.told
    assert set(fault.platforms) <= set(PLATFORMS)
    known = {*RELATIONS, *ProfileSet().profile("base").checks, "evidence.complete"}
    numbered = ("xid", "sxid")
    for check in (*fault.leads, *fault.told, *fault.also):
        family = check.partition(".")[0]
        assert check in known or family in numbered or any(one.startswith(f"{check}.") for one in known), check


def test_part_that_is_not_there_is_refused() -> None:
    """Numbers choose the part; a name that is none is answered with one that is near."""
    assert find("port-down:3", "gb200")[1] == 3
    with pytest.raises(UnknownFaultError, match="near it: port-down"):
        find("port-dwn")
    with pytest.raises(UnknownFaultError, match="only on gb200"):
        find("imex-down", "hgx-h200")
    with pytest.raises(UnknownFaultError, match="after the colon"):
        find("port-down:x")
