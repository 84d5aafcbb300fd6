"""Which finding leads, which follow, and which stand alone."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwcheck.evidence import Evidence, Output
from hwcheck.facts import NODE, Missing, Origin, Reason, Subject, gpu_at
from hwcheck.findings import Finding, Incident, Status
from hwcheck.incidents import RULES, Rule, group
from hwcheck.pipeline import Pipeline
from hwcheck.profiles import ProfileSet
from hwcheck.readers.segments import split_text
from hwcheck.report.explain_check import check_ids
from tests.machines import as_q, hgx_h200

ONE, TWO = gpu_at("18:00.0"), gpu_at("2a:00.0")
SWITCH = Subject("switch", "0000:05:00.0")
PAIR = Subject("measurement", "hwcheck.p2p@0000:2a:00.0>0000:18:00.0")
RESULT = Subject("measurement", "nccl.all_reduce")
WAIVED = {"owner": "ops", "reason": "RMA", "expires": "2999-12-31"}


def finding(check: str, subject: Subject = ONE, status: Status = Status.FAIL, message: str = "wrong") -> Finding:
    """Make a finding."""
    return Finding(check, subject, status, message)


def chains(*findings: Finding) -> list[list[str]]:
    """Group findings; return each incident as its checks, the lead first."""
    return [
        [findings[index].check for index in (incident.lead, *incident.follows)] for incident in group(list(findings))
    ]


@pytest.mark.parametrize(
    "findings",
    [
        [("xid.79", ONE), ("xid.45", ONE), ("sxid.20034", SWITCH)],
        [("xid.79", ONE), ("xid.154", ONE), ("gpu.recovery_action", ONE)],
        [("xid.119", ONE), ("xid.45", ONE)],
        [("xid.48", ONE), ("xid.63", ONE), ("hbm.remap_pending", ONE)],
        [("xid.94", ONE), ("hbm.remap_pending", ONE)],
        [("xid.74", ONE), ("nvlink.active", ONE), ("sxid.12028", SWITCH)],
        [("nvlink.active", ONE), ("baseline.nccl_busbw", RESULT)],
        [("pcie.acs", NODE), ("baseline.nccl_busbw", RESULT)],
        [("pcie.link", Subject("pci", "0000:18:00.0")), ("baseline.h2d", ONE), ("baseline.d2h", ONE)],
        [("pcie.gpu_width", ONE), ("baseline.h2d", ONE), ("baseline.p2p", PAIR)],
        [("clocks.hw_slowdown", ONE), ("baseline.hbm_copy", ONE), ("baseline.launch", ONE)],
        [("power.limit", ONE), ("baseline.hbm_copy", ONE)],
        [("nvlink.active", ONE), ("baseline.p2p", PAIR)],
        [("kernel.iommu", NODE), ("baseline.d2h", ONE)],
        [("hbm.remap_pending", ONE), ("baseline.hbm_copy", ONE)],
        [("cpu.governor", NODE), ("baseline.launch", ONE), ("baseline.cpu_memory", Subject("numa", "0"))],
        [("sysctl.numa_balancing", NODE), ("baseline.os_jitter", NODE)],
        [("storage.raid", NODE), ("baseline.disk", Subject("measurement", "hwcheck.disk.read@/scratch"))],
        [("driver.api_mismatch", NODE), ("gpu.access", NODE)],
        [("driver.fabric_manager", NODE), ("driver.cuda_init", NODE)],
    ],
    ids=lambda findings: " > ".join(check for check, _ in findings),
)
def test_the_cause_leads_its_consequences(findings: list[tuple[str, Subject]]) -> None:
    """Whatever order the findings come in, the cause is the lead and the rest follow."""
    made = [finding(check, subject) for check, subject in findings]
    for order in (made, made[::-1]):
        (chain,) = chains(*order)
        assert chain[0] == findings[0][0]
        assert set(chain) == {check for check, _ in findings}


def test_the_other_gpu_has_its_own_fault() -> None:
    """An Xid 45 on another GPU is no consequence of this one; two lost GPUs are two incidents."""
    assert chains(finding("xid.79", ONE), finding("xid.45", TWO)) == []
    both = [finding(check, gpu) for gpu in (ONE, TWO) for check in ("xid.79", "xid.45")]
    assert chains(*both) == [["xid.79", "xid.45"], ["xid.79", "xid.45"]]
    assert [both[incident.lead].subject for incident in group(both)] == [ONE, TWO]


def test_a_finding_of_the_node_may_follow_a_gpu() -> None:
    """What is said of the node can be the consequence of one GPU's fault."""
    assert chains(finding("thermal.slowdown", ONE), finding("clocks.low", NODE)) == [["thermal.slowdown", "clocks.low"]]


@pytest.mark.parametrize("status", [Status.PASS, Status.SKIP, Status.UNKNOWN])
def test_only_what_is_wrong_leads(status: Status) -> None:
    """Nothing follows from a pass, from a skip, or from what could not be told."""
    assert chains(finding("xid.79", ONE, status), finding("xid.45", ONE)) == []


def test_what_could_not_be_told_may_follow() -> None:
    """A GPU off the bus explains why its fabric state could not be read."""
    assert chains(finding("xid.79"), finding("fabric.state", ONE, Status.UNKNOWN)) == [["xid.79", "fabric.state"]]


def untold(check: str, source: str, detail: str, subject: Subject = NODE) -> Finding:
    """Make a finding that could not be told."""
    gap = Missing(Reason.TIMEOUT, detail)
    return Finding(check, subject, Status.UNKNOWN, f"{check}: {detail}", origin=Origin(source), gap=gap)


def test_what_could_not_be_told_follows_its_own_source() -> None:
    """Two sources that are late by the same time say the same, and each leads what it alone tells."""
    late = "no answer in 10 s"
    told = [untold("evidence.complete", kind, late) for kind in ("systemctl.show", "ibstat", "nvml")]
    told += [untold("rdma.port_state", "ibstat", late), untold("driver.version", "nvml", late)]
    told += [untold("service.state", "", ""), untold("limits.memlock", "proc.limits", late)]
    (systemd, ib, nvml) = sorted(group(told), key=lambda incident: incident.lead)
    assert (systemd.follows, ib.follows, nvml.follows) == ((6,), (3,), (4,))


def test_a_lost_gpu_explains_no_clock() -> None:
    """Only what the driver was asked for, or what is said of that GPU, follows from a GPU that does not answer."""
    told = [
        finding("xid.79"), untold("evidence.complete", "nvml", "no answer"), untold("driver.version", "nvml", "late"),
        untold("gpu.link", "sysfs.pci", "no registers", ONE), untold("gpu.link", "sysfs.pci", "no registers", TWO),
        untold("evidence.complete", "chronyc.tracking", "needs root"), untold("time.offset", "chronyc.tracking", "no"),
    ]  # fmt: skip
    (incident,) = group(told)
    assert (incident.lead, incident.follows) == (0, (1, 2, 3))
    told[0] = finding("driver.loaded", NODE)
    assert group(told)[0].follows == (1,)


def test_a_warning_never_leads_a_fail() -> None:
    """The lead is what must be acted on first."""
    assert chains(finding("xid.79", ONE, Status.WARN), finding("xid.45", ONE, Status.FAIL)) == []


def test_a_setting_that_warns_leads_the_figure_that_fails() -> None:
    """How slow it is tells the measurement, why tells the setting; their incident stands among the fails."""
    findings = [
        finding("time.chrony_sync", NODE, Status.WARN), finding("time.source", NODE, Status.WARN),
        finding("baseline.launch"), finding("cpu.governor", NODE, Status.WARN),
    ]  # fmt: skip
    assert [(incident.lead, incident.follows) for incident in group(findings)] == [(3, (2,)), (0, (1,))]


def test_a_figure_that_does_not_count_follows_what_spoilt_it() -> None:
    """A copy at a locked clock is unknown, and the lock is its cause; another GPU's is not."""
    told = [finding("clocks.lock", ONE, Status.WARN), finding("baseline.hbm_copy", ONE, Status.UNKNOWN)]
    assert group([*told, finding("baseline.hbm_copy", TWO, Status.UNKNOWN)])[0].follows == (1,)


def test_a_waived_finding_leads_nothing_and_follows_nothing() -> None:
    """What the site accepts explains no new fault away."""
    for waived in (0, 1):
        findings = [finding("xid.79"), finding("xid.45")]
        findings[waived].waived = WAIVED
        assert group(findings) == []


def test_a_chain_has_one_lead() -> None:
    """A follower that leads others brings them along."""
    (chain,) = chains(finding("xid.79"), finding("xid.48"), finding("hbm.remap_pending"), finding("xid.45"))
    assert chain[0] == "xid.79"
    assert len(chain) == 4


def test_the_worst_incident_comes_first_and_says_why() -> None:
    """Fails before warnings; the text is a sentence and names the lead's subject."""
    slow = [finding("time.chrony_sync", NODE, Status.WARN), finding("time.source", NODE, Status.WARN)]
    incidents = group([*slow, finding("xid.79"), finding("xid.45")])
    assert [incident.lead for incident in incidents] == [2, 0]
    assert incidents[0].text == "The GPU fell off the bus; what else it logged follows from that (0000:18:00.0)."
    assert incidents[1].text.endswith(".")


CHECKS = [
    "xid.79", "xid.45", "xid.48", "xid.63", "xid.74", "xid.119", "xid.154", "sxid.20034", "nvlink.active",
    "fabric.state", "fabric.status", "clocks.low", "gpu.recovery_action", "gpu.access", "hbm.remap_pending",
    "pcie.acs", "baseline.nccl_busbw", "thermal.slowdown", "power.brake", "driver.cuda_init",
    "driver.api_mismatch", "driver.fabric_manager", "service.fabric_manager", "rdma.port_state", "rdma.rate",
    "time.chrony_sync",
]  # fmt: skip
FINDINGS = st.builds(
    finding, st.sampled_from(CHECKS), st.sampled_from([ONE, TWO, SWITCH, NODE]), st.sampled_from(list(Status))
)


@settings(deadline=None)
@given(st.lists(FINDINGS, max_size=14))
def test_incidents_share_nothing_and_have_no_cycles(findings: list[Finding]) -> None:
    """Each finding is in at most one incident, once; leads are never followers; all are in range and wrong."""
    incidents = group(findings)
    members = [index for incident in incidents for index in (incident.lead, *incident.follows)]
    assert len(members) == len(set(members))
    assert all(incident.follows for incident in incidents)
    assert all(findings[index].status in {Status.FAIL, Status.WARN, Status.UNKNOWN} for index in members)
    assert all(findings[incident.lead].status is not Status.UNKNOWN for incident in incidents)


@settings(deadline=None)
@given(st.lists(FINDINGS, max_size=8))
def test_a_lead_is_not_milder_than_what_follows_directly(findings: list[Finding]) -> None:
    """No incident of a warning holds a fail, which would be explained away; that of a measurement is a symptom."""
    for incident in group(findings):
        if findings[incident.lead].status is Status.WARN:
            worse = [findings[index] for index in incident.follows if findings[index].status is Status.FAIL]
            assert all(one.family == "baseline" for one in worse)


@pytest.mark.parametrize("rule", RULES, ids=[f"{n} {rule.lead}" for n, rule in enumerate(RULES)])
def test_every_rule_is_about_checks_that_exist(rule: Rule) -> None:
    """A pattern that no check id matches is dead; its text is the middle of a sentence."""
    ids = check_ids(ProfileSet())
    assert any(re.fullmatch(rule.lead, id) for id in ids)
    assert any(re.fullmatch(rule.follows, id) for id in ids)
    assert rule.near in {"gpu", "node"}
    assert not rule.text.endswith(".")


def judge(*texts: str) -> tuple[list[Finding], list[Incident]]:
    """Judge texts of one node."""
    evidence = Evidence()
    for number, text in enumerate(texts):
        split_text(text.splitlines(), f"file{number}", evidence)
    verdict = Pipeline(ProfileSet()).judge(evidence)
    return verdict.findings, verdict.incidents


def leads(*texts: str) -> list[tuple[str, str]]:
    """Return check and subject of the leads."""
    findings, incidents = judge(*texts)
    return [(findings[incident.lead].check, findings[incident.lead].subject.id) for incident in incidents]


def test_a_gpu_lost_from_the_bus_is_one_incident_under_one_name() -> None:
    """The log spells the address its own way, nvidia-smi another; it is one GPU, and its Xid 79 leads."""
    log = "\n".join(
        f"[  812.{n}] NVRM: Xid (PCI:0000:2A:00): {text}"
        for n, text in enumerate(
            ("79, pid=7, name=train, GPU has fallen off the bus.", "45, pid=7, name=train, Ch 00000008")
        )
    )
    listing = as_q(hgx_h200({1: {"recovery": "Reset"}}))
    findings, incidents = judge(log, listing)
    (incident,) = incidents
    assert (findings[incident.lead].check, findings[incident.lead].subject.id) == ("xid.79", "0000:2a:00.0")
    follows = {findings[index].check for index in incident.follows}
    assert {"xid.45", "gpu.recovery_action"} <= follows
    assert {finding.subject.id for finding in findings if finding.check.startswith("xid.")} == {"0000:2a:00.0"}


def test_the_reader_and_a_manifest_give_the_same_incidents() -> None:
    """Where evidence came from does not matter."""
    log = ["[  812.1] NVRM: Xid (PCI:0000:2A:00): 79, pid=7, name=train, GPU has fallen off the bus.",
           "[  812.2] NVRM: Xid (PCI:0000:2A:00): 45, pid=7, name=train, Ch 00000008"]  # fmt: skip
    collected = Pipeline(ProfileSet()).judge(Evidence("n1", [Output("kernel.log", log)], collected=True))
    assert leads("\n".join(log)) == [
        (collected.findings[incident.lead].check, collected.findings[incident.lead].subject.id)
        for incident in collected.incidents
    ]
