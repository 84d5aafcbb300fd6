"""Holds on packages of the driver set: asked for by a site, never demanded."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hwcheck.engine import Judge
from hwcheck.facts import NODE, Fact, Snapshot
from hwcheck.findings import Finding
from hwcheck.profiles import Entry, ProfileSet

BASE = ProfileSet().profile("base")
PACKAGES = ({"name": "nvidia-driver-580-server", "version": "580"}, {"name": "nvidia-imex-580", "version": "580"})


def judge(held: tuple[str, ...], wanted: Any) -> Finding:
    """Judge these holds, where the site wants them or says nothing."""
    bounds = {**BASE.bounds, "driver.hold": Entry("driver.hold", {"value": wanted}, {})}
    snapshot = Snapshot()
    snapshot.put(NODE, "driver.packages", Fact(PACKAGES))
    snapshot.put(NODE, "driver.packages_held", Fact(held))
    findings = Judge(replace(BASE, bounds=bounds), ["driver"]).findings(snapshot)
    return next(finding for finding in findings if finding.check == "driver.held")


@pytest.mark.parametrize(
    ("held", "wanted", "status"),
    [
        (("nvidia-driver-580-server", "nvidia-imex-580"), True, "pass"),
        (("nvidia-driver-580-server",), True, "warn"),
        ((), "unset", "skip"),
        ((), False, "skip"),
    ],
)
def test_holds_are_judged_where_the_site_wants_them(held: tuple[str, ...], wanted: Any, status: str) -> None:
    """Without its wish they are only told."""
    assert judge(held, wanted).status == status


def test_what_is_not_held_is_what_is_written() -> None:
    """One hold a package, and none for those that have it."""
    remedy = judge(("nvidia-driver-580-server",), wanted=True).remedy
    assert remedy is not None
    assert [(write.mechanism, write.key, write.value) for write in remedy.writes] == [
        ("package_hold", "nvidia-imex-580", "held")
    ]
