"""Acceptance after a swap: what is measured anew, and what nobody may carry over."""

from __future__ import annotations

import pytest

from hwcheck.baselines.partial import Part, is_touched, other_changes, read_part, sources_for, subject_of
from hwcheck.errors import UsageError

GPUS = [{"id": f"0000:{bus}:00.0", "index": n, "uuid": f"GPU-{n}"} for n, bus in enumerate(("18", "2a", "3a"))]
NICS = [{"id": f"mlx5_{n}", "guid": f"00{n}"} for n in range(3)]
ABOUT = {"gpus": GPUS, "nics": NICS}


@pytest.mark.parametrize(("text", "part", "subject"), [
    ("gpu2", Part("gpu", "2"), "0000:3a:00.0"), ("GPU 1".replace(" ", ""), Part("gpu", "1"), "0000:2a:00.0"),
    ("nic1", Part("nic", "1"), "mlx5_1"), ("mlx5_2", Part("nic", "mlx5_2"), "mlx5_2"),
    ("cable  mlx5_0", Part("cable", "mlx5_0"), "mlx5_0"), ("cable nic2", Part("cable", "2"), "mlx5_2"),
])  # fmt: skip
def test_parts_are_named_as_people_name_them(text: str, part: Part, subject: str) -> None:
    """By number or by device."""
    assert read_part(text) == part
    assert subject_of(part, ABOUT) == subject


@pytest.mark.parametrize("text", ["", "gpu", "cable gpu1", "18:00.0", "gpu1 gpu2", "mlx5-1", "../x"])
def test_what_names_no_part_is_refused(text: str) -> None:
    """Before any node is read, where that can be told."""
    with pytest.raises(UsageError):
        subject_of(read_part(text), ABOUT)


@pytest.mark.parametrize(("part", "measurement", "touched"), [
    ("gpu1", "hwcheck.hbm.copy@0000:2a:00.0", True), ("gpu1", "hwcheck.hbm.copy@0000:18:00.0", False),
    ("gpu1", "hwcheck.p2p@0000:18:00.0>0000:2a:00.0", True), ("gpu1", "hwcheck.p2p@0000:18:00.0>0000:3a:00.0", False),
    ("gpu1", "hwcheck.cpu.memory@numa0", False), ("gpu1", "nccl.all_reduce", True), ("nic1", "nccl.all_reduce", True),
    ("nic1", "hwcheck.hbm.copy@0000:2a:00.0", False), ("cable mlx5_1", "hwcheck.tcp@gpu-1>gpu-2", True),
])  # fmt: skip
def test_only_what_a_part_takes_part_in_is_measured_anew(part: str, measurement: str, touched: bool) -> None:  # noqa: FBT001
    """A pair of GPUs is touched by either of them; what another tool measured is of the whole node."""
    swapped = read_part(part)
    assert is_touched(swapped, subject_of(swapped, ABOUT), measurement) is touched


def test_a_second_part_that_has_changed_is_named() -> None:
    """Nobody vouches for it."""
    now = {"gpus": [GPUS[0], {**GPUS[1], "uuid": "GPU-new"}, {**GPUS[2], "uuid": "GPU-other"}], "nics": NICS[:2]}
    swapped = read_part("gpu1")
    assert other_changes(swapped, "0000:2a:00.0", ABOUT, now) == ["0000:3a:00.0", "mlx5_2"]
    assert other_changes(swapped, "0000:2a:00.0", ABOUT, {**ABOUT, "gpus": [*GPUS[:1], now["gpus"][1], GPUS[2]]}) == []


def test_a_cable_needs_no_load_on_the_gpus() -> None:
    """It is measured between nodes; a GPU is by all sources that use it."""
    assert sources_for(read_part("cable mlx5_1")) == sources_for(read_part("nic0")) == ("rdma.write", "rdma.latency")
    assert "load-hbm" in sources_for(read_part("gpu1"))


def test_a_part_that_nobody_can_tell_apart_counts_as_changed() -> None:
    """Two GPUs without a serial are no proof of one and the same."""
    nameless = {"gpus": [{"id": "0000:18:00.0", "index": 0}, GPUS[1]], "nics": []}
    swapped = read_part("gpu1")
    assert other_changes(swapped, "0000:2a:00.0", nameless, nameless) == ["0000:18:00.0"]


@pytest.mark.parametrize("part", ["gpu1", "cable mlx5_1"])
def test_figures_had_with_another_driver_or_kernel_are_not_carried_over(part: str) -> None:
    """They would be held against nodes of another cohort."""
    swapped = read_part(part)
    before, now = {**ABOUT, "cohort": "hgx-h200, driver 570"}, {**ABOUT, "cohort": "hgx-h200, driver 580"}
    changes = other_changes(swapped, subject_of(swapped, now), before, now)
    assert changes == ["its cohort (hgx-h200, driver 570 → hgx-h200, driver 580)"]
