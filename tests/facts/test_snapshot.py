"""Merging what several outputs say of one value."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from hwcheck.facts import NODE, Facet, Fact, Missing, Origin, Reason, Snapshot, SourceGap, Subject, gpu_at
from hwcheck.facts.registry import NAMES, declare, show

GPU = gpu_at("18:00.0")
NAME = "gpu.temperature"
ABSENT, DENIED, FAILED, TIMEOUT, GARBLED = (
    Missing(reason) for reason in (Reason.ABSENT, Reason.DENIED, Reason.FAILED, Reason.TIMEOUT, Reason.UNPARSABLE)
)


def merged(*values: Any) -> Any:
    """Put readings in order; return what holds."""
    snapshot = Snapshot()
    for line, value in enumerate(values, 1):
        snapshot.put(GPU, NAME, Fact(value, Origin("nvidia-smi.q", "posted", line)))
    return snapshot.get(GPU, NAME).value


@pytest.mark.parametrize(
    ("readings", "holds"),
    [
        ((31, 60), 60),
        ((31, ABSENT), 31),
        ((ABSENT, 31), 31),
        ((31, DENIED), 31),
        ((DENIED, 31), 31),
        ((31, TIMEOUT), 31),
        ((31, FAILED), FAILED),
        ((FAILED, 31), FAILED),
        ((31, FAILED, 33), FAILED),
        ((ABSENT, DENIED), DENIED),
        ((DENIED, ABSENT), DENIED),
        ((GARBLED, ABSENT), GARBLED),
        ((ABSENT, FAILED), FAILED),
    ],
)
def test_the_later_value_holds_and_an_error_of_the_device_outlasts_all(readings: tuple[Any, ...], holds: Any) -> None:
    """A value wins over a gap; a device that answered with an error keeps it, whatever was read before or after."""
    assert merged(*readings) == holds


def test_a_gap_that_was_asked_for_never_becomes_one_that_was_not() -> None:
    """In no order of readings does "not told" turn into "there is none"."""
    for readings in permutations([ABSENT, DENIED, TIMEOUT]):
        assert merged(*readings).reason.asked


def test_an_error_of_one_gpu_is_not_the_others() -> None:
    """Subjects are apart."""
    snapshot = Snapshot()
    snapshot.put(GPU, NAME, Fact(FAILED))
    snapshot.put(gpu_at("3a:00.0"), NAME, Fact(31))
    assert snapshot.value(NAME, gpu_at("3a:00.0")) == 31
    assert snapshot.value(NAME, GPU) is None
    assert {subject.id for subject, _ in snapshot.with_fact(NAME)} == {"0000:18:00.0", "0000:3a:00.0"}


def test_facets_of_a_setting_are_apart() -> None:
    """What runs, what comes after a reboot and what is effective are three values."""
    snapshot = Snapshot()
    for facet, value in ((Facet.RUNNING, True), (Facet.NEXT_BOOT, False)):
        snapshot.put(GPU, "gpu.mig.mode", Fact(value), facet)
    assert snapshot.get(GPU, "gpu.mig.mode").value is True
    assert snapshot.get(GPU, "gpu.mig.mode", Facet.NEXT_BOOT).value is False
    assert not snapshot.get(GPU, "gpu.mig.mode", Facet.EFFECTIVE).present


@pytest.mark.parametrize(
    ("subject", "name", "value", "error"),
    [
        (GPU, "gpu.no_such_thing", 1, KeyError),
        (NODE, NAME, 31, ValueError),
        (GPU, NAME, "31", TypeError),
        (GPU, NAME, 31.0, TypeError),
        (GPU, NAME, True, TypeError),
        (GPU, "gpu.mig.mode", 1, TypeError),
        (GPU, NAME, None, TypeError),
    ],
)
def test_a_fact_of_a_wrong_name_subject_or_type_cannot_be_made(
    subject: Subject, name: str, value: Any, error: type[Exception]
) -> None:
    """Slips of a parser show in its first test, not in a verdict."""
    with pytest.raises(error):
        Snapshot().put(subject, name, Fact(value))


def test_a_failed_source_answers_for_the_names_it_would_have_given() -> None:
    """A name under its pattern is missing with its reason; any other was not collected."""
    snapshot = Snapshot(gaps=[SourceGap("x", ("gpu.ecc.*", NAME), DENIED, Origin("x"))])
    assert snapshot.get(GPU, NAME).value == DENIED
    assert snapshot.get(GPU, "gpu.ecc.mode").value == DENIED
    assert snapshot.get(GPU, "gpu.name").value.reason is Reason.NOT_COLLECTED


def test_a_missing_value_has_no_truth() -> None:
    """``if value`` must not take a gap for false or for true."""
    with pytest.raises(TypeError, match="no truth value"):
        bool(DENIED)


def test_subjects_are_in_the_order_a_person_expects() -> None:
    """Port 2 comes before port 10; a name of a million digits costs nothing."""
    snapshot = Snapshot()
    for name in ("mlx5_10/1", "mlx5_2/1", "mlx5_0/1", "9" * 1000 + "/1"):
        snapshot.put(Subject("port", name), "rdma.port.state", Fact("Active"))
    assert [subject.id for subject in snapshot.subjects("port")][:3] == ["mlx5_0/1", "mlx5_2/1", "mlx5_10/1"]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("gpu.temperature | int | C | again", "twice"),
        ("gpu.x | int | C", "incomplete"),
        ("gpu.x | number | C | x", "number"),
    ],
)
def test_a_wrong_declaration_is_refused(rows: str, words: str) -> None:
    """A name is declared once, whole, with a known type."""
    with pytest.raises((ValueError, KeyError), match=words):
        declare("gpu", rows)
    assert "gpu.x" not in NAMES


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        (NAME, 31, "31 C"),
        ("gpu.mig.mode", True, "yes"),
        ("gpu.power.limit", 700.0, "700 W"),
        ("gpu.name", "H200", "H200"),
    ],
)
def test_a_value_is_shown_with_its_unit(name: str, value: Any, text: str) -> None:
    """A number alone says nothing."""
    assert show(name, value) == text
