"""The fast look: which faults change what it reads, and that a healthy node reads the same twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hwcheck.gate.watch import KERNEL_WORDS, LEFT_OUT, is_whole
from hwcheck.lab import nodes
from hwcheck.lab.faults import FAULTS, catalogue
from hwcheck.parse.kernel_rules import INTEREST
from hwcheck.sources.catalogue import SOURCES
from tests.gate.certified import ROOT
from tests.parse.test_pairs import CASES

LATER = {
    "clock-lock": "shows in clocks of the moment, which move",
    "gpu-overheats": "shows in temperatures and slowdowns of the moment",
    "leftover-process": "who holds a GPU comes and goes with jobs; told, never judged",
    "nvlink-errors": "counts errors, which is a matter of rates",
    "port-errors": "counts errors, which is a matter of rates",
    "clock-off": "asks chrony for its offset",
    "imex-peer-lost": "asks the daemon",
}
"""Fault of the quick tier → why only the full check sees it."""

FIRST = {
    fault: next(name for name in ("hgx-h200", "hgx-h100", "gb200", "hgx-b200") if name in FAULTS[fault].platforms)
    for fault in catalogue()
    if not FAULTS[fault].deep and not FAULTS[fault].load
}
_LOOK = (
    "import json, sys; from hwcheck.gate.watch import look; print(json.dumps(look(sys.argv[1], float(sys.argv[2]))))"
)


def look(node: nodes.Node, deadline: float = 2.5) -> dict[str, str]:
    """Look at a node in a process of its own, as the gate does."""
    environment = {**os.environ, **node.environment(), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", _LOOK, str(node.root), str(deadline)]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    digests: dict[str, str] = json.loads(said.stdout)
    return digests


@pytest.fixture(scope="module", name="patients")
def _patients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[nodes.Node, dict[str, str]]]]:
    home = tmp_path_factory.mktemp("watched")
    found = {name: nodes.up(home, f"watched-{name}", name, [])[0] for name in sorted(set(FIRST.values()))}
    yield {name: (node, look(node)) for name, node in found.items()}
    for node in found.values():
        nodes.down(home, node)


@pytest.mark.lab
@pytest.mark.slow
@pytest.mark.parametrize("fault", sorted(FIRST))
def test_fault_changes_what_the_fast_look_reads(
    patients: dict[str, tuple[nodes.Node, dict[str, str]]], fault: str
) -> None:
    """Each fault is either seen by the fast look, or it is known why only the full check sees it."""
    node, healthy = patients[FIRST[fault]]
    nodes.break_node(node, fault)
    try:
        assert (look(node) != healthy) == (fault not in LATER)
    finally:
        nodes.mend(node)


@pytest.mark.lab
def test_healthy_node_reads_the_same_twice(tmp_path: Path) -> None:
    """Nothing that the fast look reads moves by itself."""
    node, _ = nodes.up(tmp_path, "still", "gb200", [])
    assert look(node) == look(node)
    nodes.down(tmp_path, node)


@pytest.mark.lab
def test_look_that_broke_off_is_not_compared(tmp_path: Path) -> None:
    """A driver that is too slow for the fast look leaves nothing to compare with, or its hang would pass for health."""
    node, _ = nodes.up(tmp_path, "slow", "hgx-h200", [])
    assert is_whole(look(node, 30.0))
    nodes.break_node(node, "nvml-hangs")
    assert not is_whole(look(node, 1.0))
    nodes.down(tmp_path, node)


def test_left_out_sources_are_there() -> None:
    """What is left out with a reason is a source of the quick tier."""
    assert set(LEFT_OUT) - {source.id for source in SOURCES if source.tier == "quick"} == set()


def test_every_line_of_interest_is_kept() -> None:
    """A line of a kernel log that a rule of the full check could want is part of the digest."""
    logs = [case.with_suffix(".txt").read_text(encoding="utf-8") for case in CASES if case.parent.name == "kernel_log"]
    wanted = [line.encode() for log in logs for line in log.splitlines() if INTEREST.search(line)]
    assert len(wanted) > 20
    lost = [line for line in wanted if not any(word in line for word in KERNEL_WORDS)]
    assert [line for line in lost if b"PCI host bridge" not in line and b"Run /init" not in line] == []
