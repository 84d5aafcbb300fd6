"""The fixes that checks declare: each has one or says why not, and all of it is of known words."""

from __future__ import annotations

import pytest

from hwcheck.checks import RELATIONS
from hwcheck.checks.expected import remedy_of
from hwcheck.facts import NAMES
from hwcheck.findings import Remedy
from hwcheck.mechanisms import DEEDS, MECHANISMS
from hwcheck.profiles import ProfileSet
from hwcheck.profiles.remedies import listed

SHIPPED = ProfileSet()
ENTRIES = {
    f"{layer}: {id}": entry.data
    for layer in sorted(SHIPPED.platforms)
    for id, entry in SHIPPED.profile(layer).checks.items()
    if entry.data.get("remedy")
}
REMEDIES: dict[str, Remedy] = {id: one.remedy for id, one in RELATIONS.items() if one.remedy is not None}
SAFE = {
    "sysctl", "attribute", "gpu", "unit", "unit_property", "limits", "module_load", "chrony", "kernel_argument",
}  # fmt: skip
"""Mechanisms that may be written without anybody asking; registers, fabric settings and interrupts never are."""
SAFE_ARGUMENTS = {"pcie_aspm.policy"}
SAFE_GPU = {"persistence"}


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_a_setting_writes_or_says_why_not(name: str) -> None:
    """What calls itself a write declares one, or a reason for leaving it to a person."""
    remedy = ENTRIES[name]["remedy"]
    assert remedy["kind"] != "write" or listed(remedy, "write") or remedy.get("by_hand"), name
    assert remedy["kind"] != "hands" or not (listed(remedy, "write") or listed(remedy, "act")), name


@pytest.mark.parametrize("id", sorted(REMEDIES))
def test_a_relation_writes_or_says_why_not(id: str) -> None:
    """As for settings; what depends on the values is told in words."""
    remedy = REMEDIES[id]
    assert remedy.kind != "write" or remedy.writes or remedy.worked_out or remedy.by_hand
    assert remedy.kind != "hands" or not (remedy.writes or remedy.acts)


def test_mechanisms_and_acts_are_known() -> None:
    """A word that no writer knows would only show on a node."""
    remedies = [*REMEDIES.values(), *filter(None, map(remedy_of, ENTRIES.values()))]
    assert {write.mechanism for remedy in remedies for write in remedy.writes} <= set(MECHANISMS)
    assert {act.do for remedy in remedies for act in remedy.acts} <= set(DEEDS)
    assert {write.refused_by for remedy in remedies for write in remedy.writes} - {""} <= set(NAMES)
    assert all(mechanism.phase in ("persist", "volatile") for mechanism in MECHANISMS.values())


def test_what_is_risky_is_opt_in() -> None:
    """The decision table: registers, fabric settings, interrupts, kernel arguments and clocks only on request."""
    told = [(name, write) for name, remedy in REMEDIES.items() for write in remedy.writes]
    told += [
        (name, write)
        for name, data in ENTRIES.items()
        for write in (remedy_of({**data, "expect": data.get("expect") or {"equals": "x"}}) or Remedy("", "")).writes
    ]
    risky = [
        (name, write.mechanism, write.key)
        for name, write in told
        if not write.opt_in
        and (
            write.mechanism not in SAFE
            or (write.mechanism == "kernel_argument" and write.key not in SAFE_ARGUMENTS)
            or (write.mechanism == "gpu" and write.key not in SAFE_GPU)
        )
    ]
    assert risky == []


@pytest.mark.parametrize("fact", ["memory.thp", "sysctl.zone_reclaim_mode", "sysctl.swappiness", "cpu.smt"])
def test_what_is_only_reported_has_no_write(fact: str) -> None:
    """Contested settings are told and never changed, not even where a site judges them."""
    entry = SHIPPED.profile("hgx-h200").checks[fact].data
    assert not listed(entry.get("remedy") or {}, "write")


def test_aspm_is_never_forced() -> None:
    """pcie_aspm=force can hang a machine, pcie_aspm=off leaves links as they are: neither is ever written."""
    keys = {write.key for name, data in ENTRIES.items() for write in (remedy_of(data) or Remedy("", "")).writes}
    assert "pcie_aspm" not in keys
    assert "pcie_aspm.policy" in keys
