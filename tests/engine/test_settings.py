"""A tunable has five readings; which of them decides, and what is said when they differ."""

from __future__ import annotations

from typing import Any

import pytest

from hwcheck.engine import Judge
from hwcheck.facts import Facet, Fact, Missing, Reason, Snapshot, gpu_at
from hwcheck.findings import Finding, Status
from hwcheck.profiles.layers import Entry, Profile

GPU = gpu_at("18:00.0")
MIG, NAME, TEMPERATURE = "gpu.mig.mode", "gpu.name", "gpu.temperature"
ENTRY = {
    "fact": MIG, "title": "MIG mode", "expect": {"equals": False}, "setting": True, "why": "whole GPUs", "source": "us",
    "remedy": {"kind": "act", "text": "nvidia-smi -mig 0"},
}  # fmt: skip
DENIED = Missing(Reason.DENIED)


def judge(facts: dict[Any, Any], bounds: dict[str, Any] | None = None, **changes: Any) -> Finding:
    """Judge one entry of a profile over the facts, keyed by facet or name."""
    entry = {key: value for key, value in {**ENTRY, **changes}.items() if value is not None}
    figures = {id: Entry(id, {"value": value}, {}) for id, value in (bounds or {}).items()}
    judge = Judge(Profile("test", "", ("test",), {"gpu.mig": Entry("gpu.mig", entry, {})}, figures, ""), ["gpu"])
    judge.checks = [check for check in judge.checks if check.id == "gpu.mig"]
    snapshot = Snapshot()
    for key, value in facts.items():
        name, facet = (key, Facet.RUNNING) if not isinstance(key, Facet) else (MIG, key)
        snapshot.put(GPU, name, Fact(value), facet)
    (finding,) = (finding for finding in judge.findings(snapshot) if finding.check == "gpu.mig")
    return finding


R, E, N, P, S = Facet.RUNNING, Facet.EFFECTIVE, Facet.NEXT_BOOT, Facet.PERMITTED, Facet.SUPPORTED


@pytest.mark.parametrize(
    ("facts", "status", "words"),
    [
        ({R: False}, Status.PASS, "MIG mode is no"),
        ({R: True}, Status.FAIL, "MIG mode is yes, expected no"),
        ({R: False, N: False}, Status.PASS, "MIG mode is no"),
        ({R: False, N: True}, Status.WARN, "right now but will be yes after a reboot"),
        ({R: True, N: False}, Status.FAIL, "expected no"),
        ({R: False, E: False}, Status.PASS, "MIG mode is no"),
        ({R: False, E: True}, Status.FAIL, "set to no but has no effect: effective is yes"),
        ({R: True, E: False}, Status.PASS, "MIG mode is no"),
        ({R: True, E: True}, Status.FAIL, "MIG mode is yes"),
        ({R: False, E: True, N: True}, Status.FAIL, "has no effect"),
        ({R: False, E: False, N: True}, Status.WARN, "after a reboot"),
        ({R: False, P: False}, Status.PASS, "MIG mode is no"),
        ({R: False, S: False}, Status.PASS, "MIG mode is no"),
        ({R: False, E: DENIED}, Status.UNKNOWN, "could not be told"),
        ({R: False, N: DENIED}, Status.UNKNOWN, "could not be told"),
        ({R: True, E: DENIED}, Status.FAIL, "expected no"),
        ({R: True, N: DENIED}, Status.FAIL, "expected no"),
        ({R: False, N: Missing(Reason.ABSENT)}, Status.PASS, "MIG mode is no"),
        ({R: DENIED}, Status.UNKNOWN, "could not be told"),
        ({R: Missing(Reason.ABSENT)}, Status.SKIP, "absent"),
    ],
)
def test_the_effective_value_decides_and_the_next_boot_warns(facts: dict[Any, Any], status: Status, words: str) -> None:
    """
    Effective (else running) wrong fails, next boot wrong warns, running right without effect is ineffective.

    A value that is right passes even where the node would refuse to change it.
    """
    finding = judge(facts)
    assert finding.status is status
    assert words in finding.message


def test_severity_is_that_of_the_entry() -> None:
    """A setting whose entry only warns does not fail, whichever reading is wrong."""
    assert judge({R: True}, severity="warn").status is Status.WARN
    assert judge({R: False, E: True}, severity="warn").status is Status.WARN


def test_a_plain_check_looks_at_the_running_value_only() -> None:
    """Where the entry is no setting, nobody writes it, and the next boot is not its business."""
    assert judge({R: False, N: True}, setting=None).status is Status.PASS


WHEN = [{"fact": NAME, "equals": "NVIDIA H200"}]


@pytest.mark.parametrize(
    ("facts", "changes", "status"),
    [
        ({R: True, NAME: "NVIDIA H200"}, {"when": WHEN}, Status.FAIL),
        ({R: True, NAME: "NVIDIA B200"}, {"when": WHEN}, Status.SKIP),
        ({R: True}, {"when": WHEN}, Status.SKIP),
        ({R: False, NAME: DENIED}, {"when": WHEN}, Status.UNKNOWN),
        ({R: True, NAME: "NVIDIA H200"}, {"unless": WHEN}, Status.SKIP),
        ({R: True, NAME: "NVIDIA B200"}, {"unless": WHEN}, Status.FAIL),
        ({R: True}, {"unless": WHEN}, Status.FAIL),
        ({R: False, NAME: DENIED}, {"unless": WHEN}, Status.UNKNOWN),
        ({R: True, NAME: "NVIDIA H200", TEMPERATURE: 80},
         {"when": [*WHEN, {"fact": TEMPERATURE, "below": 60}]}, Status.SKIP),
    ],
)  # fmt: skip
def test_applicability_comes_before_the_verdict(facts: dict[Any, Any], changes: dict[str, Any], status: Status) -> None:
    """All of ``when`` must hold and none of ``unless``; a condition that cannot be told never helps to a pass."""
    for setting in (True, None):
        assert judge(facts, setting=setting, **changes).status is status


def test_a_condition_may_ask_a_figure_of_the_profile() -> None:
    """What a platform is decides whether a wish makes sense on it."""
    condition: dict[str, Any] = {"when": [{"bound": "nvlink.links", "at_least": 1}]}
    assert judge({R: True}, {"nvlink.links": 18}, **condition).status is Status.FAIL
    assert judge({R: True}, {"nvlink.links": 0}, **condition).status is Status.SKIP
    assert judge({R: True}, **condition).status is Status.SKIP


@pytest.mark.parametrize(
    ("value", "changes", "status"),
    [
        (31, {"expect": {"at_most": 90}, "prefer": {"at_most": 60}}, Status.PASS),
        (75, {"expect": {"at_most": 90}, "prefer": {"at_most": 60}}, Status.WARN),
        (95, {"expect": {"at_most": 90}, "prefer": {"at_most": 60}}, Status.FAIL),
        (75, {"expect": None, "prefer": {"at_most": 60}}, Status.WARN),
        (75, {"expect": None}, Status.SKIP),
    ],
)
def test_a_wish_warns_and_a_demand_fails(value: int, changes: dict[str, Any], status: Status) -> None:
    """``prefer`` is the narrower of the two; without a figure nothing is judged, and that is said."""
    finding = judge({TEMPERATURE: value}, fact=TEMPERATURE, title="Temperature", setting=None, **changes)
    assert finding.status is status
    assert f"{value} C" in finding.message


def test_an_image_is_judged_by_its_next_boot() -> None:
    """Where nothing runs, the value for the next boot is judged alone, and the answer says so."""
    assert judge({N: True}).status is Status.FAIL
    right = judge({N: False})
    assert right.status is Status.PASS
    assert "next boot" in right.message
