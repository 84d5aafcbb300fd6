"""How a missing value meets a verdict, and what the engine adds of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hwcheck.checks.relation import Answer, Every, Given, Relation, Some, fail, ok, relation, skip, unknown, warn
from hwcheck.engine import Judge
from hwcheck.facts import NODE, Facet, Fact, Missing, Origin, Reason, Snapshot, SourceGap, Subject, gpu_at
from hwcheck.findings import Finding, Remedy, Status, Urgency
from hwcheck.profiles import ProfileSet
from hwcheck.profiles.layers import Profile

ONE, TWO = gpu_at("18:00.0"), gpu_at("2a:00.0")
TEMPERATURE, NAME, DRIVER, MIG = "gpu.temperature", "gpu.name", "driver.version", "gpu.mig.mode"
REMEDY = Remedy("hands", "Look at it.")
STATUS = {
    Reason.ABSENT: Status.SKIP,
    Reason.NOT_COLLECTED: Status.SKIP,
    Reason.DENIED: Status.UNKNOWN,
    Reason.TIMEOUT: Status.UNKNOWN,
    Reason.UNPARSABLE: Status.UNKNOWN,
    Reason.FAILED: Status.UNKNOWN,
}
ASKED = [reason for reason in Reason if reason.asked]
EMPTY = Profile("test", "", ("test",), {}, {}, "")


def check(body: Callable[[Given], Any] = lambda _: ok("fine"), scope: str = "gpu", **parts: Any) -> Relation:
    """Make a check that is in no registry."""
    values: dict[str, Any] = {"needs": (), "uses": (), "any_of": (), "urgency": Urgency.MAINTENANCE, "remedy": REMEDY}
    return Relation("gpu.test", scope, **(values | parts), body=body, title="The test holds.", text="")


def snapshot(facts: dict[tuple[Subject, str], Any], *gaps: SourceGap) -> Snapshot:
    """Make a snapshot; a Reason becomes a Missing."""
    made = Snapshot(gaps=list(gaps))
    for line, ((subject, name), value) in enumerate(facts.items(), 1):
        told = Missing(value, "word") if isinstance(value, Reason) else value
        made.put(subject, name, Fact(told, Origin("nvidia-smi.q", "posted", line, name)))
    return made


def gap(reason: Reason, *gives: str) -> SourceGap:
    """Make a source that did not answer."""
    return SourceGap("nvidia-smi.q", gives, Missing(reason, "word"), Origin("nvidia-smi.q", "posted"))


def ask(one: Relation, facts: Snapshot, previous: Snapshot | None = None, profile: Profile = EMPTY) -> list[Finding]:
    """Ask one check."""
    judge = Judge(profile)
    judge.checks = [one]
    return [finding for finding in judge.findings(facts, previous) if finding.check == "gpu.test"]


def statuses(one: Relation, facts: Snapshot) -> list[Status]:
    """Ask one check for its statuses."""
    return [finding.status for finding in ask(one, facts)]


def test_a_present_value_is_for_the_check_to_judge() -> None:
    """The body sees the value of its subject, and of the node where the fact is the node's."""
    seen: list[Any] = []

    def body(given: Given) -> Answer:
        seen.append((given.subject, given[TEMPERATURE], given[DRIVER], given.platform))
        return ok("fine")

    facts = snapshot({(ONE, TEMPERATURE): 31, (TWO, TEMPERATURE): 40, (NODE, DRIVER): "570.1"})
    assert statuses(check(body, needs=(TEMPERATURE, DRIVER)), facts) == [Status.PASS, Status.PASS]
    assert seen == [(ONE, 31, "570.1", "test"), (TWO, 40, "570.1", "test")] or seen[::-1] == [
        (ONE, 31, "570.1", "test"), (TWO, 40, "570.1", "test")
    ]  # fmt: skip


@pytest.mark.parametrize("reason", Reason)
def test_a_needed_value_that_is_missing_decides_without_the_check(reason: Reason) -> None:
    """Never asked or not there is a skip, asked and not told is unknown, and the body is not even called."""

    def body(_: Given) -> Answer:
        raise AssertionError("a check body must not see a missing value")

    (finding,) = ask(check(body, needs=(TEMPERATURE,)), snapshot({(ONE, TEMPERATURE): reason}))
    assert finding.status is STATUS[reason]
    assert TEMPERATURE in finding.message
    assert str(reason) in finding.message
    assert finding.gap == Missing(reason, "word")
    assert finding.urgency is (Urgency.NOTE if reason.asked else None)


@pytest.mark.parametrize("reason", Reason)
def test_a_dead_source_speaks_for_all_its_names(reason: Reason) -> None:
    """A source that gave nothing makes its names missing on every subject, and where there is no subject at all."""
    for facts in ({(ONE, NAME): "NVIDIA H200"}, {}):
        (finding,) = ask(check(needs=(TEMPERATURE,)), snapshot(facts, gap(reason, "gpu.*")))
        assert finding.status is STATUS[reason]


def test_no_subject_is_a_skip() -> None:
    """A node without the thing is not asked about it."""
    (finding,) = ask(check(needs=(TEMPERATURE,)), snapshot({}))
    assert (finding.status, finding.subject) == (Status.SKIP, NODE)
    assert "no gpu in the evidence" in finding.message


def test_what_was_asked_of_none_of_many_is_said_once() -> None:
    """Eight equal skips are one line; one that differs keeps each its own."""
    names = {(ONE, NAME): "NVIDIA H200", (TWO, NAME): "NVIDIA H200"}
    (finding,) = ask(check(needs=(TEMPERATURE,)), snapshot(names))
    assert (finding.status, finding.subject) == (Status.SKIP, NODE)
    mixed = ask(check(needs=(TEMPERATURE,)), snapshot({**names, (ONE, TEMPERATURE): 31}))
    assert {(finding.subject, finding.status) for finding in mixed} == {(ONE, Status.PASS), (TWO, Status.SKIP)}


@pytest.mark.parametrize("reason", Reason)
@pytest.mark.parametrize("how", ["uses", "any_of"])
def test_a_pass_does_not_rest_on_what_could_not_be_told(how: str, reason: Reason) -> None:
    """A value only looked at may be missing; if it was asked for and not told, the pass becomes unknown."""

    def look(given: Given) -> Answer:
        given.maybe(MIG)
        return ok("fine")

    one = check(look, needs=(TEMPERATURE,), uses=(MIG,)) if how == "uses" else check(any_of=(TEMPERATURE, MIG))
    (finding,) = ask(one, snapshot({(ONE, TEMPERATURE): 31, (ONE, MIG): reason}))
    assert finding.status is (Status.UNKNOWN if reason.asked else Status.PASS)


@pytest.mark.parametrize("answer", [warn, fail, unknown])
def test_any_other_answer_stands_beside_a_doubt(answer: Callable[[str], Answer]) -> None:
    """What is seen wrong is wrong, whatever else could not be told."""

    def look(given: Given) -> Answer:
        given.maybe(MIG)
        return answer("so it is")

    one = check(look, needs=(TEMPERATURE,), uses=(MIG,))
    (finding,) = ask(one, snapshot({(ONE, TEMPERATURE): 31, (ONE, MIG): Reason.DENIED}))
    assert finding.status is answer("").status


def test_a_skip_beside_a_doubt_is_unknown() -> None:
    """Whether a check applies cannot be told from a value that was asked for and not told."""

    def look(given: Given) -> Answer:
        given.maybe(MIG)
        return skip("does not apply")

    one = check(look, needs=(TEMPERATURE,), uses=(MIG,))
    (finding,) = ask(one, snapshot({(ONE, TEMPERATURE): 31, (ONE, MIG): Reason.DENIED}))
    assert finding.status is Status.UNKNOWN


def test_one_pass_among_several_answers_is_doubted_alone() -> None:
    """A check that answers for many keeps its fails."""

    def both(given: Given) -> list[Answer]:
        given.maybe(MIG)
        return [ok("fine", check="gpu.test"), fail("broken", check="gpu.test")]

    one = check(both, needs=(TEMPERATURE,), uses=(MIG,))
    found = statuses(one, snapshot({(ONE, TEMPERATURE): 31, (ONE, MIG): Reason.TIMEOUT}))
    assert found == [Status.UNKNOWN, Status.FAIL]


def test_one_of_several_sources_is_enough() -> None:
    """Any of the alternatives answers; without any, the one that was asked decides."""
    one = check(any_of=(TEMPERATURE, MIG))
    assert statuses(one, snapshot({(ONE, MIG): True})) == [Status.PASS]
    assert statuses(one, snapshot({(ONE, NAME): "NVIDIA H200"})) == [Status.SKIP]
    assert statuses(one, snapshot({(ONE, MIG): Reason.ABSENT, (ONE, TEMPERATURE): Reason.DENIED})) == [Status.UNKNOWN]
    assert statuses(one, snapshot({(ONE, MIG): Reason.ABSENT, (ONE, TEMPERATURE): Reason.ABSENT})) == [Status.SKIP]


@pytest.mark.parametrize(
    ("values", "every", "some"),
    [
        ((31, 40), Status.PASS, Status.PASS),
        ((31, Reason.ABSENT), Status.PASS, Status.PASS),
        ((31, Reason.FAILED), Status.UNKNOWN, Status.PASS),
        ((Reason.FAILED, Reason.DENIED), Status.UNKNOWN, Status.UNKNOWN),
        ((Reason.ABSENT, Reason.ABSENT), Status.SKIP, Status.SKIP),
    ],
)
def test_every_and_some_gather_a_fact_over_the_node(values: tuple[Any, Any], every: Status, some: Status) -> None:
    """One subject that was asked and not told spoils Every; one that tells is enough for Some."""
    facts = snapshot({(ONE, TEMPERATURE): values[0], (TWO, TEMPERATURE): values[1]})
    assert statuses(check(scope="node", needs=(Every(TEMPERATURE),)), facts) == [every]
    if some is not Status.UNKNOWN:
        assert statuses(check(scope="node", needs=(Some(TEMPERATURE),)), facts) == [some]


@pytest.mark.parametrize("need", [Every, Some])
def test_a_cut_off_listing_spoils_every_and_not_some(need: Any) -> None:
    """What the missing part would have held is unknown to a check that wants all of it."""
    facts = snapshot({(ONE, TEMPERATURE): 31}, gap(Reason.UNPARSABLE, "gpu.*"))
    expected = Status.UNKNOWN if need is Every else Status.PASS
    assert statuses(check(scope="node", needs=(need(TEMPERATURE),)), facts) == [expected]


def test_gathered_values_are_by_subject() -> None:
    """The body sees a dictionary."""
    seen: dict[Subject, int] = {}

    def body(given: Given) -> None:
        seen.update(given[TEMPERATURE])

    facts = snapshot({(ONE, TEMPERATURE): 31, (TWO, TEMPERATURE): 40})
    assert ask(check(body, scope="node", needs=(Every(TEMPERATURE),)), facts) == []
    assert seen == {ONE: 31, TWO: 40}


def test_bad_findings_carry_urgency_remedy_and_the_line() -> None:
    """A fail says when and what to do and where it is seen; a pass has nothing to do."""
    facts = snapshot({(NODE, DRIVER): "570.1", (ONE, TEMPERATURE): 99})
    needs: dict[str, Any] = {"needs": (TEMPERATURE,), "urgency": Urgency.NOW}
    (bad,) = ask(check(lambda _: fail("hot", observed=99, expected="at most 90"), **needs), facts)
    assert (bad.urgency, bad.remedy, bad.observed, bad.expected) == (Urgency.NOW, REMEDY, 99, "at most 90")
    assert bad.origin == Origin("nvidia-smi.q", "posted", 2, TEMPERATURE)
    (good,) = ask(check(**needs), facts)
    assert (good.urgency, good.remedy) == (None, None)
    (other,) = ask(check(lambda _: warn("warm", urgency=Urgency.NOTE, remedy=Remedy("act", "Wait.")), **needs), facts)
    assert (other.urgency, other.remedy) == (Urgency.NOTE, Remedy("act", "Wait."))
    (untold,) = ask(check(lambda _: unknown("no yardstick"), **needs), facts)
    assert (untold.urgency, untold.remedy) == (Urgency.NOTE, REMEDY)


def test_what_was_denied_is_to_be_asked_again_as_root() -> None:
    """The remedy of a denied value is privilege; of a timeout it is none."""
    for reason, wanted in ((Reason.DENIED, True), (Reason.TIMEOUT, False)):
        (finding,) = ask(check(needs=(TEMPERATURE,)), snapshot({(ONE, TEMPERATURE): reason}))
        assert bool(finding.remedy and "root" in finding.remedy.text) is wanted
        (told,) = [
            f for f in Judge(EMPTY).findings(snapshot({}, gap(reason, "gpu.*"))) if f.check == "evidence.complete"
        ]
        assert bool(told.remedy and "root" in told.remedy.text) is wanted


def test_growth_is_seen_against_an_earlier_snapshot() -> None:
    """History enters as an argument; without it, or where it has no value, there is none."""

    def grown(given: Given) -> Answer:
        before = given.previous(TEMPERATURE)
        return skip("first reading") if before is None else ok(f"grew by {given[TEMPERATURE] - before}")

    one, now = check(grown, needs=(TEMPERATURE,), compares=(TEMPERATURE,)), snapshot({(ONE, TEMPERATURE): 40})
    assert [f.message for f in ask(one, now)] == ["first reading"]
    assert [f.message for f in ask(one, now, snapshot({(ONE, TEMPERATURE): 31}))] == ["grew by 9"]
    for before in ({(ONE, TEMPERATURE): Reason.FAILED}, {(TWO, TEMPERATURE): 31}):
        assert [f.message for f in ask(one, now, snapshot(before))] == ["first reading"]


def test_bounds_are_the_profiles() -> None:
    """A check asks for a figure; a platform without it has none."""
    seen: list[Any] = []

    def body(given: Given) -> None:
        seen.extend([given.bound("gpu.count"), given.bound("no.such.bound")])

    ask(check(body, scope="node"), snapshot({}), profile=ProfileSet().profile("hgx-h200"))
    assert seen == [8, None]


@pytest.mark.parametrize("reason", Reason)
def test_a_source_that_did_not_answer_is_a_finding_itself(reason: Reason) -> None:
    """Asked and not told is unknown, with the source's name and words; not there is a skip."""
    findings = Judge(EMPTY).findings(snapshot({}, gap(reason, "gpu.*")))
    (told,) = [finding for finding in findings if finding.check == "evidence.complete"]
    assert told.status is STATUS[reason]
    assert told.message == f"nvidia-smi -q: {reason}: word"
    assert told.origin == Origin("nvidia-smi.q", "posted")


def test_nothing_judged_is_unknown_and_stands_first() -> None:
    """That nothing was found must not look as if nothing were wrong."""
    judge = Judge(EMPTY)
    first = judge.findings(snapshot({}))[0]
    assert (first.check, first.status) == ("evidence.judged", Status.UNKNOWN)
    judge.checks = [check(needs=(TEMPERATURE,))]
    answered = judge.findings(snapshot({(ONE, TEMPERATURE): 31}))
    assert [finding.check for finding in answered] == ["gpu.test"]


@pytest.mark.parametrize("status", [warn, fail, unknown])
def test_an_answer_of_any_kind_is_a_judgement(status: Callable[[str], Answer]) -> None:
    """Where one check found something, the node was judged."""
    judge = Judge(EMPTY)
    judge.checks = [check(lambda _: status("so"), needs=(TEMPERATURE,))]
    found = judge.findings(snapshot({(ONE, TEMPERATURE): 31}))
    assert "evidence.judged" not in {finding.check for finding in found}


def test_only_the_families_asked_for_are_judged() -> None:
    """Other families are not even asked; gaps are told only with evidence among them."""
    profile = ProfileSet().profile("hgx-h200")
    facts = snapshot({(ONE, TEMPERATURE): 31}, gap(Reason.TIMEOUT, "gpu.*"))
    families = {finding.family for finding in Judge(profile, ["thermal"]).findings(facts)}
    assert families <= {"thermal", "evidence"}
    assert "evidence.complete" not in {f.check for f in Judge(profile, ["thermal"]).findings(facts)}
    assert "evidence.complete" in {f.check for f in Judge(profile, ["thermal", "evidence"]).findings(facts)}


def test_facets_other_than_running_are_looked_at_by_name() -> None:
    """A check may look at what comes after a reboot; a denied facet is a doubt as any other."""

    def body(given: Given) -> Answer:
        return ok(str(given.maybe(MIG, Facet.NEXT_BOOT)))

    one, facts = check(body, needs=(MIG,), uses=(MIG,)), snapshot({(ONE, MIG): True})
    assert [f.message for f in ask(one, facts)] == ["None"]
    facts.put(ONE, MIG, Fact(value=False), Facet.NEXT_BOOT)
    assert [f.message for f in ask(one, facts)] == ["False"]
    denied = snapshot({(ONE, MIG): True})
    denied.put(ONE, MIG, Fact(Missing(Reason.DENIED)), Facet.NEXT_BOOT)
    assert [f.status for f in ask(one, denied)] == [Status.UNKNOWN]


@pytest.mark.parametrize(
    ("id", "needs", "words"),
    [
        ("gpu.x", ("gpu.nmae",), "undeclared"),
        ("hbm.ecc_mode_wrong", (NAME,), "no docstring"),
        ("twice", (NAME,), "twice"),
    ],
)
def test_a_wrong_declaration_does_not_import(id: str, needs: tuple[str, ...], words: str) -> None:
    """An undeclared fact, a missing docstring or a doubled id stop the program at once."""
    from hwcheck.checks import RELATIONS  # noqa: PLC0415 - read at the time of the test

    def body(_: Given) -> None:
        return None

    with pytest.raises(ValueError, match=words):
        relation(next(iter(RELATIONS)) if id == "twice" else id, needs=needs)(body)
    assert id not in RELATIONS
