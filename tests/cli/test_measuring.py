"""Nodes under load: who is measured, what is measured once more, and that an unmeasured node is no healthy one."""

from __future__ import annotations

from typing import Any

import pytest

from hwcheck.checks.coverage import MEASURED
from hwcheck.cli.judging import Bench
from hwcheck.cli.measuring import Measured, Measuring
from hwcheck.errors import UsageError
from hwcheck.findings import Status
from hwcheck.transports.outcome import Outcome
from tests.cli.answering import BUSY, Fleet, idle, loaded, node, options, silent

GOOD, BAD = 4000.0, 900.0


def measure(read: list[Outcome], **more: Any) -> list[Measured]:
    """Measure nodes that have been read."""
    arguments = options(**more)
    return Measuring(arguments, Bench(arguments), lambda _: {}).measure(read)


def said(one: Measured) -> list[str]:
    """Return what is said of a node's not being measured; each is unknown."""
    found = [finding for finding in one.verdict.findings if finding.check == MEASURED]
    assert all(finding.status is Status.UNKNOWN for finding in found)
    return [finding.message for finding in found]


def test_a_node_that_is_idle_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """By all tests, once, when its figures are well within their bounds."""
    fleet = Fleet(monkeypatch, [loaded("n1", GOOD, GOOD)])
    (one,) = measure([idle("n1")], tests=["load-hbm"])
    assert fleet.asked == [(["n1"], ("load-hbm",))]
    assert [item.value for item in one.verdict.measurements] == [GOOD, GOOD]
    assert (one.left_out, said(one)) == ("", [])


def test_a_node_on_which_somebody_works_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """And is unknown, which no certificate rests on; another node is measured all the same."""
    fleet = Fleet(monkeypatch, [loaded("n2", GOOD)])
    busy, other = measure([idle("n1", BUSY), idle("n2")], tests=["load-hbm"])
    assert fleet.asked[0][0] == ["n2"]
    assert said(busy) == ["it was not measured: it is not idle: train (77)"]
    assert busy.verdict.verdict != "pass"
    assert said(other) == []


def test_a_program_that_is_no_work_may_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """For this site it is a daemon."""
    fleet = Fleet(monkeypatch, [loaded("n1", GOOD)])
    (one,) = measure([idle("n1", BUSY)], tests=["load-hbm"], idle_ignore=["train"])
    assert len(fleet.asked) == 1
    assert one.left_out == ""


@pytest.mark.parametrize(("came", "words"), [
    (silent("n1"), "it did not answer under load: no route to host"),
    (loaded("n1", GOOD, boot="b2"), "it restarted"),
    (node("n1"), "no test gave a figure"),
    (loaded("n1", 0.0), "no test gave a figure"),
    (loaded("n1", float("nan")), "no test gave a figure"),
], ids=["vanished", "restarted", "nothing", "zero", "not a number"])  # fmt: skip
def test_a_node_that_gave_no_figure_is_unknown(came: Outcome, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else it said before: it must not be certified for want of a bad figure."""
    Fleet(monkeypatch, [came], [came])
    (one,) = measure([idle("n1")], tests=["load-hbm"])
    assert words in one.left_out
    assert words in said(one)[0]
    assert one.verdict.measurements == []


def test_a_node_that_vanishes_at_the_second_look_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first figure was bad, and nobody could look again."""
    fleet = Fleet(monkeypatch, [loaded("n1", BAD)], [silent("n1")])
    (one,) = measure([idle("n1")], tests=["load-hbm"])
    assert len(fleet.asked) == 2
    assert "did not answer under load" in said(one)[0]


def test_of_a_figure_that_was_had_twice_the_second_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the test of the bad one is asked again, and only of its node."""
    fleet = Fleet(monkeypatch, [loaded("n1", BAD), loaded("n2", GOOD)], [loaded("n1", GOOD)])
    one, _ = measure([idle("n1"), idle("n2")], nodes="n[1-2]")
    assert fleet.asked[1] == (["n1"], ("load-hbm",))
    assert [item.value for item in one.verdict.measurements] == [GOOD]


def test_a_node_that_was_not_reached_is_never_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """That it was not is said once, by the check of the reading."""
    fleet = Fleet(monkeypatch)
    (one,) = measure([silent("n1")])
    assert fleet.asked == []
    assert said(one) == []
    assert one.verdict.verdict == "unknown"


def test_facts_that_cannot_be_completed_are_of_their_node_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """An earlier run that does not fit one node holds up no other."""
    Fleet(monkeypatch, [loaded("n1", GOOD), loaded("n2", GOOD)])
    arguments = options(tests=["load-hbm"])
    complete = lambda snapshot: "another part changed" if snapshot.node == "n1" else ""  # noqa: E731 - a port
    one, other = Measuring(arguments, Bench(arguments), lambda _: {}, complete).measure([idle("n1"), idle("n2")])
    assert said(one) == ["it was not measured: another part changed"]
    assert said(other) == []


@pytest.mark.parametrize("name", ["hbm", "load-hbm,load-hmb", "kernel.log"])
def test_a_test_that_is_none_is_refused(name: str) -> None:
    """Before anything is read: a slip of the pen would measure nothing, and pass."""
    arguments = options(tests=[name])
    with pytest.raises(UsageError, match="measures nothing; there are load-cpu-memory"):
        Measuring(arguments, Bench(arguments), lambda _: {})
