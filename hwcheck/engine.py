"""
The engine: checks × subjects → findings. The only place where a missing value meets a verdict.

========================================  =========
a needed value                            answer
========================================  =========
present                                   the check body's
never asked, or there is none (``N/A``)   skip
asked and not told                        unknown
========================================  =========

A value that a check only also looks at (``uses``, ``any_of``, ``when``, ``unless``) may be missing; but if it was asked
for and not told, a pass would rest on what is not there, and becomes unknown.

Pure: no I/O, no clock, no environment. History enters as ``previous``, an earlier snapshot of the same boot, and as
``references``, the bounds that the fleet and the node's earlier measurements give.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from hwcheck.baselines import Bound
from hwcheck.checks import RELATIONS, Answer, Every, Given, Relation, Some
from hwcheck.checks.coverage import COMPLETE, JUDGED
from hwcheck.checks.expected import compile_entry
from hwcheck.facts import NAMES, NODE, NOT_COLLECTED, Facet, Fact, Missing, Reason, Snapshot, Subject
from hwcheck.findings import Finding, Remedy, Status, Urgency
from hwcheck.parse.format import FORMATS
from hwcheck.profiles import Profile

References = Mapping[str, tuple[Bound, ...]]
_NO_JUDGEMENT = ("evidence", "platform")
_AS_ROOT = Remedy("hands", "Collect again with the privilege it needs: as root (sudo).")


class Judge:
    """
    A profile, ready to judge snapshots; made once per platform.

    Args:
        profile: merged layers.
        only: families to judge, empty for all.
    """

    def __init__(self, profile: Profile, only: Iterable[str] = ()) -> None:
        self.profile = profile
        families = set(only)
        settings = [compile_entry(entry) for entry in profile.checks.values()]
        self.checks = [
            check
            for check in (*settings, *RELATIONS.values())
            if not families or check.id.partition(".")[0] in families
        ]
        self._say_gaps = not families or "evidence" in families
        self._bounds = profile.bound_values

    def findings(
        self, snapshot: Snapshot, previous: Snapshot | None = None, references: References | None = None
    ) -> list[Finding]:
        """
        Judge one node.

        Args:
            snapshot: its facts.
            previous: an earlier snapshot of the same node and boot, for rates and growth; None when there is none.
            references: bounds of measurements, by the name of their subject.
        """
        findings: list[Finding] = list(_gap_findings(snapshot)) if self._say_gaps else []
        for check in self.checks:
            findings.extend(self._ask(check, snapshot, previous, references or {}))
        nothing = _nothing_judged(findings)
        return [nothing, *findings] if nothing else findings

    def _ask(
        self, check: Relation, snapshot: Snapshot, previous: Snapshot | None, references: References
    ) -> list[Finding]:
        subjects = [NODE] if check.scope == "node" else snapshot.subjects(check.scope)
        if not subjects:
            return [self._nobody(check, snapshot)]
        findings: list[Finding] = []
        untold: list[Finding] = []
        for subject in subjects:
            given = self._given(check, subject, snapshot, previous)
            if isinstance(given, Finding):
                untold.append(given)
            else:
                given.references = references.get(subject.id, ()) if subject.kind == "measurement" else ()
                findings.extend(_answers(check, subject, given))
        if untold and not findings and all(f.status is Status.SKIP and f.message == untold[0].message for f in untold):
            # One line for "never asked" instead of one a GPU: the report stays readable and the run small.
            return [replace(untold[0], subject=NODE)]
        return findings + untold

    def _nobody(self, check: Relation, snapshot: Snapshot) -> Finding:
        for name in (*_names(check), *check.any_of):
            gap = snapshot.gap_for(name)
            if gap is not None and gap.missing.reason.asked:
                return _untold(check, NODE, name, Fact(gap.missing, gap.origin))
        return Finding(check.id, NODE, Status.SKIP, f"no {check.scope} in the evidence", gap=NOT_COLLECTED)

    def _given(
        self, check: Relation, subject: Subject, snapshot: Snapshot, previous: Snapshot | None
    ) -> Given | Finding:
        values: dict[str, Any] = {}
        facts: dict[str, Fact] = {}
        next_boot_only = False
        for need in check.needs:
            name = need if isinstance(need, str) else need.name
            if isinstance(need, str):
                fact = _look(snapshot, subject, name)
                if not fact.present and check.facets and not _asked(fact):
                    following = _look(snapshot, subject, name, Facet.NEXT_BOOT)
                    fact, next_boot_only = (following, True) if following.present else (fact, False)
                if not fact.present:
                    return _untold(check, subject, name, fact)
                values[name], facts[name] = fact.value, fact
                continue
            all_values, bad = _collect(snapshot, need)
            if bad is not None:
                return _untold(check, bad[0], name, bad[1])
            values[name] = {one: fact.value for one, fact in all_values.items()}
            facts[name] = next(iter(all_values.values()))
        doubts: dict[str, Fact] = {}
        if check.any_of:
            alternatives = {name: _look(snapshot, subject, name) for name in check.any_of}
            present = {name: fact for name, fact in alternatives.items() if fact.present}
            if not present:
                worst = max(alternatives.items(), key=lambda item: _asked(item[1]))
                return _untold(check, subject, *worst)
            doubts.update({name: fact for name, fact in alternatives.items() if _asked(fact)})
            facts.update(present)
            values.update({name: fact.value for name, fact in present.items()})

        def maybe(name: str, facet: Facet = Facet.RUNNING) -> Any:
            fact = _look(snapshot, subject, name, facet)
            if _asked(fact):
                doubts[name] = fact
            return fact.value if fact.present else None

        def before(name: str) -> Any:
            if name not in check.compares:
                raise KeyError(f"{check.id} does not declare that it compares {name}")
            fact = _look(previous, subject, name) if previous is not None else None
            return fact.value if fact is not None and fact.present else None

        given = Given(subject, values, facts, maybe, self._bounds, self.profile.name, before, doubts)
        given.next_boot_only = next_boot_only
        return given


def _look(snapshot: Snapshot, subject: Subject, name: str, facet: Facet = Facet.RUNNING) -> Fact:
    """Return a fact of the subject, or of the node where the name belongs to the node."""
    return snapshot.get(NODE if NAMES[name].scope == "node" else subject, name, facet)


def _names(check: Relation) -> list[str]:
    return [need if isinstance(need, str) else need.name for need in check.needs]


def _asked(fact: Fact) -> bool:
    return isinstance(fact.value, Missing) and fact.value.reason.asked


def _collect(snapshot: Snapshot, need: Every | Some) -> tuple[dict[Subject, Fact], tuple[Subject, Fact] | None]:
    """Gather a fact over its subjects; the second part is the gap that keeps the check from an answer."""
    found: dict[Subject, Fact] = {}
    for subject, fact in snapshot.with_fact(need.name):
        if fact.present:
            found[subject] = fact
        elif isinstance(need, Every) and _asked(fact):
            return {}, (subject, fact)
    gap = snapshot.gap_for(need.name)
    if gap is not None and gap.missing.reason.asked and (isinstance(need, Every) or not found):
        return {}, (NODE, Fact(gap.missing, gap.origin))
    if not found:
        return {}, (NODE, Fact(NOT_COLLECTED))
    return found, None


def _untold(check: Relation, subject: Subject, name: str, fact: Fact) -> Finding:
    missing = fact.value
    assert isinstance(missing, Missing)  # noqa: S101 - narrows the type; every caller has looked
    what = NAMES[name].text.partition(";")[0]
    if missing.reason.asked:
        detail = f": {missing.detail}" if missing.detail else ""
        text = f"{check.title.rstrip('.')}: could not be told, {name} {missing.reason}{detail}"
        remedy = _AS_ROOT if missing.reason is Reason.DENIED else None
        return Finding(
            check.id, subject, Status.UNKNOWN, text, Urgency.NOTE, origin=fact.origin, remedy=remedy, gap=missing
        )
    text = f"{name} {missing.reason} ({what})"
    return Finding(check.id, subject, Status.SKIP, text, origin=fact.origin, gap=missing)


def _answers(check: Relation, subject: Subject, given: Given) -> list[Finding]:
    result = check.body(given)
    if result is None:
        return []
    answers = [result] if isinstance(result, Answer) else list(result)
    if given.doubts:
        # a pass, or "does not apply here", that rests on a value which was asked for and not told
        name, fact = next(iter(given.doubts.items()))
        return [
            _untold(check, answer.subject or subject, name, fact)
            if answer.status in (Status.PASS, Status.SKIP)
            else _finding(check, subject, given, answer)
            for answer in answers
        ]
    return [_finding(check, subject, given, answer) for answer in answers]


def _finding(check: Relation, subject: Subject, given: Given, answer: Answer) -> Finding:
    bad = answer.status in (Status.WARN, Status.FAIL, Status.UNKNOWN)
    first = answer.because or next(iter(given.facts), "")
    return Finding(
        check=answer.check or check.id,
        subject=answer.subject or subject,
        status=answer.status,
        message=answer.message,
        urgency=(answer.urgency or (Urgency.NOTE if answer.status is Status.UNKNOWN else check.urgency))
        if bad
        else None,
        observed=answer.observed,
        expected=answer.expected,
        origin=answer.origin or given.origin(first),
        remedy=(answer.remedy or check.remedy) if bad else None,
        seen=answer.seen,
    )


def _gap_findings(snapshot: Snapshot) -> Iterable[Finding]:
    """Say which sources were asked and did not tell; one that is simply not there is a skip."""
    for gap in snapshot.gaps:
        title = FORMATS[gap.kind].title if gap.kind in FORMATS else gap.kind
        status = Status.UNKNOWN if gap.missing.reason.asked else Status.SKIP
        detail = f": {gap.missing.detail}" if gap.missing.detail else ""
        text = f"{title}: {gap.missing.reason}{detail}"
        urgency = Urgency.NOTE if status is Status.UNKNOWN else None
        remedy = _AS_ROOT if gap.missing.reason is Reason.DENIED else None
        yield Finding(
            COMPLETE,
            NODE,
            status,
            text,
            urgency,
            str(gap.missing.reason),
            origin=gap.origin,
            remedy=remedy,
            gap=gap.missing,
        )


def _nothing_judged(findings: list[Finding]) -> Finding | None:
    """Say that no check answered at all: "nothing found" must not look like "nothing wrong"."""
    if any(f.status is not Status.SKIP and f.family not in _NO_JUDGEMENT for f in findings):
        return None
    declined = sorted(
        {f.check for f in findings if f.gap is None and f.family not in _NO_JUDGEMENT and f.observed is not None}
    )
    text = "no check could be answered from this evidence; nothing is known of the node's health"
    if declined:
        text = f"no check came to an answer; {', '.join(declined[:6])} saw something and could not judge it"
    return Finding(JUDGED, NODE, Status.UNKNOWN, text, Urgency.NOTE)
