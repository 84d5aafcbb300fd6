"""CPU, memory, clocks and storage, judged by the layers that hold their bounds and settings."""

from __future__ import annotations

from typing import Any

import pytest

from hwcheck.engine import Judge
from hwcheck.facts import NAMES, NODE, Facet, Fact, Snapshot, Subject
from hwcheck.findings import Finding
from hwcheck.profiles import Profile, ProfileSet
from hwcheck.profiles.layers import Entry

PARTS = [ProfileSet().profile(name) for name in ("base-host", "base-cpu", "base-time", "base-storage")]
CHECKS = {id: entry for part in PARTS for id, entry in part.checks.items()}
BOUNDS = {id: entry for part in PARTS for id, entry in part.bounds.items()}
IDS = {"gpu": "0000:18:00.0", "nic": "mlx5_0", "disk": "nvme0", "mount": "/", "unit": "chronyd.service", "numa": "0"}

Facts = dict[str, Any]


def snapshot_of(facts: Facts, subject: str = "") -> Snapshot:
    """Make a snapshot; a name may carry a facet behind ``@``, and a subject in front of ``:``."""
    snapshot = Snapshot()
    for key, value in facts.items():
        about, _, rest = key.rpartition(":")
        name, _, facet = rest.partition("@")
        kind = NAMES[name].scope
        one = NODE if kind == "node" else Subject(kind, about or subject or IDS[kind])
        snapshot.put(one, name, Fact(value), Facet(facet or "running"))
    return snapshot


def judged(check: str, facts: Facts, *, before: Facts | None = None, subject: str = "", **bounds: Any) -> Finding:
    """Return the finding of one check over these facts."""
    figures = BOUNDS | {id.replace("__", "."): Entry(id, {"value": value}, {}) for id, value in bounds.items()}
    judge = Judge(Profile("base", "", ("base",), CHECKS, figures, ""))
    judge.checks = [known for known in judge.checks if known.id == check]
    earlier = snapshot_of(before, subject) if before is not None else None
    (finding,) = (f for f in judge.findings(snapshot_of(facts, subject), earlier) if f.check == check)
    return finding


G = "cpu.governor"


@pytest.mark.parametrize(
    ("facts", "status", "words"),
    [
        ({G: "performance"}, "pass", "performance"),
        ({G: "powersave"}, "warn", "powersave, expected performance"),
        ({G: "performance, powersave"}, "warn", "expected performance"),
        ({G: "powersave", f"{G}@effective": "performance"}, "pass", "performance"),
        ({}, "skip", "not collected"),
        ({G: "performance", f"{G}@next boot": "schedutil"}, "warn", "after a reboot"),
    ],
)
def test_governor(facts: Facts, status: str, words: str) -> None:
    """Governor and preference are judged as a pair; a guest without one is skipped."""
    finding = judged(G, facts)
    assert finding.status == status
    assert words in finding.message
    assert status != "warn" or (finding.remedy is not None and finding.remedy.role == "cpu_power")


def test_preference_is_said_once() -> None:
    """With another governor than performance the governor alone is reported."""
    assert judged("cpu.epp", {G: "powersave", "cpu.epp": "balance_performance"}).status == "skip"
    assert judged("cpu.epp", {G: "performance", "cpu.epp": "balance_performance"}).status == "warn"
    assert judged("cpu.epp", {G: "performance", "cpu.epp": "performance"}).status == "pass"


@pytest.mark.parametrize(
    ("check", "fact", "value"),
    [
        ("cpu.smt", "cpu.smt", "off"),
        ("cpu.turbo", "cpu.turbo", False),
        ("cpu.idle_latency", "cpu.idle.latency", 290),
        ("memory.thp", "memory.thp", "never"),
        ("memory.page_size", "memory.page_size", 64),
        ("memory.swap", "memory.swap", 8192),
    ],
)
def test_contested_settings_are_reported_only(check: str, fact: str, value: Any) -> None:
    """What operators disagree on is shown with its value and never judged."""
    finding = judged(check, {fact: value})
    assert (finding.status, finding.observed) == ("skip", value)


def irqs(total: int, near: int) -> Facts:
    """Make the interrupts of one device."""
    return {"rdma.device.irqs": {"total": total, "near": near, "far": total - near, "cpus": "0-31"}}


@pytest.mark.parametrize(
    ("total", "near", "bounds", "status"),
    [
        (64, 64, {}, "pass"),
        (64, 32, {}, "skip"),
        (64, 0, {}, "warn"),
        (64, 32, {"numa__irqs_near": 90}, "warn"),
        (64, 60, {"numa__irqs_near": 90}, "pass"),
    ],
)
def test_interrupts(total: int, near: int, bounds: Facts, status: str) -> None:
    """All on the wrong socket is wrong; a spread over both is the driver's own and judged by the site's share."""
    assert judged("numa.irqs", irqs(total, near), **bounds).status == status


CE, UE, SECONDS, MODULES = (f"memory.edac.{name}" for name in ("corrected", "uncorrected", "seconds", "modules"))


def test_uncorrected_errors_fail_with_the_module() -> None:
    """The module is what a technician needs."""
    module = {"name": "CPU1_DIMM_A1", "corrected": 3, "uncorrected": 2}
    finding = judged("memory.uncorrected", {UE: 2, MODULES: (module,)})
    assert (finding.status, finding.urgency) == ("fail", "now")
    assert "CPU1_DIMM_A1 (2)" in finding.message
    assert judged("memory.uncorrected", {UE: 0}).status == "pass"


@pytest.mark.parametrize(
    ("facts", "before", "status"),
    [
        ({CE: 0}, None, "pass"),
        ({CE: 40, SECONDS: 3600}, None, "pass"),
        ({CE: 60, SECONDS: 3600}, None, "warn"),
        ({CE: 900, SECONDS: 86400 * 30}, None, "pass"),
        ({CE: 900, SECONDS: 86400 * 30}, {CE: 100, SECONDS: 86400 * 29}, "warn"),
        ({CE: 900, SECONDS: 86400 * 3}, {CE: 890, SECONDS: 86400 * 2}, "pass"),
        ({CE: 900, SECONDS: 86400 * 3}, {CE: 2000, SECONDS: 86400 * 9}, "warn"),
        ({CE: 5}, None, "skip"),
    ],
)
def test_corrected_errors_are_judged_by_their_rate(facts: Facts, before: Facts | None, status: str) -> None:
    """Growth since the last look counts, or the whole time; a counter that began anew is not compared."""
    assert judged("memory.corrected", facts, before=before).status == status


def test_pages_out_of_use_warn() -> None:
    """They come back with the next boot, the defect too."""
    assert judged("memory.pages", {"memory.corrupted": 4}).status == "warn"
    assert judged("memory.pages", {"memory.corrupted": 0}).status == "pass"


T = "memory.total"


@pytest.mark.parametrize(
    ("facts", "before", "status"),
    [
        ({T: 2_000_000}, None, "skip"),
        ({T: 1_990_000}, {T: 2_000_000}, "pass"),
        ({T: 1_900_000}, {T: 2_000_000}, "fail"),
        ({T: 1_900_000, "platform.virtualization": "kvm"}, {T: 2_000_000}, "skip"),
        ({T: 500_000, "cpu.architecture": "aarch64"}, {T: 900_000}, "skip"),
    ],
)
def test_missing_memory(facts: Facts, before: Facts | None, status: str) -> None:
    """Less memory than before fails on bare metal; guests and Grace change theirs."""
    assert judged(T, facts, before=before).status == status


S, E, X, L = "time.kernel.synchronised", "time.kernel.max_error", "time.kernel.est_error", "time.chrony.leap"


@pytest.mark.parametrize(
    ("facts", "status", "words"),
    [
        ({S: False, E: 16.0}, "fail", "not synchronised"),
        ({S: True, E: 0.9, X: 0.0}, "pass", "synchronised"),
        ({S: True, E: 9.5}, "warn", "may be 9.5 s off"),
        ({S: True, E: 0.01, X: 0.05}, "warn", "about 50 ms"),
        ({S: False, L: "Normal"}, "skip", "rtcsync"),
        ({S: False, L: "Not synchronised"}, "skip", "see time.chrony"),
        ({S: True, E: 9.5, L: "Normal"}, "pass", "synchronised"),
    ],
)
def test_kernel_clock(facts: Facts, status: str, words: str) -> None:
    """The kernel's flag decides where chrony does not answer, and says nothing twice where it does."""
    finding = judged("time.sync", facts)
    assert finding.status == status
    assert words in finding.message


def test_chronyc_without_a_daemon_is_no_fault_where_another_keeps_the_clock() -> None:
    """The client may be installed beside timesyncd."""
    error = {"time.chrony.error": "506 Cannot talk to daemon"}
    assert judged("time.chrony", error).status == "fail"
    assert judged("time.chrony", error | {S: True}).status == "skip"
    assert judged("time.chrony", error | {S: False}).status == "fail"


@pytest.mark.parametrize(
    ("units", "status"),
    [
        (("chronyd.service",), "pass"),
        (("chrony.service", "chronyd.service"), "pass"),
        (("chrony.service", "systemd-timesyncd.service"), "warn"),
        (("chronyd.service", "phc2sys.service"), "skip"),
        (("phc2sys@eth0.service",), "pass"),
        (("sshd.service",), "skip"),
    ],
)
def test_daemons(units: tuple[str, ...], status: str) -> None:
    """Two names of one daemon are one daemon; two daemons are one too many."""
    facts = {f"{unit}:service.active": "active" for unit in units}
    assert judged("time.daemons", facts | {"ntpd.service:service.active": "inactive"}).status == status


def test_servers_are_judged_by_the_sites_list() -> None:
    """Without a list the names are reported; timesyncd's fallback does not count beside chrony."""
    rows = (
        {"daemon": "chrony", "kind": "server", "name": "ntp1"},
        {"daemon": "timesyncd", "kind": "fallback", "name": "ntp.ubuntu.com"},
    )
    facts = {"time.configured": rows}
    assert judged("time.servers", facts).status == "skip"
    assert judged("time.servers", facts, time__servers=["ntp1"]).status == "pass"
    assert judged("time.servers", facts, time__servers=["ntp9"]).status == "warn"
    assert judged("time.servers", {"time.configured": ()}, time__servers=["ntp9"]).status == "skip"


@pytest.mark.parametrize(
    ("source", "status"), [("tsc", "pass"), ("kvm-clock", "pass"), ("arch_sys_counter", "pass"), ("hpet", "warn")]
)
def test_clock_source(source: str, status: str) -> None:
    """Only the slow ones that the kernel falls back to are named."""
    assert judged("time.clocksource", {"time.clocksource": source}).status == status


R, F, OPTIONS, K = (f"storage.mount.{name}" for name in ("read_only", "forced", "options", "type"))


@pytest.mark.parametrize(
    ("facts", "status"),
    [
        ({R: False, K: "ext4"}, "pass"),
        ({R: True, F: True, K: "ext4"}, "fail"),
        ({R: True, F: False, K: "ext4"}, "skip"),
        ({R: True, F: False, K: "xfs", f"{R}@next boot": False}, "fail"),
        ({R: True, F: False, K: "ext4", f"{R}@next boot": True}, "skip"),
        ({R: True, K: "ext4", OPTIONS: ("ro", "errors=remount-ro")}, "fail"),
        ({R: True, F: False, K: "ext4", OPTIONS: ("ro", "errors=remount-ro")}, "skip"),
    ],
)
def test_read_only_mounts(facts: Facts, status: str) -> None:
    """What the kernel turned is told from what is read-only by intent."""
    assert judged("storage.mounts", facts).status == status


def verdicts(check: str, facts: Facts) -> list[str]:
    """Return the statuses of a check that may answer nothing."""
    judge = Judge(Profile("base", "", ("base",), CHECKS, BOUNDS, ""))
    judge.checks = [known for known in judge.checks if known.id == check]
    return [str(f.status) for f in judge.findings(snapshot_of(facts, "/data")) if f.check == check]


def test_mounts_that_fstab_demands() -> None:
    """A missing one warns, where the list of mounts was read and the machine boots from a disk."""
    needed, there = {"storage.mount.needed@next boot": True}, {"storage.mount.device": "/dev/md0"}
    assert verdicts("storage.fstab", needed | {"storage.root": "ext4"}) == ["warn"]
    assert verdicts("storage.fstab", needed | there | {"storage.root": "ext4"}) == ["pass"]
    assert verdicts("storage.fstab", needed) == []
    assert verdicts("storage.fstab", needed | {"storage.root": "overlay"}) == []
    assert verdicts("storage.mounts", {R: True, K: "nfs4"}) == []


@pytest.mark.parametrize(
    ("where", "used", "status"),
    [("/", 90, "pass"), ("/", 91, "warn"), ("/var/log", 100, "fail"), ("/data", 100, "skip"), ("/dev/shm", 99, "skip")],  # noqa: S108 - a name
)
def test_space(where: str, used: int, status: str) -> None:
    """System mounts are judged, data mounts are their owner's."""
    assert judged("storage.space", {"storage.space.used": used}, subject=where).status == status


def test_inodes() -> None:
    """No inodes is no space."""
    assert judged("storage.inodes", {"storage.inodes.used": 100}).status == "fail"
    assert judged("storage.inodes", {"storage.inodes.used": 12}).status == "pass"


W, U, M = "storage.smart.warning", "storage.smart.used", "storage.smart.media_errors"


@pytest.mark.parametrize(
    ("facts", "before", "status", "words"),
    [
        ({W: 0, U: 3, M: 7}, None, "pass", "3 %"),
        ({W: 4}, None, "fail", "reliability"),
        ({W: 9}, None, "fail", "read-only"),
        ({W: 2}, None, "warn", "warm"),
        ({W: 0, U: 3, M: 9}, {M: 7}, "warn", "2 new media errors"),
        ({W: 0, U: 3, M: 7}, {M: 7}, "pass", "no warning"),
        ({W: 0, U: 130}, None, "warn", "130 %"),
    ],
)
def test_drives(facts: Facts, before: Facts | None, status: str, words: str) -> None:
    """The drive's own bits fail; wear and growth warn."""
    finding = judged("storage.smart", facts, before=before)
    assert finding.status == status
    assert words in finding.message


def test_controller_state() -> None:
    """Only live answers requests."""
    assert judged("storage.nvme_state", {"storage.nvme.state": "live"}).status == "pass"
    assert judged("storage.nvme_state", {"storage.nvme.state": "dead"}).status == "fail"


@pytest.mark.parametrize(
    ("facts", "status"),
    [
        (
            {
                "storage.md.state": "active",
                "storage.md.members": 2,
                "storage.md.working": 2,
                "storage.md.activity": "check 3.0%",
            },
            "pass",
        ),
        ({"storage.md.state": "active", "storage.md.level": "raid0"}, "pass"),
        ({"storage.md.state": "active", "storage.md.level": "raid1"}, "unknown"),
        ({"storage.md.state": "active", "storage.md.members": 2, "storage.md.working": 1}, "fail"),
        ({"storage.md.state": "active", "storage.md.failed": ("sdb1",)}, "fail"),
        ({"storage.md.state": "inactive"}, "fail"),
    ],
)
def test_arrays(facts: Facts, status: str) -> None:
    """An array with a missing member fails, one that checks itself does not."""
    assert judged("storage.raid", facts, subject="md0").status == status
