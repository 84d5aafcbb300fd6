"""hwcheck's own measurements: what they are held against, and what keeps one from counting."""

from __future__ import annotations

import json
import random
import statistics
from typing import Any

import pytest

from hwcheck.baselines import OWN, Bound, fleet_bound, history_bound
from hwcheck.baselines.own import RETEST, sources_to_repeat
from hwcheck.engine import Judge
from hwcheck.evidence import Evidence, Output
from hwcheck.findings import Finding, Status
from hwcheck.parse import take_snapshot
from hwcheck.profiles import Entry, Profile, ProfileSet

GPU = "0000:18:00.0"
BOUNDS = {
    "baseline.hbm.copy": 3600, "baseline.h2d": 48, "baseline.d2h": 48, "baseline.p2p.write": 335, "baseline.launch": 10,
    "baseline.copy.small": 10, "baseline.cpu.memory": 150, "baseline.os.jitter": 60,
}  # fmt: skip
PROFILE = Profile("hgx-test", "", (), {}, {id: Entry(id, {"value": value}, {}) for id, value in BOUNDS.items()}, "")
FINE = {
    "samples": 9, "spread": 0.4, "sm_clock": 1980, "sm_clock_max": 1980, "memory_clock": 3201,
    "memory_clock_max": 3201, "throttled": [], "strangers": [], "ecc_errors": 0, "remapped_rows": 0, "xids": [],
    "numa_node": 0, "numa_bound": True, "pcie_width": 16, "pcie_width_max": 16, "pcie_gen": 5, "pcie_gen_max": 5,
    "busy": 1.0,
}  # fmt: skip


def line(test: str, value: float, on: str = GPU, unit: str = "GB/s", **conditions: Any) -> str:
    """Make a line as the sources write it."""
    record = {"test": test, "on": on, "value": value, "unit": unit, "samples": [value], "conditions": FINE | conditions}
    return json.dumps(record)


def findings(*lines: str, references: dict[str, tuple[Bound, ...]] | None = None) -> list[Finding]:
    """Judge lines; what came of them alone."""
    snapshot = take_snapshot(Evidence("n", [Output("hwcheck.load", list(lines), file="load")], collected=True))
    checks = {own.check for own in OWN.values()}
    found = Judge(PROFILE).findings(snapshot, references=references)
    return [one for one in found if one.check in checks]


def only(*lines: str, references: dict[str, tuple[Bound, ...]] | None = None) -> Finding:
    """Judge one line."""
    (found,) = findings(*lines, references=references)
    return found


@pytest.mark.parametrize(
    ("test", "good", "bad", "unit", "on", "subject"),
    [
        ("hbm.copy", 4000, 2000, "GB/s", GPU, GPU),
        ("h2d", 55, 27, "GB/s", GPU, GPU),
        ("d2h", 55, 27, "GB/s", GPU, GPU),
        ("p2p", 395, 200, "GB/s", f"{GPU}>0000:2a:00.0", f"hwcheck.p2p@{GPU}>0000:2a:00.0"),
        ("launch", 5, 25, "us", GPU, GPU),
        ("copy.small", 4, 25, "us", GPU, GPU),
        ("cpu.memory", 200, 100, "GB/s", "numa1", "1"),
        ("os.jitter", 20, 500, "us", "", ""),
    ],
)
def test_a_figure_is_held_against_the_bound_of_the_platform(
    test: str, good: float, bad: float, unit: str, on: str, subject: str
) -> None:
    """Bandwidth has a floor, a latency a ceiling; the finding is about what a technician can touch."""
    passed, failed = only(line(test, good, on, unit)), only(line(test, bad, on, unit))
    assert (passed.status, failed.status) == (Status.PASS, Status.FAIL)
    assert failed.check == OWN[test].check
    assert failed.subject.id == subject
    assert failed.observed == bad
    assert failed.remedy is not None


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("clocks", {"sm_clock": 345}),
        ("clocks", {"memory_clock": 2619}),
        ("throttled", {"throttled": ["hw_thermal"]}),
        ("throttled", {"throttled": ["sw_power_cap"], "sm_clock_max": None}),
        ("foreign process", {"strangers": ["4242 python3"]}),
        ("ecc", {"ecc_errors": 1}),
        ("ecc", {"remapped_rows": 2}),
        ("xid", {"xids": ["6,1,2,-;NVRM: Xid (PCI:0000:18:00): 94, pid=1, Contained"]}),
        ("numa", {"numa_bound": False}),
        ("mig", {"mig": True}),
        ("samples", {"samples": 3}),
        ("spread", {"spread": 14.0}),
        ("gpudirect", {"gpudirect": False}),
        ("transport", {"transport": "SHM", "transport_expected": "P2P"}),
    ],
)
@pytest.mark.parametrize("value", [55.0, 20.0])
def test_a_condition_seen_false_makes_a_figure_unknown(name: str, seen: dict[str, Any], value: float) -> None:
    """Whether the figure is good or bad, it does not count, and the condition is named."""
    found = only(line("h2d", value, **seen))
    assert found.status is Status.UNKNOWN
    assert f"does not count ({name})" in found.message
    assert found.observed == value


def test_a_busy_node_makes_the_figures_of_its_cpus_unknown() -> None:
    """A copy of GPU memory does not mind; memory bandwidth of the CPUs does."""
    assert only(line("cpu.memory", 90, "numa0", busy=40.0)).status is Status.UNKNOWN
    assert "does not count (idle)" in only(line("cpu.memory", 200, "numa0", busy=40.0)).message
    assert only(line("hbm.copy", 4000, busy=40.0)).status is Status.PASS


@pytest.mark.parametrize("test", ["launch", "copy.small", "os.jitter"])
def test_a_program_that_runs_wild_spoils_what_lasts_microseconds(test: str) -> None:
    """It is named; a copy of gigabytes does not mind."""
    found = only(line(test, 5, unit="us", runaways=["5200 osqueryd"]))
    assert found.status is Status.UNKNOWN
    assert "a program held a CPU all the time before (5200 osqueryd)" in found.message
    assert only(line("h2d", 55, runaways=["5200 osqueryd"])).status is Status.PASS


def test_a_tail_may_spread_and_the_middle_may_not() -> None:
    """The slowest of a thousand differ by nature; against the fleet they still tell."""
    fleet = fleet_bound([8.0] * 8, higher_is_better=False)
    assert fleet is not None
    references = {f"hwcheck.launch.tail@{GPU}": (fleet,)}
    slow = only(line("launch.tail", 40, unit="us", spread=30.0), references=references)
    assert (slow.check, slow.status) == ("baseline.launch_tail", Status.FAIL)
    assert only(line("launch.tail", 9, unit="us", spread=30.0), references=references).status is Status.PASS
    assert only(line("launch", 5, unit="us", spread=30.0)).status is Status.UNKNOWN


@pytest.mark.parametrize(
    "seen",
    [
        {"throttled": ["sw_power_cap"]},  # at work on any loaded GPU; its clocks were reached
        {"xids": ["6,1,2,-;NVRM: Xid (PCI:0000:5d:00): 13, pid=1"]},  # another GPU's
        {"numa_bound": None, "numa_unknown": "the platform tells no NUMA node of this device"},
    ],
)
def test_what_does_not_touch_the_figure_does_not_spoil_it(seen: dict[str, Any]) -> None:
    """A healthy figure stays one."""
    assert only(line("h2d", 55, **seen)).status is Status.PASS


def test_a_condition_that_was_not_told_is_said_and_does_not_decide() -> None:
    """Without NVML a slow copy is still slow, a good one still good, and the reader knows what nobody looked at."""
    blind = json.loads(line("h2d", 27))
    blind["conditions"] = {"samples": 9, "spread": 0.1, "unwatched": "libnvidia-ml.so.1: not there"}
    found = only(json.dumps(blind))
    assert found.status is Status.FAIL
    assert "not told: clocks, throttling, ECC and other processes" in found.message
    assert "NUMA binding" in found.message


@pytest.mark.parametrize("value", [47.0, 49.0])
def test_near_the_edge_a_second_measurement_is_advised(value: float) -> None:
    """Within three percent of the bound chance decides, on either side."""
    found = only(line("h2d", value))
    assert found.status is (Status.FAIL if value < 48 else Status.PASS)
    assert RETEST in found.message
    assert sources_to_repeat([found]) == ("load-host-copy",)


def test_far_from_the_edge_nothing_is_measured_twice() -> None:
    """A good figure is believed."""
    assert sources_to_repeat([only(line("h2d", 55)), only(line("hbm.copy", 4000))]) == ()


def test_what_failed_or_does_not_count_is_asked_again_once() -> None:
    """Each source once, whatever the number of its findings."""
    found = findings(line("h2d", 20), line("d2h", 20), line("launch", 5, unit="us", strangers=["1 x"]))
    assert sorted(sources_to_repeat(found)) == ["load-host-copy", "load-latency"]


def test_no_figure_is_unknown_with_the_reason() -> None:
    """An error, a zero and one that never ended."""
    errors = [
        '{"test": "h2d", "on": "0000:18:00.0", "error": "cuMemHostAlloc: CUDA_ERROR_OUT_OF_MEMORY (2)"}',
        '{"test": "h2d", "on": "0000:18:00.0", "value": 0.0, "unit": "GB/s", "samples": [0.0], "conditions": {}}',
        '{"test": "h2d", "on": "0000:18:00.0", "begins": true}',
    ]
    for text, why in zip(errors, ("OUT_OF_MEMORY", "no figure: 0.0", "began and did not end"), strict=True):
        found = only(text)
        assert found.status is Status.UNKNOWN
        assert why in found.message


def test_a_figure_without_a_bound_is_told() -> None:
    """Skipped, never passed; what would have spoilt it is told too."""
    found = only(line("disk.read", 6.1, "/scratch", busy=80.0))
    assert found.status is Status.SKIP
    assert "6.1 GB/s" in found.message
    assert "not idle" in found.message


def test_a_narrow_link_under_load_is_named_beside_the_slow_copy() -> None:
    """The width that the link had while the copy ran is no doubt about the figure, it is its cause."""
    found = only(line("h2d", 27, pcie_width=8, counts="one-way"))
    assert found.status is Status.FAIL
    assert "width 8 of 16" in found.message


def test_the_fleet_decides_where_the_platform_has_no_bound() -> None:
    """A node far below its like fails; one below its own past alone is warned about."""
    subject = f"hwcheck.tcp@{GPU}"
    fleet = fleet_bound([11.6, 11.7, 11.5, 11.6, 11.8, 11.6, 11.7, 11.6], higher_is_better=True)
    past = history_bound([11.9, 11.9, 12.0], higher_is_better=True)
    assert fleet is not None
    assert past is not None
    assert only(line("tcp", 6.0), references={subject: (fleet, past)}).status is Status.FAIL
    slower = only(line("tcp", 11.2), references={subject: (fleet, past)})
    assert slower.status is Status.WARN
    assert "this node's earlier runs" in slower.message
    assert only(line("tcp", 11.7), references={subject: (fleet, past)}).status is Status.PASS


def test_references_hold_a_node_to_more_than_the_floor() -> None:
    """Well above the floor of the platform and well below every other node is not fit either."""
    fleet = fleet_bound([55.1, 55.2, 55.0, 55.3, 55.2, 55.1, 55.2, 55.0], higher_is_better=True)
    assert fleet is not None
    found = only(line("h2d", 50.5), references={f"hwcheck.h2d@{GPU}": (fleet,)})
    assert found.status is Status.FAIL
    assert "of the fleet" in found.message
    assert only(line("h2d", 50.5)).status is Status.PASS


USUAL = {"hbm.copy": 4000.0, "h2d": 55.4, "d2h": 55.1, "p2p": 396.0, "launch": 5.0, "copy.small": 4.0}
GPUS = [f"0000:{bus:02x}:00.0" for bus in (0x18, 0x2A, 0x3A, 0x5D, 0x9A, 0xAB, 0xBA, 0xDB)]


def noisy_node(rng: random.Random) -> dict[tuple[str, str], list[float]]:
    """Measure a healthy node of eight GPUs whose every repeat has five percent of noise."""
    places = dict.fromkeys(USUAL, GPUS) | {"p2p": [f"{a}>{b}" for a in GPUS for b in GPUS if a != b]}
    return {
        (test, on): [usual * max(0.01, rng.gauss(1, 0.05)) for _ in range(5 if test == "p2p" else 9)]
        for test, usual in USUAL.items()
        for on in places[test]
    }


def test_healthy_nodes_with_noise_never_fail() -> None:
    """Two hundred runs with five percent of noise, against the shipped H200 profile, a fleet of twelve and a past."""
    rng = random.Random(20261201)  # noqa: S311 - a repeatable sample
    fleet = [noisy_node(rng) for _ in range(12)]
    past = [noisy_node(rng) for _ in range(5)]
    bounds: dict[str, tuple[Bound, ...]] = {}
    for test in USUAL:
        better = OWN[test].higher_is_better
        whole = [statistics.median(v) for node in fleet for (name, _), v in node.items() if name == test]
        cohort = fleet_bound(whole, higher_is_better=better)
        for name, on in past[0]:
            if name == test:
                mine = history_bound([statistics.median(run[name, on]) for run in past], higher_is_better=better)
                bounds[f"hwcheck.{test}@{on}"] = tuple(bound for bound in (cohort, mine) if bound is not None)
    judge = Judge(ProfileSet().profile("hgx-h200"), ("baseline",))
    seen: dict[Status, int] = dict.fromkeys(Status, 0)
    for _ in range(200):
        lines = []
        for (test, on), values in noisy_node(rng).items():
            value = statistics.median(values)
            spread = 100 * statistics.median(abs(item - value) for item in values) / value
            unit = "GB/s" if OWN[test].higher_is_better else "us"
            lines.append(line(test, value, on, unit, samples=len(values), spread=spread))
        snapshot = take_snapshot(Evidence("n", [Output("hwcheck.load", lines, file="load")], collected=True))
        for found in judge.findings(snapshot, references=bounds):
            if found.check.startswith("baseline.") and found.observed is not None:
                seen[found.status] += 1
    assert seen[Status.FAIL] == 0
    assert seen[Status.PASS] > 0.98 * sum(seen.values())
