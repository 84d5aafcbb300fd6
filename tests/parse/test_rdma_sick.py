"""The RDMA parsers on sick input: empty, cut off, garbage, hostile. They never raise, and never invent a value."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hwcheck.evidence import Evidence, Output
from hwcheck.facts import Snapshot
from hwcheck.parse import take_snapshot

TOOLS = (
    "ibstat", "ibstatus", "ibv_devinfo", "show_gids", "ibdev2netdev", "rdma_link", "sysfs_infiniband", "mlxlink",
    "mlxup", "mstflint", "mlnx_qos", "ethtool", "nccl", "nvfwupd",
)  # fmt: skip
CASES = [case for tool in TOOLS for case in sorted((Path(__file__).parent / tool).glob("*.json"))]
IDS = [f"{case.parent.name}/{case.stem}" for case in CASES]
HOSTILE = ("9" * 65536, "\x00\x01\x7f", "A: " + ":" * 65000, "CA '" + "x" * 65000, "port 1 ==> " * 5000, "[" * 5000)


def _parse(case: Path, lines: list[str]) -> Snapshot:
    told = json.loads(case.read_text())
    return take_snapshot(Evidence(outputs=[Output(told["kind"], lines, command=told["command"])]))


def _values(snapshot: Snapshot) -> set[tuple[str, str, str]]:
    """List subject, name and value of what is there."""
    return {
        (str(subject), name, repr(fact.value))
        for subject, facts in snapshot.facts.items()
        for (name, _), fact in facts.items()
        if fact.present and not name.startswith("evidence.")
    }


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_an_empty_output_gives_no_values(case: Path) -> None:
    """Nothing printed is nothing known."""
    assert _values(_parse(case, [])) == set()
    assert _values(_parse(case, ["", ""])) == set()


@pytest.mark.parametrize("case", [case for case in CASES if case.stem != "driver_without_command"])
def test_an_output_cut_after_any_line_gives_no_other_values(case: Path) -> None:
    """
    What is read before the break is what the whole text says.

    Records may be shorter; and an interface that only a later line names is left out above.
    """
    lines = case.with_suffix(".txt").read_text().splitlines()
    whole = _values(_parse(case, lines))
    records = (
        "nccl.",
        "rdma.port.gids",
        "rdma.port.peers",
        "rdma.device.model",
        "rdma.device.peers",
        "module.sensors",
    )
    for end in range(len(lines)):
        cut = {row for row in _values(_parse(case, lines[:end])) if not any(part in row[1] for part in records)}
        assert cut <= whole


@pytest.mark.parametrize("end", range(1, 40))
def test_a_rate_cut_in_the_middle_is_no_rate(end: int) -> None:
    """Ibstat cut at any character never shows another rate than the whole text."""
    text = (Path(__file__).parent / "ibstat" / "two_kinds_tabs.txt").read_text()
    cut = text[: len(text) - end * 5]
    snapshot = take_snapshot(Evidence(outputs=[Output("ibstat", cut.splitlines())]))
    assert {fact.value for _, fact in snapshot.with_fact("rdma.port.rate") if fact.present} <= {400, 10}
