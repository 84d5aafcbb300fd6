"""Rules of udev: a file of ours that several mechanisms share."""

from __future__ import annotations

from typing import Any

import pytest

from hwcheck.writers import udev
from hwcheck.writers.place import WriteError
from tests.writers.conftest import Node, status

RULE = 'ACTION=="add", SUBSYSTEM=="pci", ATTR{vendor}=="0x10de", ATTR{link/l1_aspm}="0"'


def step(key: str, value: str, **more: Any) -> dict[str, Any]:
    """Return a step."""
    return {"id": f"test.{key}", "mechanism": "udev_rule", "key": key, "value": value, **more}


def test_a_rule_is_kept_reloaded_and_undone(node: Node) -> None:
    """Two keys lie in one file, each after the check that asked for it; udev reads it once."""
    node.program("udevadm")
    calls = node.round_trip(step("one", RULE), step("two", RULE.replace("10de", "15b3")), count=2)
    assert calls == ["udevadm control --reload"]
    text = node.text(udev.FILE)
    assert text is not None
    assert f"# hwcheck: test.one; key udev_rule one\n{RULE}\n" in text


def test_a_rule_is_retired_and_others_stay(node: Node) -> None:
    """What is absent takes its own line away; what was written by hand and by others stays."""
    node.program("udevadm")
    node.put(udev.FILE, '# by hand\nKERNEL=="x", MODE="0600"\n')
    before = node.text(udev.FILE)
    node.apply(step("one", RULE), step("two", RULE))
    held = node.stage("held")["held"]
    assert [(one["mechanism"], one["key"], one["check"]) for one in held] == [
        ("udev_rule", "one", "test.one"), ("udev_rule", "two", "test.two"),
    ]  # fmt: skip
    done = node.apply(step("one", "absent"), step("nobody", "absent"), run="r2")
    assert status(done) == [("changed", ""), ("right", "")]
    assert "test.one" not in (node.text(udev.FILE) or "")
    assert "test.two" in (node.text(udev.FILE) or "")
    assert "by hand" in (node.text(udev.FILE) or "")
    node.stage("undo", run="r2")
    node.stage("undo", run="r1")
    assert node.text(udev.FILE) == before


def test_an_image_gets_the_file_only(image: Node) -> None:
    """Nothing is run for an image."""
    done = image.apply(step("one", RULE))
    assert status(done) == [("changed", "")]
    assert RULE in (image.text(udev.FILE) or "")


@pytest.mark.parametrize("rule", ["", "reboot", 'KERNEL=="x"', 'MODE="0600"', 'KERNEL=="x" MODE="0600"', "# KERNEL"])
def test_what_is_no_rule_is_refused(node: Node, rule: str) -> None:
    """A line that udev would not take is never written."""
    assert status(node.apply(step("one", rule)))[0][0] == "refused"
    assert node.text(udev.FILE) is None


def test_values_are_quoted_so_that_nothing_is_filled_in() -> None:
    """Dollar and percent signs stand for themselves; a quote cannot be had."""
    assert udev.quoted("5%$x") == '"5%%$$x"'
    with pytest.raises(WriteError):
        udev.quoted('a"b')
