"""The order of things: evidence → snapshot → identity → profile → findings → incidents. Pure; ports are passed in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hwcheck.checks.coverage import REACHABLE
from hwcheck.checks.measurements import measurements
from hwcheck.describe import describe
from hwcheck.engine import Judge, References
from hwcheck.evidence import Evidence
from hwcheck.facts import NODE, Fact, Origin, Snapshot
from hwcheck.findings import Finding, NodeVerdict, Remedy, Status, Urgency
from hwcheck.fleet import Fleet
from hwcheck.incidents import group
from hwcheck.parse import take_snapshot, take_snapshots
from hwcheck.profiles import Identity, ProfileSet, identify
from hwcheck.waivers import Waiver, apply_waivers


class Pipeline:
    """
    Judges nodes one by one; holds nothing of a node after it was judged.

    Args:
        profiles: loaded layers.
        platform: judge by this profile whatever the evidence says; "" to recognise it.
        only: families to judge, empty for all.
        waivers: accepted findings.
        fleet: sees each node that was judged; several pipelines may share it.
    """

    def __init__(
        self,
        profiles: ProfileSet,
        platform: str = "",
        only: Iterable[str] = (),
        waivers: Iterable[Waiver] = (),
        fleet: Fleet | None = None,
    ) -> None:
        self.profiles = profiles
        self._platform = platform
        self.only = tuple(only)
        self._waivers = tuple(waivers)
        self._judges: dict[str, Judge] = {}
        self._fleet = fleet

    def judge_all(self, evidence: Evidence, references: References | None = None) -> Iterator[NodeVerdict]:
        """Judge evidence that may hold more than one machine (posted outputs of two nodes in one paste)."""
        if evidence.unreachable:
            yield self.judge(evidence)
            return
        for snapshot in take_snapshots(evidence):
            yield self.judge_snapshot(snapshot, references=references)

    def judge(
        self, evidence: Evidence, previous: Snapshot | None = None, references: References | None = None
    ) -> NodeVerdict:
        """Judge one node's evidence; see :meth:`hwcheck.engine.Judge.findings`."""
        if evidence.unreachable:
            return self._unreached(evidence)
        return self.judge_snapshot(take_snapshot(evidence), previous, references)

    def judge_snapshot(
        self, snapshot: Snapshot, previous: Snapshot | None = None, references: References | None = None
    ) -> NodeVerdict:
        """Judge one node's facts."""
        identity = identify(snapshot, self.profiles.platforms)
        record = {
            "platform": identity.platform,
            "confidence": identity.confidence,
            "basis": identity.basis,
            "models": identity.models,
            "mixed": identity.mixed,
        }
        snapshot.put(NODE, "platform.identity", Fact(record, Origin("evidence")))
        judge = self._judge(self._platform or identity.platform)
        findings = judge.findings(snapshot, previous, references)
        apply_waivers(findings, snapshot.node, self._waivers)
        verdict = NodeVerdict(
            snapshot.node,
            judge.profile.name,
            _confidence(identity, self._platform),
            findings,
            group(findings),
            measurements(snapshot),
            snapshot.simulated,
            {**describe(snapshot, judge.profile.name), "requires": judge.profile.requires},
        )
        if self._fleet is not None:
            self._fleet.see(snapshot, verdict)
        return verdict

    def _unreached(self, evidence: Evidence) -> NodeVerdict:
        """Say that a node was asked and did not answer: one unknown, and none of the checks that nobody could ask."""
        text = f"could not be reached: {evidence.unreachable}"
        remedy = Remedy("hands", evidence.advice) if evidence.advice else None
        finding = Finding(REACHABLE, NODE, Status.UNKNOWN, text, Urgency.NOTE, remedy=remedy)
        apply_waivers([finding], evidence.node, self._waivers)
        platform = self._platform or identify(Snapshot(), self.profiles.platforms).platform
        return NodeVerdict(evidence.node, platform, "given" if self._platform else "none", [finding])

    def _judge(self, name: str) -> Judge:
        if name not in self._judges:
            self._judges[name] = Judge(self.profiles.profile(name), self.only)
        return self._judges[name]


def _confidence(identity: Identity, forced: str) -> str:
    return "given" if forced else identity.confidence
