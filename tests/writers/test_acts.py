"""Acts: a reboot that a run has begun, and what calls it off."""

from __future__ import annotations

import time
from typing import Any

import pytest

from hwcheck.writers import acts
from hwcheck.writers import journal as journals
from tests.writers.conftest import Node

STEP = {"id": "test.it", "mechanism": "sysctl", "key": "vm.swappiness", "value": "1"}
REBOOT = {"do": "reboot", "target": "", "disturbs": "node"}


@pytest.fixture
def rebooting(node: Node) -> Node:
    """Return a node whose run has begun to reboot it."""
    node.put("/proc/sys/vm/swappiness", "60\n")
    node.program("systemctl", "echo $@ >> $ROOT/rebooted\n")
    told = node.apply(STEP, acts=[REBOOT], idle={"skip": True})
    assert told["journal"]["acts"][0]["state"] == "begun"
    return node


def test_taking_a_run_back_calls_off_the_reboot_that_it_has_begun(rebooting: Node) -> None:
    """It would come down on whoever works there by then."""
    told = rebooting.stage("undo", idle={"skip": True})
    assert told["ok"], told["why"]
    assert told["journal"]["acts"][0]["state"] == "called off"
    time.sleep(2.0)
    assert rebooting.text("/rebooted") is None
    assert rebooting.text("/proc/sys/vm/swappiness") == "60\n"


def test_a_node_that_goes_down_already_is_not_written_to(rebooting: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reboot can no longer be held up; whoever asks is to ask again."""
    acts.call_off_reboot(rebooting.place, dict(_journal(rebooting)))
    monkeypatch.setattr(acts, "_waiting_reboots", lambda _boot: [])
    told = rebooting.stage("undo", idle={"skip": True})
    assert not told["ok"]
    assert "about to reboot" in told["why"]
    assert rebooting.text("/proc/sys/vm/swappiness") == "1\n"


def test_a_reboot_that_never_came_does_not_hold_a_node_for_ever(
    rebooting: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After ten minutes it is taken back like any other run."""
    acts.call_off_reboot(rebooting.place, dict(_journal(rebooting)))
    monkeypatch.setattr(journals, "age", lambda _at: 601.0)
    assert rebooting.stage("undo", idle={"skip": True})["ok"]


def _journal(node: Node) -> dict[str, Any]:
    found = journals.load(node.place, "r1")
    assert found is not None
    return found
