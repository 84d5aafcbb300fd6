"""Limits of logins."""

from __future__ import annotations

from typing import Any

import pytest

from hwcheck.writers import limits
from tests.writers.conftest import Node, status


def step(key: str, value: str, **more: Any) -> dict[str, Any]:
    """Return a step."""
    return {"id": "test.it", "mechanism": "limits", "key": key, "value": value, **more}


def test_soft_and_hard_are_kept_and_undone(node: Node) -> None:
    """One key is two lines; several keys lie in one file; other words for no limit mean the same."""
    node.round_trip(step("* memlock", "unlimited"), step("@hpc nofile", "1048576"), count=2)
    text = node.text(limits.FILE) or ""
    assert "# hwcheck: test.it; key * memlock\n* soft memlock unlimited\n* hard memlock unlimited\n" in text
    assert node.apply(step("* memlock", "infinity"), run="r7")["changed"] is False
    node.apply(step("* memlock", "absent"), run="r8")
    assert "memlock" not in (node.text(limits.FILE) or "")
    assert "nofile" in (node.text(limits.FILE) or "")


def test_the_last_line_counts(node: Node) -> None:
    """A file before ours is overridden, one after it is named."""
    node.put("/etc/security/limits.d/20-site.conf", "* - memlock 64\n")
    told = node.stage("check", step("* memlock", "unlimited"))["results"][0]
    assert (told["status"], told["before"]["next boot"]) == ("would change", "64")
    node.put("/etc/security/limits.d/99-site.conf", "* soft memlock 64 # ours\n* hard memlock 128\n")
    told = node.apply(step("* memlock", "unlimited"))["results"][0]
    assert told["status"] == "refused"
    assert "99-site.conf sets * memlock to 64/128" in told["why"]


def test_what_others_have_set_so_is_right(node: Node) -> None:
    """Nothing is written beside it."""
    node.put("/etc/security/limits.conf", "* - memlock unlimited\n")
    assert status(node.apply(step("* memlock", "unlimited"))) == [("right", "")]
    assert node.text(limits.FILE) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [("* nothing", "1"), ("memlock", "1"), ("* memlock", "much"), ("* memlock", "1 x"), ("# nice", "1")],
)
def test_what_is_no_limit_is_refused(node: Node, key: str, value: str) -> None:
    """Before anything is written."""
    assert status(node.apply(step(key, value)))[0][0] == "refused"


def test_images_get_the_file(image: Node) -> None:
    """It is all there is."""
    assert status(image.apply(step("* memlock", "unlimited")))[0][0] == "changed"
