"""
When a figure counts: the conditions of a measurement that must not have been seen false.

A condition that was seen false makes the figure unknown, good or bad, under the condition's name: a good one at half
the clock is as meaningless as a bad one beside another job. One that was not told does not decide, but is said.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

_SHORT_TESTS = frozenset(("launch", "launch.tail", "copy.small", "copy.small.tail"))
"""Tests of microseconds: whoever takes the CPU meanwhile shows in them."""
GPU_TESTS = frozenset(("hbm.copy", "h2d", "d2h", "p2p")) | _SHORT_TESTS
_BOUND_TESTS = frozenset(("h2d", "d2h", "cpu.memory")) | _SHORT_TESTS
"""Tests whose figure depends on the NUMA node they run on."""
_HOST_TESTS = frozenset(("cpu.memory", "os.jitter", "disk.read", "disk.write", "disk.latency", "tcp"))
"""Tests that the CPUs take part in: those must be idle before."""
SAMPLES_LEAST = 5
SPREAD_MOST = 10.0
"""
Percent. Samples with five percent of noise have a MAD of 3.4 %; three times that is no steady state. Tails have none.
"""
BUSY_MOST = 10.0
"""Percent of all CPUs."""
_REACHED = {"memory_clock": 0.97, "sm_clock": 0.85}
"""Share of its maximum that a clock must have. Memory has one clock under load; SM boost gives way by some percent."""
_HELD = ("hw_slowdown", "hw_thermal", "hw_power_brake", "sw_thermal")
"""Reasons that always spoil a figure. The power cap is at work on any loaded GPU and counts where clocks are untold."""


class Doubt(NamedTuple):
    """A condition seen false: its name, and what was seen."""

    name: str
    text: str


def doubts(test: str, on: str, conditions: dict[str, Any]) -> list[Doubt]:
    """
    List the conditions that were seen false, the most telling first.

    Args:
        test: ``h2d``, ``cpu.memory`` ...
        on: what was measured: PCI address, two of them, ``numa0``.
        conditions: ``result.conditions`` of the measurement.
    """
    return [doubt for judge in _JUDGES for doubt in judge(test, on, conditions)]


def untold(test: str, conditions: dict[str, Any]) -> list[str]:
    """Say which conditions nobody told."""
    found = []
    if test in GPU_TESTS:
        if "unwatched" in conditions:
            found.append(f"clocks, throttling, ECC and other processes ({conditions['unwatched']})")
        elif "strangers" not in conditions:
            found.append("other processes on the GPU")
        if "log_unread" in conditions:
            found.append(f"Xids ({conditions['log_unread']})")
    if test in _BOUND_TESTS and "numa_bound" not in conditions:
        why = conditions.get("numa_unknown")
        found.append(f"NUMA binding ({why})" if why else "NUMA binding")
    if (test in _HOST_TESTS and "busy" not in conditions) or (test in _SHORT_TESTS and "runaways" not in conditions):
        found.append("whether the CPUs were idle before")
    if "samples" not in conditions:
        found.append("number of repeats")
    return found


def _clocks(test: str, on: str, conditions: dict[str, Any]) -> list[Doubt]:  # noqa: ARG001 - one form for all
    found = []
    for word, share in _REACHED.items():
        seen, most = conditions.get(word), conditions.get(word + "_max")
        if seen is not None and most and seen < share * most:
            name = "SM" if word == "sm_clock" else "memory"
            found.append(Doubt("clocks", f"clocks were not reached ({name} {seen:g} of {most:g} MHz)"))
    return found


def _throttled(test: str, on: str, conditions: dict[str, Any]) -> list[Doubt]:  # noqa: ARG001 - one form for all
    clocks_told = all(word in conditions and word + "_max" in conditions for word in _REACHED)
    held = [
        reason
        for reason in conditions.get("throttled", ())
        if reason in _HELD or (reason == "sw_power_cap" and not clocks_told)
    ]
    return [Doubt("throttled", f"the GPU was throttled ({', '.join(held)})")] if held else []


def _mig(test: str, on: str, conditions: dict[str, Any]) -> list[Doubt]:  # noqa: ARG001 - one form for all
    return [Doubt("mig", "MIG is on, so a share of the GPU was measured")] if conditions.get("mig") else []


def _strangers(test: str, on: str, conditions: dict[str, Any]) -> list[Doubt]:  # noqa: ARG001 - one form for all
    who = conditions.get("strangers")
    return [Doubt("foreign process", f"another process was on the GPU ({', '.join(who[:3])})")] if who else []


def _errors(test: str, on: str, conditions: dict[str, Any]) -> list[Doubt]:  # noqa: ARG001 - one form for all
    found = []
    if conditions.get("ecc_errors"):
        found.append(Doubt("ecc", f"{conditions['ecc_errors']:g} uncorrected memory errors came meanwhile"))
    if conditions.get("remapped_rows"):
        found.append(Doubt("ecc", f"{conditions['remapped_rows']:g} rows of memory were remapped meanwhile"))
    return found


def _xids(test: str, on: str, conditions: dict[str, Any]) -> list[Doubt]:
    """Count those that name a GPU of this measurement, or none; an NVSwitch's wherever it carries the data."""
    places = [address.partition(".")[0] for address in on.split(">")]
    lines = [
        line
        for line in conditions.get("xids", ())
        if any(place in line.lower() for place in places)
        or "PCI:" not in line
        or ("SXid" in line and test not in ("hbm.copy", "launch"))
    ]
    return [Doubt("xid", f"an Xid came meanwhile ({lines[0][:100]})")] if lines else []


def _binding(test: str, on: str, conditions: dict[str, Any]) -> list[Doubt]:  # noqa: ARG001 - one form for all
    if test not in _BOUND_TESTS or conditions.get("numa_bound") is not False:
        return []
    why = conditions.get("numa_refused", "")
    node = conditions.get("numa_node", "?")
    return [Doubt("numa", f"it was not bound to NUMA node {node}" + (f" ({why})" if why else ""))]


def _idle(test: str, on: str, conditions: dict[str, Any]) -> list[Doubt]:  # noqa: ARG001 - one form for all
    busy, runaways = conditions.get("busy", 0), conditions.get("runaways")
    found = []
    if test in _HOST_TESTS and busy > BUSY_MOST:
        found.append(Doubt("idle", f"the node was not idle before ({busy:g} % of its CPUs worked)"))
    if test in _HOST_TESTS | _SHORT_TESTS and runaways:
        found.append(Doubt("idle", f"a program held a CPU all the time before ({', '.join(runaways[:3])})"))
    return found


def _repeats(test: str, on: str, conditions: dict[str, Any]) -> list[Doubt]:  # noqa: ARG001 - one form for all
    samples, spread = conditions.get("samples"), conditions.get("spread", 0)
    if test == "os.jitter" or test.endswith(".tail"):
        spread = 0
    if samples is not None and samples < SAMPLES_LEAST:
        return [Doubt("samples", f"too few samples ({samples:g})")]
    if spread > SPREAD_MOST:
        return [Doubt("spread", f"the repeats differ too much (MAD {spread:.3g} % of the median)")]
    return []


def _path(test: str, on: str, conditions: dict[str, Any]) -> list[Doubt]:  # noqa: ARG001 - one form for all
    found = []
    if conditions.get("gpudirect") is False:
        found.append(Doubt("gpudirect", "GPUDirect was not used"))
    used, expected = conditions.get("transport"), conditions.get("transport_expected")
    if used and expected and used != expected:
        found.append(Doubt("transport", f"it went over {used}, not over {expected}"))
    return found


_JUDGES: tuple[Callable[[str, str, dict[str, Any]], list[Doubt]], ...] = (
    _mig, _strangers, _errors, _xids, _throttled, _clocks, _binding, _idle, _path, _repeats,
)  # fmt: skip
