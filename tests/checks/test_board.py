"""A board against its own word and its platform's: power limits, bank sums, generic GPU checks of the base layer."""

from typing import Any

import pytest

from hwcheck.engine import Judge
from hwcheck.facts import Fact, Missing, Reason, Snapshot, gpu_at
from hwcheck.findings import Finding
from hwcheck.profiles import ProfileSet

PROFILES = ProfileSet()
GPU = gpu_at("18:00.0")


def _judged(facts: dict[str, Any], check: str, platform: str = "base") -> Finding:
    snapshot = Snapshot()
    for name, value in facts.items():
        snapshot.put(GPU, name, Fact(value))
    (finding,) = [item for item in Judge(PROFILES.profile(platform)).findings(snapshot) if item.check == check]
    return finding


def _power(
    limit: float, default: float, requested: float | None = None, module: float | None = None
) -> dict[str, float]:
    facts = {"gpu.power.limit": limit, "gpu.power.default": default}
    facts |= {} if requested is None else {"gpu.power.requested": requested}
    return facts | ({} if module is None else {"gpu.module_power.limit": module})


@pytest.mark.parametrize(
    ("facts", "status"),
    [
        (_power(700.0, 700.0, 700.0), "pass"),
        (_power(400.0, 310.0, 400.0), "pass"),
        (_power(500.0, 700.0, 500.0), "warn"),
        (_power(500.0, 700.0), "warn"),
        (_power(600.0, 700.0, 700.0), "warn"),
        (_power(700.0, 900.0, 900.0, module=1000.0), "pass"),
        (_power(600.0, 900.0, 600.0, module=1000.0), "warn"),
    ],
)
def test_power_limit_is_judged_by_the_boards_own_default(facts: dict[str, float], status: str) -> None:
    """A lowered limit warns; a Grace module that holds its GPU below what was asked for does not."""
    assert _judged(facts, "power.limit").status == status


def test_power_limit_without_default_is_not_judged() -> None:
    """The nvidia-smi table shows the limit only."""
    assert _judged({"gpu.power.limit": 500.0}, "power.limit").status == "skip"


@pytest.mark.parametrize(
    ("platform", "default", "status"),
    [
        ("hgx-h200", 700.0, "pass"),
        ("hgx-h200", 650.0, "warn"),
        ("h100-nvl", 310.0, "pass"),
        ("h100-nvl", 400.0, "pass"),
        ("h100-nvl", 200.0, "warn"),
        ("hgx-b300", 1100.0, "skip"),
    ],
)
def test_default_power_is_the_products(platform: str, default: float, status: str) -> None:
    """The figure of the platform; where there is none, nothing is said."""
    assert _judged({"gpu.power.default": default}, "power.default", platform).status == status


def _banks(*counts: Any) -> dict[str, Any]:
    names = ("max", "high", "partial", "low", "none")
    return {f"gpu.remap.banks.{name}": count for name, count in zip(names, counts, strict=True)}


@pytest.mark.parametrize(
    ("platform", "counts", "status"),
    [
        ("hgx-h200", (3072, 0, 0, 0, 0), "pass"),
        ("hgx-h200", (3069, 2, 1, 0, 0), "pass"),
        ("hgx-h200", (2560, 0, 0, 0, 0), "fail"),
        ("hgx-h100", (2560, 0, 0, 0, 0), "pass"),
        ("base", (2560, 0, 0, 0, 0), "skip"),
    ],
)
def test_banks_are_judged_by_their_sum(platform: str, counts: tuple[int, ...], status: str) -> None:
    """A remapped row moves a bank within the histogram; a lost stack takes 512 out of the sum."""
    assert _judged(_banks(*counts), "hbm.banks", platform).status == status


def test_a_bank_count_that_is_missing_is_never_a_pass() -> None:
    """N/A (MIG) skips; a count that could not be read makes the sum unknown."""
    absent, garbled = Missing(Reason.ABSENT, "N/A"), Missing(Reason.UNPARSABLE, "3o72")
    assert _judged(_banks(3072, 0, 0, 0, absent), "hbm.banks", "hgx-h200").status == "skip"
    assert _judged(_banks(garbled, 0, 0, 0, 0), "hbm.banks", "hgx-h200").status == "unknown"


@pytest.mark.parametrize(
    ("check", "fact", "good", "bad", "status", "urgency", "word"),
    [
        ("gpu.persistence", "gpu.persistence_mode", True, False, "warn", "maintenance", "persistence"),
        ("gpu.mig", "gpu.mig.mode", False, True, "warn", "maintenance", "mig"),
        ("gpu.mig_pending", "gpu.mig.pending", False, True, "warn", "maintenance", "mig"),
        ("gpu.ecc_mode", "gpu.ecc.mode", True, False, "fail", "maintenance", "ECC"),
        ("gpu.ecc_pending", "gpu.ecc.pending", True, False, "warn", "maintenance", "reset"),
        ("gpu.reset_required", "gpu.reset_required", False, True, "fail", "now", "reset"),
        ("gpu.drain_recommended", "gpu.drain_recommended", False, True, "fail", "job-end", "reset"),
        ("gpu.compute_mode", "gpu.compute_mode", "Default", "Prohibited", "warn", "note", "DEFAULT"),
        ("hbm.total", "gpu.memory.total", 143771, 119809, "fail", "maintenance", "RMA"),
        ("hbm.memory_clock", "gpu.clocks.max_memory", 3201, 2619, "fail", "maintenance", "rmc"),
        ("hbm.memory_clock", "gpu.clocks.max_memory", 3199, 1593, "fail", "maintenance", "rmc"),
        ("hbm.bus_width", "hbm.bus_width", 6144, 5120, "fail", "maintenance", "RMA"),
        ("hbm.remap_pending", "gpu.remap.pending", False, True, "fail", "job-end", "reset"),
        ("hbm.remap_failure", "gpu.remap.failure", False, True, "fail", "now", "RMA"),
        ("hbm.bank_low", "gpu.remap.banks.low", 0, 1, "warn", "note", "replacement"),
        ("hbm.bank_none", "gpu.remap.banks.none", 0, 1, "warn", "maintenance", "RMA"),
        ("hbm.ecc_uncorrected", "gpu.ecc.volatile.uncorrected", 0, 1, "fail", "job-end", "reset"),
        ("hbm.ecc_dram_uncorrected", "gpu.ecc.volatile.dram_uncorrected", 0, 2, "fail", "job-end", "reset"),
        ("hbm.ecc_sram_uncorrected", "gpu.ecc.volatile.sram_uncorrected", 0, 2, "fail", "job-end", "reset"),
        ("hbm.ecc_sram_parity", "gpu.ecc.volatile.sram_parity", 0, 2, "fail", "job-end", "reset"),
        ("hbm.ecc_sram_secded", "gpu.ecc.volatile.sram_secded", 0, 2, "fail", "job-end", "reset"),
        ("hbm.sram_threshold", "gpu.ecc.sram_threshold_exceeded", False, True, "fail", "now", "RMA"),
        ("hbm.channel_repair", "gpu.repair.channel_pending", False, True, "fail", "job-end", "reset"),
        ("hbm.tpc_repair", "gpu.repair.tpc_pending", False, True, "fail", "job-end", "reset"),
        ("hbm.unrepairable", "gpu.repair.unrepairable", False, True, "fail", "now", "RMA"),
        ("hbm.retired_pending", "gpu.retired.pending", False, True, "fail", "job-end", "reset"),
        ("clocks.max_sm", "gpu.clocks.max_sm", 1980, 1590, "warn", "maintenance", "rgc"),
        ("thermal.tlimit", "gpu.temperature.tlimit", 24, 0, "fail", "job-end", "airflow"),
        ("thermal.tlimit", "gpu.temperature.tlimit", 5, 1, "warn", "job-end", "airflow"),
        ("thermal.temperature", "gpu.temperature", 74, 91, "warn", "maintenance", "airflow"),
    ],
)
def test_one_fact_one_verdict(check: str, fact: str, good: Any, bad: Any, status: str, urgency: str, word: str) -> None:
    """Each generic check passes on a healthy value and says how bad the other one is, when to act and what to do."""
    assert _judged({fact: good}, check, "hgx-h200").status == "pass"
    finding = _judged({fact: bad}, check, "hgx-h200")
    assert (finding.status, finding.urgency) == (status, urgency)
    assert finding.remedy is not None
    assert word in finding.remedy.text


@pytest.mark.parametrize("check", ["hbm.total", "hbm.memory_clock", "hbm.bus_width", "clocks.max_sm"])
def test_figures_need_a_platform(check: str) -> None:
    """The generic layer has no figure, so it says nothing rather than something."""
    facts = {"gpu.memory.total": 99999, "gpu.clocks.max_memory": 1, "hbm.bus_width": 1, "gpu.clocks.max_sm": 1}
    assert _judged(facts, check).status == "skip"


@pytest.mark.parametrize("check", ["gpu.persistence", "gpu.ecc_mode", "gpu.ecc_pending", "gpu.compute_mode"])
def test_windows_has_other_rules(check: str) -> None:
    """No persistence mode there, and a workstation board may come with ECC off."""
    facts = {"gpu.driver_model": "TCC", "gpu.persistence_mode": False, "gpu.ecc.mode": False, "gpu.ecc.pending": False}
    assert _judged(facts | {"gpu.compute_mode": "Prohibited"}, check).status == "skip"


def test_the_distance_to_the_limit_replaces_the_temperature() -> None:
    """86 C with 5 C left is judged once, by the better figure."""
    facts = {"gpu.temperature": 86, "gpu.temperature.tlimit": 6}
    assert _judged(facts, "thermal.temperature").status == "skip"
    assert _judged(facts, "thermal.tlimit").status == "pass"


@pytest.mark.parametrize(("platform", "status"), [("gb200", "fail"), ("hgx-b200", "skip")])
def test_c2c_is_asked_of_grace_only(platform: str, status: str) -> None:
    """Disabled is the right answer of a GPU on x86."""
    assert _judged({"gpu.c2c.mode": False}, "c2c.mode", platform).status == status


@pytest.mark.parametrize(("platform", "status"), [("gh200", "warn"), ("hgx-h100", "skip")])
def test_ats_is_asked_of_grace_only(platform: str, status: str) -> None:
    """None and HMM are the right answers of a GPU on x86."""
    assert _judged({"gpu.addressing_mode": "HMM"}, "gpu.addressing", platform).status == status


def test_more_banks_than_the_platform_has_are_doubtful_evidence() -> None:
    """No fault adds banks: the sum is unknown, not failed."""
    assert _judged(_banks(3073, 0, 0, 0, 0), "hbm.banks", "hgx-h200").status == "unknown"
    assert _judged(_banks(3071, 0, 0, 0, 0), "hbm.banks", "hgx-h200").status == "fail"


@pytest.mark.parametrize(
    ("facts", "status"),
    [
        ({"gpu.temperature.memory": 96}, "skip"),
        ({"gpu.temperature.memory": 94, "gpu.temperature.memory_max": 95}, "pass"),
        ({"gpu.temperature.memory": 95, "gpu.temperature.memory_max": 95}, "warn"),
    ],
)
def test_memory_temperature_is_judged_by_the_drivers_own_limit(facts: dict[str, Any], status: str) -> None:
    """Without a limit from the driver the value is told, and not judged."""
    finding = _judged(facts, "thermal.memory")
    assert finding.status == status
    assert str(facts["gpu.temperature.memory"]) in finding.message
