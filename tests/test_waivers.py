"""Findings that a site accepts: who may be waived, until when, and what a wrong file is told."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from hwcheck.errors import ProfileError
from hwcheck.facts import NODE, Subject, gpu_at
from hwcheck.findings import Finding, Status, verdict_of
from hwcheck.waivers import Waiver, apply_waivers, load_waivers

TODAY = dt.date(2026, 3, 3)
GPU = gpu_at("18:00.0")
WHOLE = "- {check: hbm.total, owner: ops, reason: RMA 4711 is under way, expires: 2026-06-30}\n"


def finding(check: str = "hbm.total", status: Status = Status.FAIL, subject: Subject = GPU) -> Finding:
    """Make a finding."""
    return Finding(check, subject, status, "wrong")


def waiver(**more: Any) -> Waiver:
    """Make a waiver of hbm.total."""
    parts: dict[str, Any] = {"check": "hbm.total", "owner": "ops", "reason": "RMA", "expires": TODAY}
    return Waiver(**parts | more)


@pytest.mark.parametrize(
    ("more", "node", "covered"),
    [
        ({}, "n1", True),
        ({"check": "hbm.*"}, "n1", True),
        ({"check": "*"}, "n1", True),
        ({"check": "hbm"}, "n1", False),
        ({"check": "HBM.TOTAL"}, "n1", False),
        ({"check": "hbm.total2"}, "n1", False),
        ({"subject": "0000:18:00.0"}, "n1", True),
        ({"subject": "0000:2a:00.0"}, "n1", False),
        ({"nodes": ("n1",)}, "n1", True),
        ({"nodes": ("n[2-9]", "gpu-*")}, "n1", False),
        ({"nodes": ("n[2-9]", "gpu-*")}, "gpu-7", True),
        ({"nodes": ("n1",)}, "", False),
    ],
)
def test_a_waiver_covers_what_it_names(more: dict[str, Any], node: str, covered: bool) -> None:  # noqa: FBT001
    """Check, subject and node are patterns; each that is given must match."""
    assert waiver(**more).covers(finding(), node) is covered


@pytest.mark.parametrize(
    ("status", "waived"),
    [
        (Status.FAIL, True),
        (Status.WARN, True),
        (Status.UNKNOWN, True),
        (Status.PASS, False),
        (Status.SKIP, False),
    ],
)
def test_only_what_is_wrong_or_unknown_is_waived(status: Status, waived: bool) -> None:  # noqa: FBT001
    """A pass needs nobody's consent."""
    findings = [finding(status=status)]
    apply_waivers(findings, "n1", [waiver()])
    assert (findings[0].waived is not None) is waived


def test_a_waived_finding_keeps_its_status_and_leaves_the_verdict() -> None:
    """It is shown as it is, with who accepts it, why and until when; the rest still counts."""
    findings = [finding(), finding("pcie.gpu_width")]
    apply_waivers(findings, "n1", [waiver()])
    assert findings[0].waived == {"owner": "ops", "reason": "RMA", "expires": "2026-03-03"}
    assert findings[0].status is Status.FAIL
    assert verdict_of(findings) == "fail"
    assert verdict_of(findings[:1]) == "pass"


def test_the_first_waiver_that_covers_is_named() -> None:
    """Two that overlap are no error."""
    findings = [finding(subject=NODE)]
    apply_waivers(findings, "n1", [waiver(owner="first", check="hbm.*"), waiver(owner="second")])
    assert findings[0].waived is not None
    assert findings[0].waived["owner"] == "first"


@pytest.mark.parametrize(
    ("expires", "holds"), [("2026-03-02", 0), ("2026-03-03", 1), ("2026-03-04", 1), ('"2026-03-04"', 1)]
)
def test_a_waiver_holds_to_the_end_of_its_last_day(expires: str, holds: int) -> None:
    """After that it counts for nothing; a quoted date is a date too."""
    assert len(load_waivers(WHOLE.replace("2026-06-30", expires), "w.yaml", TODAY)) == holds


def test_a_whole_entry_is_read() -> None:
    """All keys of an entry."""
    text = WHOLE.replace("}", ", subject: '0000:*', nodes: [gpu-001, gpu-1*]}")
    assert load_waivers(text, "w.yaml", TODAY) == [
        Waiver("hbm.total", "ops", "RMA 4711 is under way", dt.date(2026, 6, 30), "0000:*", ("gpu-001", "gpu-1*"))
    ]
    assert load_waivers("[]\n", "w.yaml", TODAY) == []


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("- hbm.total", "a waiver is a map"),
        ("- {owner: ops, reason: x, expires: 2026-06-30}", "needs check"),
        ("- {check: a.b, reason: x, expires: 2026-06-30}", "needs owner"),
        ("- {check: a.b, owner: ops, expires: 2026-06-30}", "needs reason"),
        ("- {check: a.b, owner: ops, reason: x}", "needs expires"),
        ("- {check: a.b, owner: ops, reason: '', expires: 2026-06-30}", "needs reason"),
        ("- {check: a.b, owner: ops, reason: x, expires: never}", "no date"),
        ("- {check: a.b, owner: ops, reason: x, expires: 2026}", "no date"),
        ("- {check: a.b, owner: ops, reason: x, expires: 2026-06-30, nodes: n1}", "nodes is a list"),
        ("- {check: a.b, owner: ops, reason: x, expires: 2026-06-30, node: n1}", "unknown key in a waiver: node"),
    ],
)
def test_a_wrong_entry_is_refused_with_its_line(entry: str, words: str) -> None:
    """A waiver that does not load must not silently waive nothing, or everything."""
    with pytest.raises(ProfileError, match=words) as caught:
        load_waivers(f"{WHOLE}\n{entry}\n", "w.yaml", TODAY)
    assert caught.value.line == 3
    assert caught.value.path == "w.yaml"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "list"),
        ("check: a.b\n", "list"),
        ("- [\n", "YAML"),
        (WHOLE.replace("06-30", "02-31"), "out of range"),
        ("- &a {}\n- *a\n", "alias"),
    ],
)
def test_what_is_no_list_is_refused(text: str, words: str) -> None:
    """Garbage does not load."""
    with pytest.raises(ProfileError, match=words):
        load_waivers(text, "w.yaml", TODAY)


def test_a_date_with_a_time_is_refused() -> None:
    """YAML makes another type of ``2026-06-30 12:00``; it must not end in a traceback."""
    with pytest.raises(ProfileError, match="no date"):
        load_waivers(WHOLE.replace("2026-06-30", "2026-06-30 12:00:00"), "w.yaml", TODAY)
