"""The parsers of measured results on sick input: empty, cut off, garbage, hostile. They never raise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hwcheck.evidence import Evidence, Output
from hwcheck.facts import Missing, Snapshot
from hwcheck.parse import take_snapshot

TOOLS = (
    "nccl_tests", "nvbandwidth", "p2p_bandwidth", "perftest", "gpu_stream", "device_query", "dcgm_diag",
    "dcgm_diag_json", "dcgm_state",
)  # fmt: skip
CASES = [case for tool in TOOLS for case in sorted((Path(__file__).parent / tool).glob("*.json"))]
IDS = [f"{case.parent.name}/{case.stem}" for case in CASES]
HOSTILE = (
    "9" * 65536, "\x00\x01\x7f", " " * 65000 + "x", "| " * 30000, "U " * 30000, '"' * 65000, "#" + " " * 65000,
    "Device 0: " + " " * 65000, "STREAM_COPY_" + "9" * 65000, '{"a":' * 20000,
)  # fmt: skip


def _parse(case: Path, lines: list[str]) -> Snapshot:
    told = json.loads(case.read_text())
    return take_snapshot(Evidence(outputs=[Output(told["kind"], lines, command=told.get("command", ""))]))


def _lines(case: Path) -> list[str]:
    return case.with_suffix(".txt").read_text().splitlines()


def _values(snapshot: Snapshot) -> list[str]:
    return [
        name
        for facts in snapshot.facts.values()
        for (name, _), fact in facts.items()
        if fact.present and not name.startswith("evidence.")
    ]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_an_empty_output_gives_no_values(case: Path) -> None:
    """Nothing printed is nothing known."""
    assert _values(_parse(case, [])) == []
    assert _values(_parse(case, ["", ""])) == []


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_hostile_lines_change_nothing_else(case: Path) -> None:
    """Long, binary and endless lines at the end leave what was read before as it was."""
    if json.loads(case.read_text())["kind"].endswith(".json"):
        return  # a document with something behind it is none; the reader cuts at its end
    before = set(_values(_parse(case, _lines(case))))
    for line in HOSTILE:
        assert before <= set(_values(_parse(case, [*_lines(case), line])))


def test_json_that_ends_early_is_a_gap() -> None:
    """Half a JSON document makes its names unknown, not absent."""
    snapshot = take_snapshot(
        Evidence(outputs=[Output("dcgmi-diag.json", ['{"DCGM GPU Diagnostic": {"test_categories": ['])])
    )
    fact = snapshot.get(next(iter(snapshot.subjects("node"))), "dcgm.tests")
    assert isinstance(fact.value, Missing)
    assert fact.value.reason.asked


def test_one_odd_matrix_leaves_the_others() -> None:
    """A matrix that does not fit the listed GPUs is not understood; the next test is."""
    lines = [
        "Device 0: NVIDIA H200 (00000000:1a:00)",
        "Running host_to_device_memcpy_ce.",
        "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)",
        "           0         1",
        " 0     55.10     55.20",
        "Running device_to_host_memcpy_ce.",
        "memcpy CE CPU(row) <- GPU(column) bandwidth (GB/s)",
        "           0",
        " 0     54.90",
    ]
    snapshot = take_snapshot(Evidence(outputs=[Output("nvbandwidth", lines)]))
    found = {
        subject.id: snapshot.get(subject, "result.bandwidth").value for subject in snapshot.subjects("measurement")
    }
    assert isinstance(found["nvbandwidth.host_to_device_memcpy_ce"], Missing)
    assert found["nvbandwidth.device_to_host_memcpy_ce"] == pytest.approx(54.9)
