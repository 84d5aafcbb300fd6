"""Packages kept at their version."""

from __future__ import annotations

from typing import Any

import pytest

from hwcheck.writers import package_hold
from tests.writers.conftest import Node, status

MARK = """
case "$1" in
showhold) cat $ROOT/holds; exit 0;;
hold) echo $2 >> $ROOT/holds;;
unhold) grep -vx $2 $ROOT/holds > $ROOT/holds.new; mv $ROOT/holds.new $ROOT/holds;;
esac
"""
QUERY = 'for name; do :; done; [ "$name" = nothing ] && { echo "no packages found" >&2; exit 1; }\n'


def step(key: str, value: str, **more: Any) -> dict[str, Any]:
    """Return a step."""
    return {"id": "test.it", "mechanism": "package_hold", "key": key, "value": value, **more}


@pytest.fixture
def debian(node: Node) -> Node:
    """Return a node with dpkg."""
    node.put("/var/lib/dpkg/status", "")
    node.put("holds", "other\n")
    node.program("apt-mark", MARK)
    node.program("dpkg-query", QUERY + "printf installed")
    return node


@pytest.fixture
def rhel(node: Node) -> Node:
    """Return a node with dnf and its plugin."""
    (node.root / "var/lib/rpm").mkdir(parents=True)
    node.put("/etc/dnf/plugins/versionlock.conf", "[main]\n")
    node.put(package_hold.LIST, "# Added lock on monday\n\nother-0:1-1.*\n")
    node.program("rpm", QUERY + "echo $name-0:570-1.*")
    return node


def test_dpkg_holds_and_frees(debian: Node) -> None:
    """Holds of others stay."""
    debian.round_trip(step("nvidia-driver", "held"), step("libnvidia-x", "held"), count=2)
    assert debian.text("holds") == "other\nlibnvidia-x\nnvidia-driver\n" or "nvidia-driver" in (
        debian.text("holds") or ""
    )
    assert status(debian.apply(step("nvidia-driver", "free"), run="r7")) == [("changed", "")]
    assert "nvidia-driver" not in (debian.text("holds") or "")


def test_dnf_locks_the_installed_version(rhel: Node) -> None:
    """The lines of others, and their empty lines, stay as they are."""
    rhel.round_trip(step("nvidia-driver", "held"))
    assert rhel.text(package_hold.LIST) == (
        "# Added lock on monday\n\nother-0:1-1.*\n# hwcheck: nvidia-driver, test.it\nnvidia-driver-0:570-1.*\n"
    )
    rhel.program("rpm", QUERY + "echo $name-0:580-1.*")
    assert status(rhel.apply(step("nvidia-driver", "held"), run="r6")) == [("changed", "")]
    assert "570" not in (rhel.text(package_hold.LIST) or "")
    assert status(rhel.apply(step("nvidia-driver", "free"), run="r7")) == [("changed", "")]
    assert rhel.text(package_hold.LIST) == "# Added lock on monday\n\nother-0:1-1.*\n"


def test_what_cannot_be_held_is_refused(debian: Node) -> None:
    """Not installed, no package's name, no such value."""
    assert "not installed" in status(debian.apply(step("nothing", "held")))[0][1]
    assert status(debian.apply(step("a b", "held"), run="r2"))[0][0] == "refused"
    assert status(debian.apply(step("x", "yes"), run="r3"))[0][0] == "refused"


def test_a_node_without_the_plugin_is_told_what_to_install(rhel: Node) -> None:
    """Nothing is written that dnf would not read."""
    (rhel.root / "etc/dnf/plugins/versionlock.conf").unlink()
    assert "python3-dnf-plugin-versionlock" in status(rhel.apply(step("nvidia-driver", "held")))[0][1]


def test_a_selection_that_does_not_take_fails(debian: Node) -> None:
    """apt-mark says so, or it reads otherwise afterwards."""
    debian.program("apt-mark", MARK.replace("hold) echo", "hold) exit 0; echo"))
    done = debian.apply(step("nvidia-driver", "held"))
    assert not done["ok"]
    assert "reads 'free'" in status(done)[0][1]


def test_images_are_refused(image: Node) -> None:
    """Nothing can be asked there."""
    image.put("/var/lib/dpkg/status", "")
    assert status(image.apply(step("nvidia-driver", "held")))[0][0] == "refused"
