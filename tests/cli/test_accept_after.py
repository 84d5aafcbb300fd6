"""After a swap: figures of the last acceptance are carried over where they still count, and only there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hwcheck.cli.accept_after import CARRIED, After
from hwcheck.describe import describe
from hwcheck.errors import StoreError, UsageError
from hwcheck.facts import Snapshot, Subject
from hwcheck.parse import take_snapshot
from hwcheck.store import Store
from hwcheck.transports.gathered import evidence_of
from tests.cli.answering import GPU, idle, options

OTHER = "0000:2a:00.0"


def facts() -> Snapshot:
    """Return what the node says now; nothing was measured anew."""
    return take_snapshot(evidence_of(idle("n1")))


def accepted(store: Store, name: str = "20261201-160500-aa", **about: Any) -> None:
    """Keep an acceptance of the node, with one figure of two GPUs and one of the host."""
    measured = [(f"hwcheck.hbm.copy@{GPU}", 4000.0, "GB/s"), (f"hwcheck.hbm.copy@{OTHER}", 4100.0, "GB/s"),
                ("hwcheck.os.jitter@numa0", 12.0, "us"), ("hwcheck.odd@numa0", 1.0, "furlong")]  # fmt: skip
    node = {"name": "n1", "platform": "hgx-h200", "confidence": "name", "verdict": "pass", "simulated": False,
            "coverage": {}, "about": {**describe(facts(), "hgx-h200"), **about}}  # fmt: skip
    store.keep({
        "schema": "hwcheck.run/1", "tool": "hwcheck", "profile": {"name": "auto", "hash": "0" * 16}, "kind": "accept",
        "started": "2026-12-01T16:05:00+00:00", "verdict": "pass", "run": name, "nodes": [node], "findings": [],
        "incidents": [], "measurements": [
            {"node": "n1", "name": subject.partition("@")[0], "subject": subject, "value": value, "unit": unit,
             "conditions": {"samples": 7}}
            for subject, value, unit in measured
        ],
    })  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return an empty store."""
    return Store.open(str(tmp_path / "store.sqlite"))


def test_what_the_part_takes_no_part_in_is_carried_over(store: Store) -> None:
    """With its conditions, and the name of the run that measured it; what is of no known unit is not."""
    accepted(store)
    snapshot = facts()
    assert After(options(after="gpu0"), store).carry(snapshot) == ""
    carried = {subject.id for subject in snapshot.subjects("measurement")}
    assert carried == {f"hwcheck.hbm.copy@{OTHER}", "hwcheck.os.jitter@numa0"}
    conditions = snapshot.value("result.conditions", Subject("measurement", f"hwcheck.hbm.copy@{OTHER}"))
    assert conditions == {CARRIED: "20261201-160500-aa", "samples": 7}


@pytest.mark.parametrize(("part", "about", "words"), [
    ("gpu9", {}, "there is no gpu9 here"), ("mlx5_9", {}, "there is no mlx5_9 here"),
    ("gpu0", {"gpus": []}, "changed since run 20261201-160500-aa as well"),
    ("gpu0", {"cohort": "hgx-h200, driver 535"}, "its cohort"),
])  # fmt: skip
def test_what_does_not_count_any_more_is_said_and_not_carried(
    part: str, about: dict[str, Any], words: str, store: Store
) -> None:
    """Before anything is changed by the description of the node, and once more after the measuring."""
    accepted(store, **about)
    after, snapshot = After(options(after=part), store), facts()
    assert words in after.why_not("n1", describe(snapshot, "hgx-h200"))
    assert words in after.carry(snapshot)
    assert list(snapshot.subjects("measurement")) == []


def test_a_node_without_an_earlier_acceptance_is_told(store: Store) -> None:
    """One of another node, or a check, does not count."""
    accepted(store)
    assert "no earlier acceptance" in After(options(after="gpu0"), store).why_not("n2", {})


def test_a_store_that_cannot_be_asked_is_a_reason(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of this node, and never an end of the acceptance of all."""

    def fail(*_: Any, **__: Any) -> Any:
        raise StoreError("the store cannot be reached")

    monkeypatch.setattr(Store, "runs", fail)
    assert After(options(after="gpu0"), store).carry(facts()) == "the store cannot be reached"


def test_what_is_no_part_is_refused_at_once(store: Store) -> None:
    """And so is a swap where nothing is kept."""
    with pytest.raises(UsageError, match="name a part"):
        After(options(after="18:00.0"), store)
    with pytest.raises(UsageError, match="no store"):
        After(options(after="gpu0"), None)
