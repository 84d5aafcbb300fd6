"""Placement of services: what their unit would not start with is never written."""

from __future__ import annotations

from typing import Any

import pytest

from hwcheck.writers.unit_property import file_of
from tests.writers.conftest import Node, status

UNIT = "x.service"


def steps(**values: str) -> list[dict[str, Any]]:
    """Return a step for each property."""
    return [
        {"id": "t", "mechanism": "unit_property", "key": f"{UNIT} {name}", "value": value}
        for name, value in values.items()
    ]


@pytest.fixture
def node(node: Node) -> Node:
    """Return a node with two NUMA nodes and a service."""
    node.put(f"/usr/lib/systemd/system/{UNIT}", "[Service]\n")
    node.put("/sys/devices/system/node/online", "0-1\n")
    node.put("/sys/devices/system/cpu/possible", "0-127\n")
    node.program("systemctl")
    return node


@pytest.mark.parametrize("values", [
    {"NUMAPolicy": "bind", "NUMAMask": "0-1", "CPUAffinity": "numa"},
    {"NUMAPolicy": "interleave", "NUMAMask": "all"},
    {"NUMAPolicy": "preferred", "NUMAMask": "1"},
    {"NUMAPolicy": "local"},
    {"NUMAMask": "0"},
    {"CPUAffinity": "0-3 64-67,127"},
])  # fmt: skip
def test_what_goes_together_is_written_and_comes_back(node: Node, values: dict[str, str]) -> None:
    """As systemd spells it."""
    node.round_trip(*steps(**values), count=len(values))


@pytest.mark.parametrize(("values", "why"), [
    ({"NUMAPolicy": "bind"}, "NUMAPolicy=bind needs a NUMAMask"),
    ({"NUMAPolicy": "interleave"}, "needs a NUMAMask"),
    ({"NUMAPolicy": "preferred", "NUMAMask": "0-1"}, "one node alone can be preferred"),
    ({"NUMAMask": "all"}, "one node alone can be preferred"),
    ({"NUMAPolicy": "local", "NUMAMask": "0"}, "takes no NUMAMask"),
    ({"NUMAPolicy": "membind"}, "NUMAPolicy can be default, preferred"),
    ({"NUMAMask": "0-1; rm"}, "is a list of numbers, or all"),
    ({"NUMAMask": "0,2"}, "this node has 0-1 and no 2"),
    ({"CPUAffinity": "0-999"}, "this node has 0-127 and no 128"),
    ({"CPUAffinity": "all"}, "is a list of numbers, or numa"),
])  # fmt: skip
def test_what_the_unit_would_not_start_with_is_refused(node: Node, values: dict[str, str], why: str) -> None:
    """Before anything is written, with the reason."""
    done = node.apply(*steps(**values))
    assert why in "; ".join(text for _, text in status(done))
    assert "changed" not in [one for one, _ in status(done)]
    assert node.text(file_of(UNIT)) is None


def test_what_stands_in_a_drop_in_counts_for_the_pair(node: Node) -> None:
    """A policy goes with the mask of another file; one that does not go with it is refused."""
    node.put(f"/etc/systemd/system/{UNIT}.d/10-site.conf", "[Service]\nNUMAMask=0-1\n")
    assert status(node.apply(*steps(NUMAPolicy="bind"))) == [("changed", "")]
    assert "takes no NUMAMask (0-1)" in status(node.apply(*steps(NUMAPolicy="local"), run="r2"))[0][1]
