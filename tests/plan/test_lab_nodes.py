"""Plans of lab nodes that were read as any node is: a healthy one has nothing to do, a broken one what mends it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hwcheck.lab import nodes
from hwcheck.parse import take_snapshot
from hwcheck.pipeline import Pipeline
from hwcheck.plan import NodePlan, plan_node
from hwcheck.profiles import ProfileSet
from tests.lab.lab_node import evidence_from

PROFILES = ProfileSet()
ASPM = "/sys/module/pcie_aspm/parameters/policy"
GOVERNOR = "/sys/devices/system/cpu/cpufreq/policy*/scaling_governor"


def planned(home: Path, platform: str, *faults: str, asked: tuple[str, ...] = ()) -> NodePlan:
    """Read and plan a lab node with these faults."""
    node, _ = nodes.up(home, "gpu-001", platform, list(faults))
    snapshot = take_snapshot(evidence_from(node))
    pipeline = Pipeline(PROFILES)
    verdict = pipeline.judge_snapshot(snapshot)
    return plan_node(verdict, snapshot, PROFILES.profile(verdict.platform), asked)


@pytest.mark.parametrize("platform", ["hgx-h100", "hgx-h200", "hgx-b200", "gb200"])
def test_a_healthy_node_has_nothing_to_do(platform: str, tmp_path: Path) -> None:
    """Nothing is written, done, or left out."""
    made = planned(tmp_path, platform)
    assert (made.steps, made.acts, made.reboot, made.hands, made.refused) == ((), (), (), (), "")
    assert made.boot_id
    assert "unknown" not in made.cohort


@pytest.mark.parametrize(
    ("fault", "steps"),
    [
        ("numa-balancing", [("sysctl", "kernel.numa_balancing", "0")]),
        ("governor-powersave", [("attribute", GOVERNOR, "performance")]),
        ("login-memlock", [("limits", "* memlock", "unlimited")]),
        ("memlock-64k", [("unit_property", "slurmd.service LimitMEMLOCK", "infinity")]),
        ("aspm-on", [("kernel_argument", "pcie_aspm.policy", "performance"), ("attribute", ASPM, "performance")]),
        ("aspm-kept-by-firmware", []),
        ("fabric-manager-down", [("unit", "nvidia-fabricmanager.service", "running")]),
        ("mrrs-512", []),
        ("acs-on", []),
    ],
)
def test_a_fault_that_software_can_mend_is_planned(
    fault: str, steps: list[tuple[str, str, str]], tmp_path: Path
) -> None:
    """Exactly what mends it; what is risky or refused is left out."""
    made = planned(tmp_path, "hgx-h200", fault)
    assert [(step.mechanism, step.key, step.value) for step in made.steps] == steps
    assert steps or made.left_out


def test_persistence_is_set_now_and_kept(tmp_path: Path) -> None:
    """On each GPU, and in the unit of the daemon; the unit runs already and is not touched."""
    steps = planned(tmp_path, "hgx-h200", "persistence-off").steps
    assert [step.mechanism for step in steps] == ["unit_property", *["gpu"] * 8]
    assert steps[-1].seen == {"running": "0", "next boot": None}


@pytest.mark.parametrize(
    ("fault", "asked", "step"),
    [
        ("mrrs-512", "pcie.max_read_request", ("pci_bits", "max_read_request", "4096")),
        ("acs-on", "pcie.acs", ("pci_bits", "acs_redirect", "off")),
        ("clock-lock", "clocks", ("gpu", "graphics_clocks", "reset")),
        ("power-cap", "power", ("gpu", "power_limit", "default")),
        ("irqs-far", "numa", ("irq_affinity", "interrupts", "0-31,64-95")),
        ("arguments-lost", "kernel", ("kernel_argument", "iommu", "pt")),
    ],
)
def test_what_is_opt_in_is_planned_when_asked_for(
    fault: str, asked: str, step: tuple[str, str, str], tmp_path: Path
) -> None:
    """The subjects are those that the check named, bridges included."""
    made = planned(tmp_path, "hgx-h200", fault, asked=(asked,))
    assert step in [(one.mechanism, one.key, one.value) for one in made.steps]
    assert all(one.opt_in for one in made.steps)
    assert not made.reboot
    if fault == "acs-on":
        assert len({one.subject for one in made.steps}) == len(made.steps) > 1


def test_an_upgrade_that_was_not_finished_asks_for_the_driver(tmp_path: Path) -> None:
    """The loaded module is not the installed one: reloading it disturbs the node, so it is asked for."""
    assert planned(tmp_path / "a", "hgx-h200", "library-mismatch").acts == ()
    (act,) = planned(tmp_path / "b", "hgx-h200", "library-mismatch", asked=("driver",)).acts
    assert (act.do, act.target, act.disturbs) == ("reload_driver", "nvidia", "node")


def test_half_an_upgrade_is_no_reason_for_a_reload(tmp_path: Path) -> None:
    """The module file is of another version than the libraries: a reload would break the node, whoever asks for it."""
    plan = planned(tmp_path, "hgx-h200", "stale-module", asked=("driver",))
    assert plan.acts == ()
    assert "driver.next_load" in [one.id for one in plan.hands]


def test_what_no_rollback_brings_back_is_listed_before_consent(tmp_path: Path) -> None:
    """NVML does not tell the lock that somebody left, so a reset of it cannot be undone."""
    plan = planned(tmp_path, "hgx-h200", "clock-lock", asked=("clocks",))
    assert plan.irreversible
    assert set(plan.irreversible) == {"gpu graphics_clocks"}
