"""A GPU against its peers: link, BAR1, firmware versions, serial numbers."""

from __future__ import annotations

from typing import Any

import pytest

from hwcheck.engine import Judge
from hwcheck.facts import Fact, Missing, Reason, Snapshot, gpu_at
from hwcheck.findings import Finding
from hwcheck.profiles import ProfileSet

PROFILES = ProfileSet()
GPUS = [gpu_at(f"{bus:02x}:00.0") for bus in range(0x10, 0x18)]


def node(fact: str, *values: Any, names: tuple[str, ...] = ()) -> Snapshot:
    """Make a node of GPUs with these values of one fact; None leaves it out."""
    snapshot = Snapshot()
    for index, (gpu, value) in enumerate(zip(GPUS, values, strict=False)):
        snapshot.put(gpu, "gpu.name", Fact(names[index] if names else "NVIDIA Test"))
        if value is not None:
            snapshot.put(gpu, fact, Fact(value))
    return snapshot


def judged(snapshot: Snapshot, check: str, platform: str = "base") -> list[Finding]:
    """Return the findings of one check that are no skip."""
    findings = Judge(PROFILES.profile(platform)).findings(snapshot)
    return [finding for finding in findings if finding.check == check and finding.status != "skip"]


@pytest.mark.parametrize(
    ("check", "fact", "usual", "low"),
    [
        ("pcie.gpu_gen_peers", "gpu.pcie.gen_max", 5, 4),
        ("pcie.gpu_width_peers", "gpu.pcie.width_max", 16, 8),
        ("pcie.bar1_peers", "gpu.bar1.total", 65536, 256),
    ],
)
def test_a_gpu_below_its_peers_is_named(check: str, fact: str, usual: int, low: int) -> None:
    """What one of eight GPUs has less of warns for that GPU, on a board without figures too."""
    (finding,) = judged(node(fact, *[usual] * 5, low, usual, usual), check)
    assert (finding.status, finding.subject, finding.observed) == ("warn", GPUS[5], low)
    assert judged(node(fact, *[usual] * 8), check) == []


def test_gpus_of_other_models_are_no_peers() -> None:
    """A second model in the node has its own figures."""
    mixed = node("gpu.pcie.gen_max", 5, 4, names=("NVIDIA One", "NVIDIA Other"))
    assert judged(mixed, "pcie.gpu_gen_peers") == []


@pytest.mark.parametrize(
    ("platform", "most", "mode", "status"),
    [
        ("hgx-h100", 5, "None", "pass"),
        ("hgx-h100", 4, "None", "warn"),
        ("hgx-h100", 4, "", "warn"),
        ("hgx-h100", 4, "Pass-Through", "skip"),
        ("hgx-h200", 4, "None", "warn"),
        ("gb200", 5, "None", "pass"),
        ("gb300", 6, "None", "pass"),
        ("gb300", 5, "None", "warn"),
        ("gh200", 4, "None", "skip"),
        ("h100-pcie", 4, "None", "skip"),
        ("base", 4, "None", "skip"),
    ],
)
def test_the_maximum_is_held_against_the_platform(platform: str, most: int, mode: str, status: str) -> None:
    """A slot that fell to Gen4 says Gen4 for its maximum; guests, cards and GH200 have no generation of their own."""
    snapshot = node("gpu.pcie.gen_max", most)
    if mode:
        snapshot.put(GPUS[0], "gpu.virtualization_mode", Fact(mode))
    findings = Judge(PROFILES.profile(platform)).findings(snapshot)
    (finding,) = [one for one in findings if one.check == "pcie.gpu_generation"]
    assert finding.status == status


@pytest.mark.parametrize(
    ("platform", "size", "status"),
    [
        ("hgx-h100", 131072, "pass"),
        ("hgx-h100", 256, "warn"),
        ("hgx-h200", 262144, "pass"),
        ("hgx-h200", 131072, "warn"),
        ("hgx-b200", 262144, "pass"),
        ("gb300", 524288, "pass"),
        ("base", 256, "skip"),
        ("gh200", Missing(Reason.ABSENT, "N/A"), "skip"),
    ],
)
def test_bar1_must_map_the_whole_memory(platform: str, size: Any, status: str) -> None:
    """A BIOS that gave 256 MiB keeps GPUDirect from the memory."""
    findings = Judge(PROFILES.profile(platform)).findings(node("gpu.bar1.total", size))
    (finding,) = [one for one in findings if one.check == "pcie.bar1"]
    assert finding.status == status


def test_one_vbios_unlike_seven_warns() -> None:
    """The GPU that was exchanged is named, with the version of the others."""
    (finding,) = judged(node("gpu.vbios", *["96.00.74.00.01"] * 7, "96.00.99.00.01"), "firmware.gpu_vbios")
    assert (finding.status, finding.subject) == ("warn", GPUS[7])
    assert "96.00.74.00.01" in finding.message
    (finding,) = judged(node("gpu.vbios", *["96.00.74.00.01"] * 8), "firmware.gpu_vbios")
    assert finding.status == "pass"


def test_half_and_half_warns_for_the_node() -> None:
    """Where no version is usual, no GPU is blamed."""
    (finding,) = judged(node("gpu.inforom", *["G520.0200.00.05", "G520.0280.02.02"] * 2), "firmware.gpu_inforom")
    assert finding.status == "warn"
    assert finding.subject.kind == "node"


@pytest.mark.parametrize("odd", ["xx.xx.xx.xx.xx", "00.00.00.00.00", "REDACTED", None, Missing(Reason.ABSENT, "N/A")])
def test_a_redacted_version_is_not_compared(odd: Any) -> None:
    """A placeholder is no other version."""
    findings = judged(node("gpu.vbios", "96.00.74.00.01", "96.00.74.00.01", odd), "firmware.gpu_vbios")
    assert [finding.status for finding in findings] == ["pass"]


def test_a_version_that_was_not_told_keeps_the_check_from_passing() -> None:
    """The GPU that fails to answer may be the one that differs."""
    broken = node("gpu.vbios", "96.00.74.00.01", "96.00.74.00.01", Missing(Reason.FAILED, "Unknown Error"))
    assert [finding.status for finding in judged(broken, "firmware.gpu_vbios")] == ["unknown"]


@pytest.mark.parametrize(
    ("serials", "platform", "notes"),
    [
        (["1650000000001"] * 8, "hgx-h200", 1),
        (["1650000000001"] * 2, "hgx-h200", 1),
        (["1650000000001", "1650000000002"] * 2, "gb200", 0),
        (["1650000000001"] * 4, "gb200", 1),
        (["1650000000001", "1650000000002"] * 2, "base", 0),
        (["0000000000000"] * 8, "hgx-h200", 0),
        (["xxxxxxxxxxxxx"] * 8, "hgx-h200", 0),
        ([f"165000000000{index}" for index in range(8)], "hgx-h200", 0),
    ],
)
def test_a_serial_of_many_gpus_is_remarked(serials: list[str], platform: str, notes: int) -> None:
    """Eight GPUs with one serial number are an edited text; pairs on a GB200 tray and placeholders are not."""
    findings = Judge(PROFILES.profile(platform)).findings(node("gpu.serial", *serials))
    said = [one for one in findings if one.check == "evidence.serials" and one.observed is not None]
    assert [one.status for one in said] == ["skip"] * notes
