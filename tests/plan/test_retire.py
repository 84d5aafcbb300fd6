"""What hwcheck wrote earlier and no check wants any more is retired; nothing else is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hwcheck.findings import NodeVerdict, Write
from hwcheck.plan import NodePlan, plan_node
from hwcheck.profiles import ProfileSet
from tests.plan.made import H200, finding, plan, snapshot

NUMA = ("sysctl", "kernel.numa_balancing", "sysctl.numa_balancing")


def held(*keys: tuple[str, str, str]) -> Any:
    """Make the facts of a node whose files hold these: mechanism, key, check."""
    records = [{"mechanism": one, "key": key, "check": check, "line": f"{key} = 7"} for one, key, check in keys]
    return snapshot(("settings.held", tuple(records)))


def site(tmp_path: Path, text: str) -> Any:
    """Return the H200 profile with a site layer of these checks."""
    layer = tmp_path / "site.yaml"
    layer.write_text(f"name: our-site\nchecks:\n{text}", encoding="utf-8")
    return ProfileSet([layer]).profile("hgx-h200")


def planned(facts: Any, profile: Any = H200, only: tuple[str, ...] = ()) -> NodePlan:
    """Plan a node that has no findings."""
    return plan_node(NodeVerdict("gpu-001", "hgx-h200", "pci-id", []), facts, profile, (), only)


def test_what_no_check_wants_is_retired() -> None:
    """A check of a site layer that is gone: its key goes, nothing is disturbed, and the line that goes is told."""
    (step,) = planned(held(("sysctl", "vm.swappiness", "sysctl.ours"))).steps
    assert (step.id, step.mechanism, step.key, step.value) == ("sysctl.ours", "sysctl", "vm.swappiness", "absent")
    assert (step.retires, step.disturbs) == (True, "nothing")
    assert "'vm.swappiness = 7'" in step.text


@pytest.mark.parametrize(
    "key",
    [
        NUMA,
        ("sysctl", "kernel.numa_balancing", "sysctl.gone"),
        ("attribute", "/sys/module/pcie_aspm/parameters/policy", "pcie.gone"),
        ("package_hold", "nvidia-driver", "driver.held"),
        ("unit_property", "openibd.service ExecStartPost", "kernel.peermem"),
    ],
    ids=["its own check", "another check", "a relation", "worked out", "kept beside a module"],
)
def test_what_a_check_wants_stays(key: tuple[str, str, str]) -> None:
    """Whether it is right or wrong now; also where only the check can tell what it writes."""
    assert planned(held(key)).steps == ()


def test_what_a_role_wrote_is_its_playbooks() -> None:
    """Its ids have no family of a check; a mechanism or key that nobody knows is left alone too."""
    facts = held(("sysctl", "vm.swappiness", "rdma_sysctl.values"), ("magic", "x", "sysctl.x"), ("gpu", "x", "gpu.x"))
    assert planned(facts).steps == ()


def test_only_families_that_are_planned_for_are_retired() -> None:
    """``--only rdma`` says nothing about parameters of the kernel."""
    facts = held(("sysctl", "vm.swappiness", "sysctl.ours"))
    assert planned(facts, only=("rdma",)).steps == ()
    assert len(planned(facts, only=("sysctl",)).steps) == 1


def test_a_check_that_is_taken_out_by_the_site_leaves_its_key(tmp_path: Path) -> None:
    """``null`` in a later layer deletes the check; what it had written goes."""
    facts = held(NUMA)
    (step,) = planned(facts, site(tmp_path, "  sysctl.numa_balancing: null\n")).steps
    assert (step.id, step.key, step.value) == ("sysctl.numa_balancing", "kernel.numa_balancing", "absent")


def test_a_key_of_a_subject_is_retired_for_it() -> None:
    """A clock lock that nobody wants any more: the plan names the GPU and the key apart, as a step that sets it."""
    (step,) = planned(held(("gpu", "0000:18:00.0 memory_clocks", "clocks.ours"))).steps
    assert (step.subject, step.key) == ("0000:18:00.0", "memory_clocks")


def test_of_an_argument_that_may_stand_twice_only_the_unwanted_word_goes(tmp_path: Path) -> None:
    """pci=noaer is wanted by the site, pci=realloc=off no longer."""
    checks = """
  kernel.noaer:
    fact: kernel.release
    title: Kernel
    expect: {one_of: [x]}
    severity: warn
    urgency: note
    remedy:
      kind: write
      text: Add the argument.
      write: {mechanism: kernel_argument, key: pci, value: noaer, indirect: true}
    why: An example.
    source: an example
"""
    words = ("pci=noaer", "pci=realloc=off")
    facts = held(*(("kernel_argument", word, "kernel.noaer") for word in words))
    assert [one.key for one in planned(facts, site(tmp_path, checks)).steps] == ["pci=realloc=off"]


def test_what_is_set_anew_is_not_retired() -> None:
    """A finding of this plan wants the key, whatever the profile says of it."""
    facts = held(("sysctl", "vm.swappiness", "sysctl.ours"))
    wanted = finding("sysctl.new", writes=(Write("sysctl", "vm.swappiness", "10"),))
    assert [(one.id, one.value) for one in plan(wanted, facts=facts).steps] == [("sysctl.new", "10")]
