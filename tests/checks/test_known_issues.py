"""The dated list of known issues: loads, names its sources, and warns only where everything it needs is known."""

from typing import Any

import pytest

from hwcheck.engine import Judge
from hwcheck.facts import NODE, Fact, Snapshot, gpu_at
from hwcheck.findings import Finding, Urgency
from hwcheck.knowledge.known_issues import known_issues
from hwcheck.profiles import ProfileSet

JUDGE = Judge(ProfileSet().profile("base"), only=["driver"])
DAY = 86400.0


def _judged(check: str, driver: str, gpu: str, vbios: str = "", uptime: float | None = None) -> list[Finding]:
    snapshot = Snapshot()
    snapshot.put(NODE, "driver.version", Fact(driver))
    if uptime is not None:
        snapshot.put(NODE, "kernel.uptime", Fact(uptime))
    for address in ("01:00.0", "02:00.0"):
        snapshot.put(gpu_at(address), "gpu.name", Fact(gpu))
        if vbios:
            snapshot.put(gpu_at(address), "gpu.vbios", Fact(vbios))
    return [finding for finding in JUDGE.findings(snapshot) if finding.check == check]


def test_every_entry_is_dated_and_sourced() -> None:
    """An issue without a source is a rumour."""
    issues = known_issues()
    assert len({issue.id for issue in issues}) == len(issues)
    for issue in issues:
        assert len(issue.since.split("-")) == 3, issue.id
        assert issue.source, issue.id
        assert issue.confidence in ("A", "B", "C"), issue.id
        assert Urgency(issue.urgency), issue.id
        assert len(issue.remedy) > 20, issue.id


@pytest.mark.parametrize(
    ("driver", "gpu", "uptime", "status"),
    [
        ("580.105.08", "NVIDIA B200", 67 * DAY, "warn"),
        ("570.133.20", "NVIDIA B200", 61 * DAY, "warn"),
        ("570.133.20", "NVIDIA B200", 3 * DAY, "pass"),
        ("580.105.08", "NVIDIA B200", None, "skip"),
        ("595.58.03", "NVIDIA B200", 67 * DAY, "pass"),
        ("580.105.08", "NVIDIA GB200", 67 * DAY, "pass"),
        ("580.105.08", "NVIDIA H200", 67 * DAY, "pass"),
    ],
)
def test_the_hang_after_66_days_needs_driver_gpu_and_uptime(driver: str, gpu: str, uptime: Any, status: str) -> None:
    """Without the uptime the issue is named and skipped: a healthy node must not warn."""
    (finding,) = _judged("driver.known_issues", driver, gpu, uptime=uptime)
    assert finding.status == status
    if status != "pass":
        assert "66 days" in finding.message


def test_a_warning_names_source_and_way_out() -> None:
    """The reader can look it up, and knows what to do."""
    (finding,) = _judged("driver.known_issues", "580.105.08", "NVIDIA B200", uptime=67 * DAY)
    assert "issue 971" in finding.message
    assert finding.urgency == "maintenance"
    assert finding.remedy is not None
    assert "reboot" in finding.remedy.text


def test_one_exact_version() -> None:
    """An entry for one version leaves its neighbours alone."""
    (finding,) = _judged("driver.known_issues", "470.57.02", "NVIDIA A100-SXM4-80GB")
    assert finding.status == "warn"
    (finding,) = _judged("driver.known_issues", "470.57.03", "NVIDIA A100-SXM4-80GB")
    assert finding.status == "pass"


@pytest.mark.parametrize(
    ("driver", "gpu", "vbios", "warnings"),
    [
        ("580.65.06", "NVIDIA GB200", "97.00.8F.00.69", 2),
        ("580.65.06", "NVIDIA GB200", "97.00.90.00.00", 0),
        ("580.65.06", "NVIDIA GB200", "97.00.B9.00.69", 0),
        ("580.65.06", "NVIDIA B200", "97.00.8F.00.69", 0),
        ("610.10.01", "NVIDIA H200", "96.00.5F.00.01", 2),
        ("590.48.01", "NVIDIA H200", "96.00.5F.00.01", 0),
        ("580.65.06", "NVIDIA GB200", "not a version", 0),
    ],
)
def test_vbios_versions_are_hexadecimal(driver: str, gpu: str, vbios: str, warnings: int) -> None:
    """B9 is newer than 90; each GPU is judged by its own firmware."""
    findings = _judged("driver.known_vbios_issues", driver, gpu, vbios)
    assert [finding.status for finding in findings] == ["warn"] * warnings


@pytest.mark.parametrize(
    ("platform", "driver", "status"),
    [
        ("hgx-h200", "550.90.07", "pass"),
        ("hgx-h200", "535.86.10", "warn"),
        ("hgx-h200", "590.48.01", "pass"),
        ("hgx-b200", "570.86.15", "warn"),
        ("hgx-b200", "570.133.20", "pass"),
        ("hgx-h200", "550.x", "unknown"),
        ("base", "418.40.04", "skip"),
    ],
)
def test_the_driver_must_know_the_board(platform: str, driver: str, status: str) -> None:
    """Versions are compared part by part; 535.86.10 never supported H200."""
    snapshot = Snapshot()
    snapshot.put(NODE, "driver.version", Fact(driver))
    findings = Judge(ProfileSet().profile(platform), only=["driver"]).findings(snapshot)
    assert [finding.status for finding in findings if finding.check == "driver.minimum"] == [status]
