"""Units of systemd: what runs and what starts at boot."""

from __future__ import annotations

from typing import Any

import pytest

from tests.writers.conftest import Node, status

SYSTEMCTL = """
for unit; do :; done
at=$ROOT/units/$unit
case "$1" in
show)
  [ -e $at ] || { echo LoadState=not-found; echo ActiveState=inactive; echo UnitFileState=; exit 0; }
  read active enabled < $at
  [ "$enabled" = masked ] && echo LoadState=masked || echo LoadState=loaded
  echo ActiveState=$active; echo UnitFileState=$enabled; exit 0;;
esac
[ -e $ROOT/fail ] && { echo "Failed to $1 $unit" >&2; exit 1; }
read active enabled < $at
case "$1" in
start) active=active;; stop) active=inactive;; enable) enabled=enabled;; disable) enabled=disabled;;
mask) enabled=masked;; unmask) enabled=disabled;;
esac
echo $active $enabled > $at
"""


def step(key: str, value: str, **more: Any) -> dict[str, Any]:
    """Return a step."""
    return {"id": "test.it", "mechanism": "unit", "key": key, "value": value, **more}


@pytest.fixture
def units(node: Node) -> Node:
    """Return a node with systemd."""
    node.program("systemctl", SYSTEMCTL)
    (node.root / "units").mkdir()
    return node


@pytest.mark.parametrize(
    ("before", "value", "after"),
    [
        ("inactive disabled", "running", "active enabled"),
        ("inactive static", "running", "active static"),
        ("failed enabled", "running", "active enabled"),
        ("inactive disabled", "enabled", "inactive enabled"),
        ("active enabled", "stopped", "inactive enabled"),
        ("active enabled", "disabled", "inactive disabled"),
        ("active enabled", "masked", "inactive masked"),
    ],
)
def test_a_unit_is_brought_to_a_state_and_back(units: Node, before: str, value: str, after: str) -> None:
    """Both states are set, read back and restored; a failed unit is stopped again."""
    file = units.put("/units/x.service", before + "\n")
    done = units.apply(step("x.service", value))
    assert status(done) == [("changed", "")]
    assert file.read_text(encoding="utf-8") == after + "\n"
    again = units.apply(step("x.service", value), run="r2")
    assert (again["changed"], status(again)) == (False, [("right", "")])
    assert units.stage("undo")["results"] == []
    assert file.read_text(encoding="utf-8") == before.replace("failed", "inactive") + "\n"


def test_what_somebody_else_did_since_stays(units: Node) -> None:
    """A unit that was masked after the run is left, and told."""
    file = units.put("/units/x.service", "inactive disabled\n")
    units.apply(step("x.service", "running"))
    file.write_text("inactive masked\n", encoding="utf-8")
    assert "somebody else" in units.stage("undo")["results"][0]["why"]


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("nothing.service", "running", "no unit nothing.service"),
        ("x.service", "running", "masked"),
        ("x.service", "on", "a unit can be"),
        ("x; reboot", "running", "is no unit"),
    ],
)
def test_what_cannot_be_is_refused(units: Node, key: str, value: str, why: str) -> None:
    """With the reason, and nothing done."""
    units.put("/units/x.service", "inactive masked\n")
    told = status(units.apply(step(key, value)))[0]
    assert told[0] == "refused"
    assert why in told[1]


def test_a_unit_that_is_not_there_is_as_good_as_disabled(units: Node) -> None:
    """Nothing is to be done to keep it from starting."""
    assert status(units.apply(step("nothing.service", "disabled"))) == [("right", "")]


def test_a_unit_that_does_not_start_fails(units: Node) -> None:
    """What systemctl said is told, and its state is as before."""
    file = units.put("/units/x.service", "inactive disabled\n")
    units.put("fail", "")
    done = units.apply(step("x.service", "running"))
    assert not done["ok"]
    assert "Failed to enable" in status(done)[0][1]
    assert file.read_text(encoding="utf-8") == "inactive disabled\n"


def test_an_image_is_read_only_here(image: Node) -> None:
    """Links that enable a unit are read; nothing is run to make them."""
    assert status(image.apply(step("x.service", "enabled")))[0][0] == "refused"
    wants = image.root / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(parents=True)
    (wants / "x.service").symlink_to("/lib/systemd/system/x.service")
    assert status(image.apply(step("x.service", "running"))) == [("right", "")]
