"""The order of things: evidence → snapshot → identity → profile → findings → incidents. Pure; ports are passed in."""

from __future__ import annotations

from collections.abc import Iterable

from hwcheck.checks.measurements import measurements
from hwcheck.engine import Judge
from hwcheck.evidence import Evidence
from hwcheck.facts import NODE, Fact, Origin, Snapshot
from hwcheck.findings import NodeVerdict
from hwcheck.incidents import group
from hwcheck.parse import take_snapshot
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
    """

    def __init__(
        self,
        profiles: ProfileSet,
        platform: str = "",
        only: Iterable[str] = (),
        waivers: Iterable[Waiver] = (),
    ) -> None:
        self.profiles = profiles
        self._platform = platform
        self._only = tuple(only)
        self._waivers = tuple(waivers)
        self._judges: dict[str, Judge] = {}

    def judge(self, evidence: Evidence, previous: Snapshot | None = None) -> NodeVerdict:
        """Judge one node's evidence."""
        return self.judge_snapshot(take_snapshot(evidence), previous)

    def judge_snapshot(self, snapshot: Snapshot, previous: Snapshot | None = None) -> NodeVerdict:
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
        findings = judge.findings(snapshot, previous)
        apply_waivers(findings, snapshot.node, self._waivers)
        return NodeVerdict(
            snapshot.node,
            judge.profile.name,
            _confidence(identity, self._platform),
            findings,
            group(findings),
            measurements(snapshot),
            snapshot.simulated,
        )

    def _judge(self, name: str) -> Judge:
        if name not in self._judges:
            self._judges[name] = Judge(self.profiles.profile(name), self._only)
        return self._judges[name]


def _confidence(identity: Identity, forced: str) -> str:
    return "given" if forced else identity.confidence
