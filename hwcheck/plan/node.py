"""
From the findings of a node to its plan.

Findings that warn or fail and count bring their remedy; the same value wanted twice is one step, two values for one key
are an error. Order: what persists, acts, what is volatile (an act may have reset it), and one reboot at most, which
takes the place of every act that it does as well. What our files hold and no check wants is retired (:mod:`.retire`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from hwcheck.checks import RELATIONS
from hwcheck.checks.expected import remedy_of
from hwcheck.describe import cohort
from hwcheck.errors import PlanError
from hwcheck.facts import Snapshot
from hwcheck.findings import Act, Finding, NodeVerdict, Remedy, Status, Write
from hwcheck.mechanisms import MECHANISMS
from hwcheck.plan.observe import NEXT_BOOT, RUNNING, Seen, is_right, owner_of, seen_of, unit_here
from hwcheck.plan.retire import retired
from hwcheck.plan.words import LeftOut, NodePlan, PlannedAct, Step
from hwcheck.profiles import Profile
from hwcheck.profiles.identify import GENERIC
from hwcheck.profiles.remedies import as_text

MANAGER = "nvidia-fabricmanager.service"
_BY_REBOOT = ("restart", "reload_units", "reload_driver", "reset_gpu")
"""Acts that a reboot does as well."""
_SURE = ("pci-id", "name", "given")
_WIDER = ("nothing", "gpu", "network", "board", "node")
"""What is disturbed, from nothing to everything."""

Place = tuple[str, str, str]
"""Mechanism, key, and the subject it belongs to."""


def plan_node(
    verdict: NodeVerdict, snapshot: Snapshot | None, profile: Profile, asked: Collection[str] = (),
    only: Collection[str] = (),
) -> NodePlan:  # fmt: skip
    """
    Plan one node.

    Args:
        verdict: what was said of it.
        snapshot: the facts it rests on; None when the node was not reached.
        profile: that judged it.
        asked: check ids and families whose opt-in writes and acts are wanted, beside those of the profile.
        only: families that were judged; () for all.

    Raises:
        PlanError: two checks want different values for one key.
    """
    refused = _refusal(verdict, snapshot)
    if refused or snapshot is None:
        return NodePlan(verdict.node, verdict.platform, refused=refused)
    making = _Making(snapshot, profile, {*asked, *profile.opt_in})
    for finding in verdict.findings:
        making.take(finding)
    making.retire(only)
    return making.plan(verdict)


def _refusal(verdict: NodeVerdict, snapshot: Snapshot | None) -> str:
    """Say why nothing may be planned for a node; "" when it may."""
    if snapshot is None:
        return next((finding.message for finding in verdict.findings), "not read")
    identity = snapshot.value("platform.identity") or {}
    if identity.get("mixed"):
        return str(identity.get("basis") or "different GPU models in one node")
    if verdict.confidence not in _SURE or (verdict.platform == GENERIC and verdict.confidence != "given"):
        return f"the platform is not known for sure: {identity.get('basis') or 'nothing names it'}"
    return ""


class _Making:
    """A plan of one node while it is made."""

    def __init__(self, snapshot: Snapshot, profile: Profile, asked: set[str]) -> None:
        self._snapshot = snapshot
        self._profile = profile
        self._asked = asked
        self._fixable = fixable(profile)
        self._steps: dict[Place, Step] = {}
        self._keeps: set[Place] = set()
        self._acts: dict[tuple[str, str], PlannedAct] = {}
        self._reboot: dict[str, None] = {}
        self._left: dict[tuple[str, str, str], list[str]] = {}
        self._hands: dict[tuple[str, str, str], list[str]] = {}

    def take(self, finding: Finding) -> None:
        """Add what one finding asks for."""
        if finding.status is Status.UNKNOWN and finding.check in self._fixable:
            self._leave(finding, "unknown", _gap(finding))
        remedy = finding.remedy
        if remedy is None or finding.status not in (Status.WARN, Status.FAIL):
            return
        if not finding.counts:
            if remedy.writes or remedy.acts:
                self._leave(finding, "waived", f"waived by {(finding.waived or {}).get('owner', '')}")
            return
        written = [self._write(finding, remedy, write) for write in remedy.writes]
        done = [self._act(finding, remedy, act) for act in remedy.acts]
        if not any((*written, *done)):
            key = (finding.check, "hands", remedy.by_hand or remedy.text)
            self._hands.setdefault(key, []).append(finding.subject.id)
        elif any(written) and self._waits_for_boot(finding, remedy):
            self._reboot[finding.check] = None

    def _wanted(self, check: str) -> bool:
        return check in self._asked or check.partition(".")[0] in self._asked

    def _leave(self, finding: Finding, why: str, text: str, subject: str = "") -> None:
        self._left.setdefault((finding.check, why, text), []).append(subject or finding.subject.id)

    def _write(self, finding: Finding, remedy: Remedy, write: Write) -> bool:
        """Take up one write; returns whether it is in the plan, or could be if somebody asked for it."""
        kind = MECHANISMS[write.mechanism]
        id = write.subject or finding.subject.id
        key = _filled(write.key, id.replace(".", "/") if kind.name == "sysctl" else id)
        restart = _filled(write.restart, id)
        if kind.name in ("unit", "unit_property"):
            unit, _, rest = key.partition(" ")
            here = unit_here(self._snapshot, unit)
            if here is None:
                if write.value != "disabled":  # what is not there need not be stopped
                    self._leave(finding, "by hand", f"{unit} is not installed, or masked")
                return False
            key, restart = f"{here} {rest}".rstrip(), here if restart == unit else restart
        refused = self._snapshot.value(write.refused_by) if write.refused_by else ""
        if refused:
            self._leave(finding, "refused", f"{kind.name} {key}: {refused}", id)
            return False
        own = seen_of(self._snapshot, kind.name, key, write.value)
        seen = own or _judged(finding, write)
        if is_right(kind.name, write.value, own or {RUNNING: None, NEXT_BOOT: None}):
            return False
        if write.opt_in and not self._wanted(finding.check):
            self._leave(finding, "opt-in", f"{kind.name} {key} = {write.value}", id)
            return True
        step = Step(
            finding.check, id if kind.of_subject else "", kind.name, key, write.value, seen,
            _scope_of_unit(key) or remedy.disturbs or "nothing", write.opt_in, restart, finding.message,
            write.irreversible, owner_of(self._snapshot, kind.name, key),
        )  # fmt: skip
        self._merge(step, keeps=write.keeps)
        return True

    def _merge(self, step: Step, *, keeps: bool) -> None:
        several = step.key in MECHANISMS[step.mechanism].several
        place = (step.mechanism, f"{step.key}={step.value}" if several else step.key, step.subject)
        other = self._steps.get(place)
        if other is None or (place in self._keeps and not keeps):
            self._steps[place] = step if other is None else replace(step, also=_both(step.id, other))
            (self._keeps.add if keeps else self._keeps.discard)(place)
            return
        if keeps and place not in self._keeps:
            return
        if other.value != step.value:
            if step.mechanism != "unit" or {other.value, step.value} != {"running", "enabled"}:
                raise PlanError(
                    f"{other.id} wants {step.mechanism} {step.key} = {other.value}, {step.id} wants {step.value}"
                )
            other = replace(other, value="running")  # which starts it at boot as well
        wider = max(other.disturbs, step.disturbs, key=_WIDER.index)
        self._steps[place] = replace(other, also=_both(other.id, other, step), disturbs=wider)

    def _act(self, finding: Finding, remedy: Remedy, act: Act) -> bool:
        """Take up one act; returns whether it is in the plan, or could be if somebody asked for it."""
        target, scope = _filled(act.target, finding.subject.id), remedy.disturbs or "nothing"
        if act.do in ("restart", "start") and unit_here(self._snapshot, target) is None:
            self._leave(finding, "by hand", f"{target} is not installed, or masked")
            return False
        if act.do == "reset_gpu":
            board = self._profile.bound_values.get("fabric.kind") == "nvswitch"
            target, scope = ("", "board") if board else (target, scope)
        elif act.do in ("reboot", "reload_driver"):
            scope = "node"
        if act.opt_in and not self._wanted(finding.check):
            self._leave(finding, "opt-in", f"{act.do} {target}".rstrip())
            return True
        if act.do == "reboot":
            self._reboot[finding.check] = None
            return True
        new = PlannedAct(finding.check, act.do, target, _scope_of_unit(target) or scope, finding.message)
        old = self._acts.setdefault((act.do, target), new)
        if old is not new and finding.check not in (old.id, *old.also):
            self._acts[act.do, target] = replace(old, also=(*old.also, finding.check))
        return True

    def _waits_for_boot(self, finding: Finding, remedy: Remedy) -> bool:
        """Tell whether what runs is wrong, and nothing of the remedy changes it before the next boot."""
        wanted = [write for write in remedy.writes if not write.opt_in or self._wanted(finding.check)]
        if not wanted or any(write.keeps or not MECHANISMS[write.mechanism].reboots for write in wanted):
            return False
        if finding.seen is None:
            return True
        running, following = finding.seen.get(RUNNING), finding.seen.get(NEXT_BOOT)
        return running is not None and not (finding.observed == following != running)  # an image runs nothing

    def retire(self, only: Collection[str]) -> None:
        """Add what our files hold and no check wants, but for keys that are set anew."""
        for step in retired(self._snapshot, self._profile, only):
            self._steps.setdefault((step.mechanism, step.key, step.subject), step)

    def plan(self, verdict: NodeVerdict) -> NodePlan:
        """Put it in order."""
        steps = sorted(self._steps.values(), key=lambda step: MECHANISMS[step.mechanism].phase != "persist")
        acts = [act for act in self._acts.values() if not (self._reboot and act.do in _BY_REBOOT)]
        return NodePlan(
            verdict.node, verdict.platform, str(self._snapshot.value("kernel.boot_id") or ""),
            cohort(verdict.platform, self._snapshot), domain(self._snapshot, self._profile), tuple(steps),
            tuple(acts), tuple(self._reboot), _left_out(self._left), _left_out(self._hands),
        )  # fmt: skip


def _left_out(found: dict[tuple[str, str, str], list[str]]) -> tuple[LeftOut, ...]:
    return tuple(LeftOut(id, tuple(dict.fromkeys(subjects)), why, text) for (id, why, text), subjects in found.items())


def _gap(finding: Finding) -> str:
    """Say what was not told, in the same words for all checks that the same gap keeps from an answer."""
    if finding.gap is None:
        return finding.message
    source = f"{finding.origin.source} " if finding.origin else ""
    return f"{source}{finding.gap.reason}{f': {finding.gap.detail}' if finding.gap.detail else ''}"


def _both(first: str, *steps: Step) -> tuple[str, ...]:
    ids = dict.fromkeys(id for step in steps for id in (step.id, *step.also))
    return tuple(id for id in ids if id != first)


def _filled(text: str, id: str) -> str:
    return text.replace("{subject}", id)


def _scope_of_unit(key: str) -> str:
    return "board" if key == MANAGER else ""


def _judged(finding: Finding, write: Write) -> Seen:
    """Return what the check saw, where that is a value of the key."""
    told = {} if write.indirect else finding.seen or {}
    return {facet: _text(told.get(facet)) for facet in (RUNNING, NEXT_BOOT)}


def _text(value: object) -> str | None:
    try:
        return None if value is None else as_text(value)
    except ValueError:
        return None


def fixable(profile: Profile) -> frozenset[str]:
    """Return the ids of checks that would write or act: where they cannot tell, a plan may be short of something."""
    if profile.hash not in _FIXABLE:
        found = {id for id, entry in profile.checks.items() if _does(remedy_of(entry.data))}
        for relation in RELATIONS.values():
            if _does(relation.remedy):
                found.update((relation.id, *relation.ids))
        _FIXABLE[profile.hash] = frozenset(found)
    return _FIXABLE[profile.hash]


_FIXABLE: dict[str, frozenset[str]] = {}
"""Hash of a profile → ids; a fleet asks for the same few profiles."""


def _does(remedy: Remedy | None) -> bool:
    """Tell whether it would do anything; some relations work out only with the values what they write."""
    return remedy is not None and bool(remedy.writes or remedy.acts or remedy.worked_out)


def domain(snapshot: Snapshot, profile: Profile) -> str:
    """Return the NVLink domain of a tray: those of a rack fail together. A board with switches of its own has none."""
    if profile.bound_values.get("fabric.kind") != "nvlink-domain":
        return ""
    found = {str(fact.value) for _, fact in snapshot.with_fact("gpu.fabric.cluster") if fact.present}
    cluster = found.pop() if len(found) == 1 else ""
    return cluster if cluster.strip("0-") else ""


def check_asked(asked: Iterable[str], profile: Profile, families: Collection[str]) -> str:
    """Return the first of what is asked for that names no check and no family; "" when all do."""
    known = {*families, *profile.checks, *RELATIONS, *(id for one in RELATIONS.values() for id in one.ids)}
    return next((name for name in asked if name not in known), "")
