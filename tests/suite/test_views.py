"""What a test of the site sees of findings and results."""

from __future__ import annotations

import pytest

from hwcheck.facts import NODE, Subject
from hwcheck.findings import Finding, Measurement, Status
from hwcheck.suite.views import FindingView, baseline_of

WAIVED = {"owner": "ops", "reason": "known", "expires": "2030-01-01"}


@pytest.mark.parametrize(("statuses", "right", "worst"), [
    ("pass pass", True, "pass"), ("pass warn", True, "warn"), ("pass skip", True, "pass"),
    ("pass unknown", False, "unknown"), ("unknown fail pass", False, "fail"), ("", True, "skip"),
])  # fmt: skip
def test_a_view_is_true_where_nothing_fails_and_nothing_is_unknown(statuses: str, right: bool, worst: str) -> None:  # noqa: FBT001
    """The worst of all subjects counts."""
    found = tuple(Finding("nvlink.active", NODE, Status(status), "it is so") for status in statuses.split())
    view = FindingView("nvlink.active", found)
    assert bool(view) is right
    assert view.status == worst


def test_what_is_waived_does_not_count() -> None:
    """A site has accepted it."""
    assert FindingView("hbm.ecc", (Finding("hbm.ecc", NODE, Status.FAIL, "bad", waived=WAIVED),))


def test_a_view_says_what_is_wrong() -> None:
    """For the assertion that failed."""
    bad = Finding("pcie.width", Subject("gpu", "0000:18:00.0"), Status.FAIL, "x8 instead of x16")
    good = Finding("pcie.width", Subject("gpu", "0000:2a:00.0"), Status.PASS, "x16")
    assert repr(FindingView("pcie.width", (bad, good))) == "<pcie.width fail: 0000:18:00.0: x8 instead of x16>"


def test_results_are_seen_by_the_name_of_their_test() -> None:
    """Ours without the name of the tool; what was not measured is None and no zero."""
    taken = [
        Measurement("hwcheck.hbm.copy", f"hwcheck.hbm.copy@{gpu}", value, "GB/s", {})
        for gpu, value in (("0000:18:00.0", 3900.0), ("0000:2a:00.0", 3100.0))
    ]
    low = Finding("baseline.hbm_copy", Subject("measurement", taken[1].subject), Status.FAIL, "too low")
    view = baseline_of("hbm.copy", taken, [low])
    assert view is not None
    assert (view.min, view.max, view.unit, bool(view)) == (3100.0, 3900.0, "GB/s", False)
    assert view.values == {"0000:18:00.0": 3900.0, "0000:2a:00.0": 3100.0}
    assert baseline_of("h2d", taken, [low]) is None
