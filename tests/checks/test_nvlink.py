"""NVLink and C2C links of a GPU: what is up, how fast, and what grows."""

from __future__ import annotations

from typing import Any

import pytest

from hwcheck.checks import RELATIONS
from hwcheck.engine import Judge
from hwcheck.evidence import Evidence, Output
from hwcheck.facts import Snapshot
from hwcheck.findings import Finding, Status, Urgency
from hwcheck.parse import take_snapshot
from hwcheck.profiles.layers import Entry, Profile

HGX = {"fabric.kind": "nvswitch", "nvlink.links": 4, "nvlink.speed": [26.562]}
BRIDGED = {"fabric.kind": "bridge"}
GRACE = {"c2c.links": 3, "c2c.speed": 44.7}


def gpus(*links: list[str], name: str = "NVIDIA Test", word: str = "Link") -> Snapshot:
    """Make a listing with these words for the links of each GPU."""
    lines: list[str] = []
    for index, words in enumerate(links):
        lines.append(f"GPU {index}: {name} (UUID: GPU-00000000-0000-0000-0000-00000000000{index + 1})")
        lines += [f"\t {word} {number}: {text}" for number, text in enumerate(words)]
    return take_snapshot(Evidence(outputs=[Output("nvidia-smi.gpu-lines", lines)]))


def judge(
    check: str, snapshot: Snapshot, bounds: dict[str, Any] | None = None, previous: Snapshot | None = None
) -> list[Finding]:
    """Judge with one relation and these bounds."""
    entries = {id: Entry(id, {"value": value}, {}) for id, value in (bounds or {}).items()}
    judge = Judge(Profile("test", "test", ("test",), {}, entries, ""))
    judge.checks = [RELATIONS[check]]
    return [finding for finding in judge.findings(snapshot, previous) if finding.check == check]


def statuses(findings: list[Finding]) -> dict[str, Status]:
    """Subject → status."""
    return {str(finding.subject): finding.status for finding in findings}


UP, DOWN = "26.562 GB/s", "<inactive>"


def test_all_links_up_pass_on_a_switched_board() -> None:
    """As many active links as the platform has are a pass."""
    assert statuses(judge("nvlink.active", gpus([UP] * 4), HGX)) == {"GPU0": Status.PASS}


def test_a_link_down_fails_on_a_switched_board() -> None:
    """One inactive link fails the GPU, and the link is named."""
    (finding,) = judge("nvlink.active", gpus([UP, UP, DOWN, UP]), HGX)
    assert finding.status is Status.FAIL
    assert finding.urgency is Urgency.NOW
    assert "3 of 4" in finding.message
    assert "2 is inactive" in finding.message
    assert finding.origin is not None
    assert "Link 2" in finding.origin.excerpt
    assert finding.remedy is not None
    assert "nvlink -s" in finding.remedy.text


def test_fewer_links_listed_without_an_inactive_one_are_unknown() -> None:
    """A listing that ends early is no fault of the GPU."""
    assert statuses(judge("nvlink.active", gpus([UP] * 3), HGX)) == {"GPU0": Status.UNKNOWN}


def test_no_link_at_all_fails_on_a_switched_board_only() -> None:
    """All links down is a fault of a switched board and usual for a card without a bridge."""
    snapshot = gpus([DOWN] * 4)
    assert statuses(judge("nvlink.active", snapshot, HGX)) == {"GPU0": Status.FAIL}
    assert statuses(judge("nvlink.active", snapshot, BRIDGED)) == {"GPU0": Status.SKIP}
    assert statuses(judge("nvlink.active", snapshot)) == {"GPU0": Status.SKIP}


def test_links_without_a_bridge_are_no_fault_of_a_bridged_card() -> None:
    """Bridged cards use a part of their links; an unknown board with some down is a warning."""
    snapshot = gpus([UP, UP, DOWN, DOWN])
    assert statuses(judge("nvlink.active", snapshot, BRIDGED)) == {"GPU0": Status.SKIP}
    assert statuses(judge("nvlink.active", snapshot)) == {"GPU0": Status.WARN}


def test_a_list_of_gpus_alone_says_nothing_of_links() -> None:
    """A -L list gives no NVLink verdict."""
    assert {finding.status for finding in judge("nvlink.active", gpus([], []), HGX)} == {Status.SKIP}


def test_the_one_gpu_that_differs_is_named_where_the_platform_is_unknown() -> None:
    """Of four GPUs one with fewer links fails; equal ones pass; two against two is unknown."""
    odd = gpus([UP] * 3, [UP] * 3, [UP, UP, DOWN], [UP] * 3)
    assert statuses(judge("nvlink.uniform", odd)) == {"GPU2": Status.FAIL}
    assert statuses(judge("nvlink.uniform", gpus([UP] * 3, [UP] * 3))) == {"": Status.PASS}
    assert statuses(judge("nvlink.uniform", gpus([UP], [UP], [DOWN], [DOWN]))) == {"": Status.UNKNOWN}
    assert statuses(judge("nvlink.uniform", gpus([DOWN], [DOWN]))) == {"": Status.SKIP}


def test_a_listing_cut_off_is_no_comparison() -> None:
    """The last GPU of a listing that ends early does not differ: it is unknown."""
    assert {finding.status for finding in judge("nvlink.uniform", gpus([UP] * 3, [UP] * 3, [UP]))} == {Status.UNKNOWN}


def test_speed_is_compared_with_what_the_platform_shows() -> None:
    """An accepted rate passes, another one fails, and without a platform only differing links are a warning."""
    assert statuses(judge("nvlink.speed", gpus([UP] * 2), HGX)) == {"GPU0": Status.PASS}
    (slow,) = judge("nvlink.speed", gpus([UP, "13.281 GB/s"]), HGX)
    assert slow.status is Status.FAIL
    assert "13.281" in slow.message
    assert statuses(judge("nvlink.speed", gpus([UP] * 2))) == {"GPU0": Status.SKIP}
    assert statuses(judge("nvlink.speed", gpus([UP, "13.281 GB/s"]))) == {"GPU0": Status.WARN}


def counters(**values: int) -> Snapshot:
    """Make error counters of one link."""
    return gpus([f"{name.replace('_', ' ')}: {value}" for name, value in values.items()])


def test_one_reading_of_error_counters_is_a_pass_only_when_all_are_zero() -> None:
    """A lifetime counter alone never warns."""
    assert statuses(judge("nvlink.errors", counters(CRC_Errors=0))) == {"GPU0": Status.PASS}
    assert statuses(judge("nvlink.errors", counters(CRC_Errors=5000))) == {"GPU0": Status.SKIP}


@pytest.mark.parametrize(
    ("before", "now", "status"),
    [
        ({"CRC_Errors": 5}, {"CRC_Errors": 5}, Status.PASS),
        ({"CRC_Errors": 5}, {"CRC_Errors": 9}, Status.WARN),
        ({"Link_recovery_failed_events": 0}, {"Link_recovery_failed_events": 1}, Status.FAIL),
        ({"CRC_Errors": 9}, {"CRC_Errors": 2}, Status.SKIP),
        ({"Rx_Errors": 0}, {"CRC_Errors": 2}, Status.SKIP),
    ],
)
def test_growth_between_two_readings_is_judged(before: dict[str, int], now: dict[str, int], status: Status) -> None:
    """Growth warns, a recovery that failed fails, a counter that was reset tells nothing."""
    assert statuses(judge("nvlink.errors", counters(**now), previous=counters(**before))) == {"GPU0": status}


def test_counters_of_corrected_bits_are_no_errors() -> None:
    """FEC buckets and raw lane errors are not zero on healthy boards."""
    snapshot = gpus(["FEC Errors - 0: 36140749276", "Raw Errors Lane 0: 82", "Symbol Errors: 3"])
    assert statuses(judge("nvlink.errors", snapshot)) == {"GPU0": Status.SKIP}


def test_c2c_links_pass_with_and_without_a_platform() -> None:
    """All links up at one rate pass, whatever the product is called."""
    snapshot = gpus(["44.712 GB/s"] * 3, ["44.715 GB/s"] * 3, word="C2C Link")
    assert set(statuses(judge("c2c.active", snapshot)).values()) == {Status.PASS}
    assert set(statuses(judge("c2c.active", snapshot, GRACE)).values()) == {Status.PASS}
    assert statuses(judge("c2c.uniform", snapshot)) == {"": Status.PASS}


def test_a_c2c_link_down_or_slow_fails() -> None:
    """An inactive or slow chip-to-chip link is a fault of the module."""
    assert statuses(judge("c2c.active", gpus(["44.712 GB/s", DOWN], word="C2C Link"), GRACE)) == {"GPU0": Status.FAIL}
    slow = gpus(["44.712 GB/s", "22.3 GB/s", "44.712 GB/s"], word="C2C Link")
    assert statuses(judge("c2c.active", slow, GRACE)) == {"GPU0": Status.FAIL}
    assert statuses(judge("c2c.active", gpus(["44.712 GB/s"], word="C2C Link"), GRACE)) == {"GPU0": Status.UNKNOWN}


def test_a_gpu_with_fewer_c2c_links_is_named() -> None:
    """The other GPUs of the tray are the yardstick."""
    full, few = ["44.712 GB/s"] * 2, ["44.712 GB/s", DOWN]
    assert statuses(judge("c2c.uniform", gpus(few, full, full, word="C2C Link"))) == {"GPU0": Status.FAIL}
