"""A node, family by family: a test for each, red where a check fails or could not be told."""

from __future__ import annotations

import pytest

from hwcheck.findings import NodeVerdict, Status
from hwcheck.profiles import ProfileSet
from hwcheck.suite.views import FindingView

FAMILIES = sorted(ProfileSet().families)


@pytest.mark.parametrize("family", FAMILIES)
def test_family(family: str, verdict: NodeVerdict) -> None:
    """Nothing in this family fails, and nothing that was asked is unknown."""
    found = tuple(finding for finding in verdict.findings if finding.family == family)
    view = FindingView(family, found)
    if view.status is Status.SKIP:
        pytest.skip(found[0].message if found else "nothing of this family was judged")
    if not view:
        pytest.fail(repr(view), pytrace=False)
