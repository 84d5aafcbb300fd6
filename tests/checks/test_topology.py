"""The matrix of topo -m: who reaches whom over NVLink."""

from __future__ import annotations

from typing import Any

import pytest

from hwcheck.checks import RELATIONS
from hwcheck.engine import Judge
from hwcheck.evidence import Evidence, Output
from hwcheck.facts import Snapshot
from hwcheck.findings import Finding, Status
from hwcheck.parse import take_snapshot
from hwcheck.profiles.layers import Entry, Profile

HGX = {"fabric.kind": "nvswitch", "nvlink.links": 18}
BRIDGED = {"fabric.kind": "bridge"}


def matrix(*groups: int, inside: str = "NV18", between: str = "SYS", **cells: str) -> Output:
    """Make a matrix of GPUs in groups; ``g0_g3="NV9"`` sets one pair."""
    group_of = [number for number, size in enumerate(groups) for _ in range(size)]
    names = [f"GPU{index}" for index in range(len(group_of))]
    lines = ["\t" + "\t".join(names) + "\tCPU Affinity"]
    for row, name in enumerate(names):
        words = []
        for column in range(len(names)):
            low, high = sorted((row, column))
            word = inside if group_of[row] == group_of[column] else between
            words.append("X" if row == column else cells.get(f"g{low}_g{high}", word))
        lines.append("\t".join([name, *words, "0-31"]))
    return Output("nvidia-smi.topo", lines)


def judge(bounds: dict[str, Any] | None, *outputs: Output) -> list[Finding]:
    """Judge the matrix with these bounds."""
    snapshot: Snapshot = take_snapshot(Evidence(outputs=list(outputs)))
    entries = {id: Entry(id, {"value": value}, {}) for id, value in (bounds or {}).items()}
    judge = Judge(Profile("test", "test", ("test",), {}, entries, ""))
    judge.checks = [RELATIONS["nvlink.topology"]]
    return [finding for finding in judge.findings(snapshot) if finding.check == "nvlink.topology"]


@pytest.mark.parametrize(
    ("groups", "bounds", "status"),
    [
        ((8,), None, Status.PASS),
        ((8,), HGX, Status.PASS),
        ((4,), None, Status.PASS),
        ((1,), HGX, Status.SKIP),
        ((4, 4), None, Status.UNKNOWN),
        ((4, 4), BRIDGED, Status.PASS),
        ((4, 4), HGX, Status.FAIL),
        ((4, 1), None, Status.UNKNOWN),
        ((1, 1, 1, 1), None, Status.SKIP),
        ((1, 1, 1, 1), BRIDGED, Status.SKIP),
        ((1, 1, 1, 1), HGX, Status.FAIL),
    ],
)
def test_groups_are_judged_by_the_kind_of_board(
    groups: tuple[int, ...], bounds: dict[str, Any] | None, status: Status
) -> None:
    """Islands are right for bridged cards, a fault on switched boards, and unknown where nothing tells which it is."""
    (finding,) = judge(bounds, matrix(*groups))
    assert finding.status is status


@pytest.mark.parametrize("bounds", [None, HGX])
def test_the_gpu_without_nvlink_is_named(bounds: dict[str, Any] | None) -> None:
    """One GPU that reaches none of the seven others fails even where the model is not in the text."""
    cells = {f"g{min(2, other)}_g{max(2, other)}": "NODE" for other in range(8) if other != 2}
    (finding,) = judge(bounds, matrix(8, **cells))
    assert finding.status is Status.FAIL
    assert str(finding.subject) == "GPU2"
    assert "7 GPUs" in finding.message
    assert finding.remedy is not None
    assert "field diagnostic" in finding.remedy.text


def test_the_gpu_is_named_by_its_address_where_another_output_tells_it() -> None:
    """A table beside the matrix gives the PCI address of GPU3."""
    row = "|   3  NVIDIA H200   On  |   00000000:5D:00.0 Off |   0 |"
    second = "| N/A   30C    P0   70W /  700W |  1MiB / 143771MiB |  0%  Default |"
    cells = {f"g{other}_g3": "SYS" for other in range(3)}
    (finding,) = judge(HGX, matrix(4, **cells), Output("nvidia-smi.table", [row, second]))
    assert str(finding.subject) == "0000:5d:00.0"
    assert "GPU3" in finding.message or "0000:5d:00.0" in str(finding.subject)


def test_fewer_links_than_the_platform_has_fail() -> None:
    """NV17 between all pairs is a link down on every GPU of a board of 18; a lone NV17 pair is named."""
    (finding,) = judge(HGX, matrix(8, inside="NV17"))
    assert finding.status is Status.FAIL
    (finding,) = judge(HGX, matrix(8, g1_g5="NV17"))
    assert finding.status is Status.FAIL
    assert "GPU1 and GPU5" in finding.message


def test_uneven_links_are_no_fault_of_a_board_without_switches() -> None:
    """Boards before NVSwitch mix NV1 and NV2."""
    (finding,) = judge(None, matrix(8, inside="NV1", g0_g3="NV2", g0_g4="NV2"))
    assert finding.status is Status.SKIP


def test_a_strange_word_is_unknown() -> None:
    """A cell that is none of the tool's words makes the matrix unknown, never a pass."""
    (finding,) = judge(HGX, matrix(8, g0_g1="NV1X"))
    assert finding.status is Status.UNKNOWN


ROW = {f"g{min(2, other)}_g{max(2, other)}": "NV16" for other in range(8) if other != 2}


@pytest.mark.parametrize(
    ("cells", "named"),
    [
        ({"g1_g5": "NV17"}, "GPU1 and GPU5"),
        ({"g1_g5": "SYS"}, "GPU1 and GPU5"),
        (ROW, "GPU2"),
        ({"g1_g5": "NV17", "g0_g2": "NV16"}, "NV16"),
    ],
)
@pytest.mark.parametrize(("bounds", "status"), [(None, Status.WARN), (HGX, Status.FAIL)])
def test_one_deviation_among_equal_pairs_is_evidence_enough(
    bounds: dict[str, Any] | None, status: Status, cells: dict[str, str], named: str
) -> None:
    """A pair or a row with fewer links than all others fails on a switched board, and warns on an unknown one."""
    (finding,) = judge(bounds, matrix(8, **cells))
    assert finding.status is status
    assert named in finding.message


@pytest.mark.parametrize("size", [3, 4])
def test_few_gpus_that_share_links_hang_on_a_switch(size: int) -> None:
    """NV18 to two peers is more than the 18 links a GPU has: one pair less is a fault, not a design."""
    (finding,) = judge(None, matrix(size, g0_g1="NV17"))
    assert finding.status is Status.WARN


@pytest.mark.parametrize(
    ("groups", "cells", "status"),
    [
        ((4, 4), {"g4_g6": "NV17"}, Status.WARN),
        ((4, 4), {"g0_g1": "SYS"}, Status.WARN),
        ((4, 3, 1), {}, Status.WARN),
        ((2, 2), {}, Status.PASS),
    ],
)
def test_bridged_groups_are_even_inside(groups: tuple[int, ...], cells: dict[str, str], status: Status) -> None:
    """Within a group all pairs are alike, and a bridge joins two or four."""
    (finding,) = judge(BRIDGED, matrix(*groups, **cells))
    assert finding.status is status
