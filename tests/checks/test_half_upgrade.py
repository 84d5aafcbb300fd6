"""A driver is reloaded where what is installed is whole, and not where an upgrade stopped half-way."""

from __future__ import annotations

import pytest

from hwcheck.engine import Judge
from hwcheck.facts import NODE, Fact, Snapshot
from hwcheck.findings import Finding
from hwcheck.profiles import ProfileSet

OLD, NEW = "580.95.05", "580.105.08"


def judge(check: str, module_file: str, libraries: str, manager: str = "") -> Finding:
    """Judge a node where the old driver is loaded."""
    snapshot = Snapshot()
    if manager:
        snapshot.put(NODE, "driver.fabric_manager.version", Fact(manager))
    records = tuple({"name": name, "version": libraries} for name in ("libnvidia-ml", "libcuda"))
    for name, value in (
        ("driver.module_version", OLD), ("driver.module_installed", module_file), ("driver.libraries", records),
    ):  # fmt: skip
        snapshot.put(NODE, name, Fact(value))
    findings = Judge(ProfileSet().profile("base"), ["driver"]).findings(snapshot)
    return next(finding for finding in findings if finding.check == check)


@pytest.mark.parametrize("check", ["driver.next_load", "driver.libraries"])
def test_a_whole_upgrade_is_finished_by_a_reload(check: str) -> None:
    """Module file and libraries are new, and the old module is still loaded."""
    remedy = judge(check, NEW, NEW).remedy
    assert remedy is not None
    assert [act.do for act in remedy.acts] == ["reload_driver"]


@pytest.mark.parametrize(("check", "module_file", "libraries"), [
    ("driver.next_load", NEW, OLD), ("driver.libraries", OLD, NEW),
])  # fmt: skip
def test_half_an_upgrade_is_for_hands(check: str, module_file: str, libraries: str) -> None:
    """A reload would break a node that works."""
    remedy = judge(check, module_file, libraries).remedy
    assert remedy is not None
    assert remedy.kind == "hands"
    assert remedy.acts == ()


def test_a_fabric_manager_that_stayed_behind_is_half_an_upgrade_too() -> None:
    """With the new module it would not start, and no GPU would join the fabric."""
    remedy = judge("driver.next_load", NEW, NEW, manager=OLD).remedy
    assert remedy is not None
    assert remedy.kind == "hands"
    assert f"fabric manager {OLD}" in remedy.text
