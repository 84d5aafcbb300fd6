"""Checks on what the node is: profile, one model, Windows, and whether all GPUs are there."""

from collections.abc import Iterable
from typing import Any

import pytest

from hwcheck.engine import Judge
from hwcheck.facts import NODE, Fact, Missing, Reason, Snapshot, gpu_at
from hwcheck.findings import Finding
from hwcheck.profiles import ProfileSet

PROFILES = ProfileSet()


def _judged(snapshot: Snapshot, check: str, platform: str = "base") -> list[Finding]:
    return [finding for finding in Judge(PROFILES.profile(platform)).findings(snapshot) if finding.check == check]


def _node(facts: dict[str, Any], gpus: Iterable[dict[str, Any]] = ()) -> Snapshot:
    snapshot = Snapshot()
    for name, value in facts.items():
        snapshot.put(NODE, name, Fact(value))
    for number, of_gpu in enumerate(gpus):
        for name, value in of_gpu.items():
            snapshot.put(gpu_at(f"{number + 1:02x}:00.0"), name, Fact(value))
    return snapshot


def _identity(**changes: Any) -> dict[str, Any]:
    record = {
        "platform": "hgx-h200",
        "confidence": "pci-id",
        "basis": "PCI ids",
        "models": ("NVIDIA H200",),
        "mixed": False,
    }
    return {"platform.identity": {**record, **changes}}


def test_a_recognised_platform_passes_and_is_named() -> None:
    """The report says by which figures the node was judged, and how it was recognised."""
    (finding,) = _judged(_node(_identity()), "platform.profile")
    assert finding.status == "pass"
    assert "hgx-h200" in finding.message


def test_a_generic_platform_is_skipped_with_the_reason() -> None:
    """An unknown board is no fault of the node."""
    record = _identity(platform="base", confidence="none", basis="no platform profile for NVIDIA H20")
    (finding,) = _judged(_node(record), "platform.profile")
    assert finding.status == "skip"
    assert "NVIDIA H20" in finding.message


def test_mixed_models_warn_and_one_model_says_nothing() -> None:
    """Different models have no common baseline."""
    models = ("NVIDIA H100 PCIe", "NVIDIA L40S")
    (finding,) = _judged(_node(_identity(mixed=True, models=models)), "platform.mixed")
    assert finding.status == "warn"
    assert "L40S" in finding.message
    assert _judged(_node(_identity()), "platform.mixed") == []


def test_a_windows_driver_model_warns() -> None:
    """TCC and WDDM are words of Windows only."""
    snapshot = _node({}, [{"gpu.driver_model": "TCC"}, {"gpu.driver_model": "WDDM"}])
    (finding,) = _judged(snapshot, "platform.windows")
    assert finding.status == "warn"
    assert "Windows" in finding.message
    assert "TCC, WDDM" in finding.message


def test_linux_is_no_finding_but_a_skip() -> None:
    """N/A in the driver model is how Linux answers."""
    snapshot = Snapshot()
    snapshot.put(gpu_at("01:00.0"), "gpu.driver_model", Fact(Missing(Reason.ABSENT, "N/A")))
    assert [finding.status for finding in _judged(snapshot, "platform.windows")] == ["skip"]


@pytest.mark.parametrize(("listed", "status"), [(8, "pass"), (1, "skip"), (7, "skip")])
def test_an_excerpt_is_no_missing_gpu(listed: int, status: str) -> None:
    """Fewer blocks than attached GPUs: somebody cut the text."""
    (finding,) = _judged(_node({"gpu.attached_count": 8, "gpu.listed_count": listed}), "gpu.count_matches")
    assert finding.status == status
    assert "missing" not in finding.message


@pytest.mark.parametrize(
    ("platform", "attached", "mode", "status"),
    [
        ("hgx-h200", 8, "None", "pass"),
        ("hgx-h200", 7, "None", "fail"),
        ("hgx-h200", 7, "Pass-Through", "warn"),
        ("hgx-h200", 1, "None", "skip"),
        ("hgx-h200", 4, "Pass-Through", "skip"),
        ("gb200", 4, "None", "pass"),
        ("gb200", 3, "None", "fail"),
        ("h100-pcie", 3, "None", "skip"),
        ("base", 5, "None", "skip"),
    ],
)
def test_seven_of_eight_is_a_fault_and_one_of_eight_is_a_job(
    platform: str, attached: int, mode: str, status: str
) -> None:
    """Guests and jobs are given 1, 2 or 4 GPUs; odd counts on bare metal mean that a GPU is gone."""
    gpus = [{"gpu.virtualization_mode": mode}] * attached
    (finding,) = _judged(_node({"gpu.attached_count": attached}, gpus), "gpu.count", platform)
    assert finding.status == status


@pytest.mark.parametrize(
    ("changes", "attached", "status"),
    [
        ({}, 4, "warn"),
        ({}, 2, "warn"),
        ({}, 1, "skip"),
        ({"platform.container": True}, 4, "skip"),
        ({"platform.virtualization": "kvm"}, 4, "skip"),
        ({"evidence.collected": False}, 4, "skip"),
    ],
)
def test_half_a_board_is_told_where_nobody_hands_out_parts(changes: dict[str, Any], attached: int, status: str) -> None:
    """A machine that was read itself, and lost half of its GPUs, is not taken for a guest."""
    machine = {"evidence.collected": True, "platform.virtualization": "none", "platform.container": False}
    snapshot = _node({**machine, **changes, "gpu.attached_count": attached}, [{"gpu.virtualization_mode": "None"}])
    (finding,) = _judged(snapshot, "gpu.count", "hgx-h200")
    assert finding.status == status


@pytest.mark.parametrize(("boot", "statuses"), [({"evidence.boot_id": "b"}, ["unknown"]), ({}, [])])
def test_an_image_need_not_show_gpus(boot: dict[str, Any], statuses: list[str]) -> None:
    """It has no boot and no bus; a node that runs and shows none stays unknown."""
    record = _identity(platform="base", confidence="none", basis="nothing", models=())
    snapshot = _node({**record, "evidence.collected": True, "evidence.taken": 1.0, **boot})
    told = [finding.status for finding in _judged(snapshot, "platform.gpus")]
    assert [status for status in told if status != "skip"] == statuses
