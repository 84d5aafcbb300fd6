"""Kernel log and Fabric Manager log: what fails, what warns, what is noise, and what a log proves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hwcheck.checks import RELATIONS
from hwcheck.engine import Judge
from hwcheck.evidence import Evidence, Output
from hwcheck.findings import Finding, Status, Urgency
from hwcheck.knowledge import sxids, xids
from hwcheck.parse import take_snapshot
from hwcheck.profiles.layers import Entry, Profile

STORIES = Path(__file__).parent.parent / "parse"
MINE = (
    *("xid.", "sxid.", "kernel.", "pcie.aer", "memory.log", "cpu.log", "gpu.log", "rdma.log", "storage."),
    *("fabric.manager_", "driver.api", "evidence.log", "pcie.log"),
)
BOUNDS = {"pcie.aer_corrected_lines": 480, "rdma.flaps_per_day": 5}


def judge(*outputs: Output, collected: bool = False, bounds: dict[str, Any] | None = None) -> list[Finding]:
    """Judge logs with the checks on logs; skips for facts that are not there are left out."""
    entries = {id: Entry(id, {"value": value}, {}) for id, value in (BOUNDS if bounds is None else bounds).items()}
    judge = Judge(Profile("test", "test", ("test",), {}, entries, ""))
    judge.checks = [check for check in RELATIONS.values() if check.id.startswith(MINE)]
    findings = judge.findings(take_snapshot(Evidence(outputs=list(outputs), collected=collected)))
    return [
        finding
        for finding in findings
        if "not collected" not in finding.message and "in the evidence" not in finding.message
    ]


def kernel(*lines: str, command: str = "") -> list[Finding]:
    """Judge lines of a kernel log."""
    return judge(Output("kernel.log", list(lines), command=command))


def story(name: str, kind: str = "kernel.log") -> list[Finding]:
    """Judge a log of the parsers' own stories."""
    return judge(Output(kind, (STORIES / name).read_text().splitlines()))


def xid_line(code: int, text: str = "text", at: str = "0000:4f:00", time: str = "[  731.2]", who: str = "") -> str:
    """Make an Xid line."""
    return f"{time} NVRM: Xid (PCI:{at}): {code}, {who}{text}"


def only(findings: list[Finding], check: str) -> Finding:
    """Return the one finding of a check."""
    (found,) = [finding for finding in findings if finding.check == check]
    return found


@pytest.mark.parametrize("code", sorted(xids()))
def test_every_code_of_the_catalogue_is_judged(code: int) -> None:
    """Each Xid gives one finding under its own id, on its GPU, with a remedy when it is bad."""
    finding = only(kernel(xid_line(code)), f"xid.{code}")
    assert finding.subject == ("gpu", "0000:4f:00.0")
    assert str(code) in finding.message
    assert (finding.remedy is not None) is (finding.status in (Status.WARN, Status.FAIL, Status.UNKNOWN))
    assert f"xid.{code}" in RELATIONS["xid.events"].ids


@pytest.mark.parametrize(
    "code", [46, 48, 54, 62, 64, 79, 95, 109, 110, 119, 120, 140, 143, 155, 156, 158, 167, 169, 173]
)
def test_hardware_codes_fail(code: int) -> None:
    """Codes that ask for a reset, a reboot or hands fail."""
    assert only(kernel(xid_line(code)), f"xid.{code}").status is Status.FAIL


@pytest.mark.parametrize("code", [8, 13, 31, 32, 43, 45, 68, 69, 88, 94, 126, 137])
def test_application_codes_never_fail(code: int) -> None:
    """Codes that one job suffers from warn."""
    assert only(kernel(xid_line(code)), f"xid.{code}").status is Status.WARN


@pytest.mark.parametrize("code", [14, 106, 107, 162, 174])
def test_test_messages_pass(code: int) -> None:
    """Codes that mean nothing pass."""
    assert only(kernel(xid_line(code)), f"xid.{code}").status is Status.PASS


def test_a_gpu_off_the_bus_asks_for_a_power_cycle() -> None:
    """Xid 79 fails now, says that a reset does not help, and its second line is no second finding."""
    findings = story("kernel_log/xids.txt")
    finding = only(findings, "xid.79")
    assert (finding.status, finding.urgency) == (Status.FAIL, Urgency.NOW)
    assert finding.remedy is not None
    assert "power-cycle" in finding.remedy.text
    assert finding.origin is not None
    assert finding.origin.line == 11
    assert not [finding for finding in findings if finding.check == "gpu.log_on_bus"]


def test_the_driver_is_quoted_about_the_recovery_it_wants() -> None:
    """An Xid 154 beside a fault is a note, and what it asks for stands in the remedy of that fault."""
    findings = story("kernel_log/xids.txt")
    fault, recovery = only(findings, "xid.119"), only(findings, "xid.154")
    assert fault.remedy is not None
    assert "The driver asks for a reset of the GPU" in fault.remedy.text
    assert "at least 2 lines" in fault.message
    assert (recovery.status, recovery.urgency) == (Status.WARN, Urgency.NOTE)


def recovery_line(action: str, at: str = "0000:4f:00") -> str:
    """Make an Xid 154 line."""
    return xid_line(154, f"GPU recovery action changed from 0x0 (None) to 0x2 ({action})", at)


@pytest.mark.parametrize(
    ("action", "urgency", "word"),
    [
        ("Node Reboot Required", Urgency.NOW, "reboot"),
        ("GPU Reset Required", Urgency.NOW, "reset"),
        ("Drain P2P", Urgency.JOB_END, "drain"),
        ("Drain and Reset", Urgency.JOB_END, "reset"),
    ],
)
def test_a_recovery_that_nothing_explains_fails(action: str, urgency: Urgency, word: str) -> None:
    """What the driver wants done fails, as it does in nvidia-smi -q, unless a failing Xid of this GPU says it."""
    for beside in ((), (xid_line(13),), (xid_line(79, at="0000:5f:00"),)):
        found = only(kernel(*beside, recovery_line(action)), "xid.154")
        assert (found.status, found.urgency) == (Status.FAIL, urgency)
        assert found.remedy is not None
        assert word in found.remedy.text
    explained = only(kernel(xid_line(79), recovery_line(action)), "xid.154")
    assert (explained.status, explained.urgency) == (Status.WARN, Urgency.NOTE)


def test_the_last_recovery_that_was_asked_for_counts() -> None:
    """None, reset, None again: nothing is asked for any more, however often."""
    lines = [recovery_line(action) for action in ("None", "GPU Reset Required", "None")]
    assert only(kernel(*lines), "xid.154").status is Status.PASS
    assert only(kernel(*lines[:2]), "xid.154").status is Status.FAIL


def test_a_remap_that_waits_for_a_reset_fails_at_the_jobs_end() -> None:
    """A pending row remap is judged as nvidia-smi -q has it judged; a later start of the driver made it active."""
    text = "Row Remapper: New row marked for remapping, reset gpu to activate."
    pending = only(kernel(xid_line(63, text)), "xid.63")
    assert (pending.status, pending.urgency) == (Status.FAIL, Urgency.JOB_END)
    assert pending.remedy is not None
    assert "reset the GPU" in pending.remedy.text
    load = "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.86.15  Tue Mar  4 00:00:00 UTC 2025"
    times = ("[Tue Mar  4 09:00:00 2025]", "[Tue Mar  4 10:00:00 2025]")
    assert only(kernel(xid_line(63, text, time=times[0]), f"{times[1]} {load}"), "xid.63").status is Status.WARN


DEVICE_LINES = {
    "nvidia: probe of 0000:4f:00.0 failed with error -1": ("gpu.log_initialises", "gpu", Status.FAIL),
    "nvidia 0000:4f:00.0: probe with driver nvidia failed with error -1": ("gpu.log_initialises", "gpu", Status.FAIL),
    "NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:": (
        "gpu.log_initialises", "node", Status.FAIL,
    ),
    "mlx5_core: probe of 0000:1a:00.0 failed with error -110": ("rdma.log_fatal", "nic", Status.FAIL),
    "pcieport 0000:16:00.0: DPC: containment event, status:0x1f01 source:0x0000": (
        "pcie.log_link_lost", "pci", Status.FAIL,
    ),
    "pcieport 0000:17:00.0: pciehp: Slot(5): Link Down": ("pcie.log_link_lost", "pci", Status.WARN),
    "EXT4-fs error (device nvme0n1p2): ext4_lookup:1855: inode #131: comm ls: bad": (
        "storage.log_errors", "node", Status.FAIL,
    ),
    "XFS (sdb1): Metadata CRC error detected at xfs_agf_read_verify": ("storage.log_errors", "node", Status.FAIL),
    "BTRFS error (device sdc): parent transid verify failed on 1 wanted 2 found 3": (
        "storage.log_errors", "node", Status.FAIL,
    ),
    "mlx5_core 0000:1a:00.0: 63.008 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x8 link at 0000:15:01.0 "
    "(capable of 252.048 Gb/s with 16.0 GT/s PCIe x16 link)": ("pcie.log_bandwidth", "pci", Status.WARN),
}  # fmt: skip


@pytest.mark.parametrize("line", DEVICE_LINES)
def test_devices_that_fail_are_judged(line: str) -> None:
    """A device that its driver could not take, a link that was cut off or is narrow, and damage on a disk are told."""
    check, kind, status = DEVICE_LINES[line]
    (finding,) = kernel(f"[    1.5] {line}")[:1]
    assert (finding.check, finding.subject.kind, finding.status) == (check, kind, status)
    assert finding.remedy is not None


def test_full_bandwidth_is_not_told_as_a_fault() -> None:
    """The same line without a limit stands in the log of every healthy node."""
    line = "mlx5_core 0000:1a:00.0: 504.112 Gb/s available PCIe bandwidth (32.0 GT/s PCIe x16 link)"
    assert not [finding for finding in kernel(f"[    1.5] {line}") if finding.check == "pcie.log_bandwidth"]


def test_a_gpu_that_the_driver_does_not_support_is_named() -> None:
    """The message goes over three lines and names the GPU in the first."""
    found = kernel(
        "[    1.7] NVRM: The NVIDIA GPU 0000:5f:00.0 (PCI ID: 10de:2901)",
        "[    1.7] NVRM: installed in this system is not supported by the",
        "[    1.7] NVRM: NVIDIA 470.256.02 driver release.",
    )
    finding = only(found, "gpu.log_initialises")
    assert (finding.subject, finding.status) == (("gpu", "0000:5f:00.0"), Status.FAIL)
    assert "10de:2901" in finding.message


def test_a_link_that_was_up_and_is_down_at_the_end_warns() -> None:
    """A link that came back is no fault, and one that was never up is of a port without a cable."""
    port = "mlx5_core 0000:1b:00.0 ens1np0: Link"
    verdicts = {
        ("up", "down"): Status.WARN, ("up", "down", "up"): Status.SKIP, ("down",): Status.SKIP,
        ("down", "up", "down"): Status.WARN,
    }  # fmt: skip
    for words, status in verdicts.items():
        lines = [f"[    {number}.5] {port} {word}" for number, word in enumerate(words)]
        assert only(kernel(*lines), "rdma.log_flaps").status is status


def test_versions_that_differ_are_shown_with_their_line() -> None:
    """The evidence of an API mismatch is the line of the log."""
    lines = (
        "[    3.5] NVRM: API mismatch: the client has the version 570.86.15, but",
        "[    3.5] NVRM: this kernel module has the version 565.57.01.  Please",
    )
    found = only(kernel(*lines), "driver.api_mismatch")
    assert found.origin is not None
    assert "API mismatch" in found.origin.excerpt


def test_a_recovery_that_is_no_longer_asked_for_passes() -> None:
    """Xid 154 back to None is good news."""
    text = "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"
    assert only(kernel(xid_line(154, text)), "xid.154").status is Status.PASS


def test_a_contained_memory_error_can_wait() -> None:
    """A double bit error with a contained fault and a recorded remap fails at the job's end, alone it fails now."""
    alone = only(kernel(xid_line(48)), "xid.48")
    together = kernel(
        xid_line(48), xid_line(63, "Row Remapper: New row marked for remapping"), xid_line(94, "Contained: SM")
    )
    assert (alone.status, alone.urgency) == (Status.FAIL, Urgency.NOW)
    assert (only(together, "xid.48").status, only(together, "xid.48").urgency) == (Status.FAIL, Urgency.JOB_END)
    assert "remap" in only(together, "xid.63").message
    assert only(together, "xid.94").status is Status.WARN


def test_an_application_fault_in_unrelated_jobs_points_to_the_gpu() -> None:
    """The same application Xid in three programs, one after another, asks for diagnostics; a crash loop does not."""
    times = ("[Tue Mar  4 09:00:00 2025]", "[Tue Mar  4 10:00:00 2025]", "[Tue Mar  4 11:00:00 2025]")
    unrelated = kernel(*(xid_line(31, time=time, who=f"pid={n}, name=job{n}, ") for n, time in enumerate(times, 1)))
    loop = kernel(*(xid_line(31, time=time, who=f"pid={n}, name=train, ") for n, time in enumerate(times, 1)))
    assert only(unrelated, "xid.31").urgency is Urgency.JOB_END
    assert "3 different programs" in only(unrelated, "xid.31").message
    assert (only(loop, "xid.31").status, only(loop, "xid.31").urgency) == (Status.WARN, Urgency.NOTE)


def test_many_places_are_said_of_an_application_fault() -> None:
    """Xid 13 on several SMs is told as the application's."""
    assert "on 2 different SMs" in only(story("kernel_log/xids.txt"), "xid.13").message


def test_an_unlisted_code_warns() -> None:
    """A code that the catalogue does not know is a warning and says so."""
    finding = only(kernel(xid_line(9999)), "xid.unlisted")
    assert finding.status is Status.WARN
    assert "9999" in finding.message
    assert "not in the catalogue" in finding.message


def test_an_error_before_the_last_driver_load_is_history() -> None:
    """A fault that did not return after the driver was loaded again is a warning; with uptimes alone it still fails."""
    load = "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.86.15  Release"
    dated = kernel(xid_line(79, time="[Tue Mar  4 09:00:00 2025]"), f"[Tue Mar  4 09:30:00 2025] {load}")
    uptimes = kernel(xid_line(79, time="[90000.0]"), f"[   12.0] {load}")
    assert only(dated, "xid.79").status is Status.WARN
    assert "loaded again" in only(dated, "xid.79").message
    assert only(uptimes, "xid.79").status is Status.FAIL


def test_a_hopper_link_error_names_link_and_register() -> None:
    """Xid 74 fails with its link; what its registers mean is told under the condition of the chip."""
    finding = only(story("kernel_log/xids.txt"), "xid.74")
    assert finding.status is Status.FAIL
    assert "link 5" in finding.message
    assert "register 1 bit 16: perhaps hardware" in finding.message
    assert "if the GPU is a Hopper or older" in finding.message


def test_the_printed_word_decides_over_an_nvlink5_code() -> None:
    """Fatal fails, Nonfatal warns, a line cut before that word is unknown."""
    findings = story("kernel_log/nvlink5.txt")
    assert only(findings, "xid.145").status is Status.WARN
    events = [finding for finding in findings if finding.check == "xid.149"]
    assert {finding.status for finding in events} == {Status.FAIL}
    assert "sub-code 42" in events[0].message
    assert "cables" in events[0].message
    assert "all links" in events[1].message
    assert only(kernel(xid_line(147, "TREX Nonf")), "xid.147").status is Status.UNKNOWN


def test_a_status_that_the_catalogue_calls_fatal_asks_for_a_reset() -> None:
    """Where the line says Nonfatal and the catalogue fatal, the line wins, and the message says so."""
    line = xid_line(145, "RLW_REMAP Nonfatal XC1 i0 Link 03 (0x00000004 0x00000040 0x00000000)")
    finding = only(kernel(line), "xid.145")
    assert (finding.status, finding.urgency) == (Status.WARN, Urgency.JOB_END)
    assert "the catalogue calls this status fatal" in finding.message


def test_lost_packets_follow_the_recovery_action() -> None:
    """A lost packet asks for what Xid 154 says."""
    line = xid_line(145, "RLW_SRC_TRACK Nonfatal XC1 i0 Link 03 (0x040868e2 0x00000008 0x00000000)")
    finding = only(kernel(line), "xid.145")
    assert "packets were lost" in finding.message
    assert finding.remedy is not None
    assert "Xid 154" in finding.remedy.text


@pytest.mark.parametrize("code", sorted(sxids()))
def test_every_switch_code_is_judged_and_fails_when_printed_fatal(code: int) -> None:
    """Each SXid gives one finding on its switch; printed Fatal it fails."""
    line = f"nvidia-nvswitch0: SXid (PCI:0000:c4:00.0): {code}, Fatal, Link 12 some words"
    finding = only(kernel(line), f"sxid.{code}")
    assert finding.status is Status.FAIL
    assert finding.subject == ("switch", "0000:c4:00.0")
    assert "12" in finding.message


def test_switch_noise_is_no_alarm() -> None:
    """Corrected errors pass, a fatal code fails, a halted engine is treated as fatal."""
    findings = story("kernel_log/sxids.txt")
    assert only(findings, "sxid.22013").status is Status.PASS
    assert only(findings, "sxid.20034").status is Status.FAIL
    assert "ports 30, 31" in only(findings, "sxid.20034").message
    assert only(findings, "sxid.26006").status is Status.FAIL


def test_potentially_fatal_and_printed_non_fatal_warns() -> None:
    """A potentially fatal SXid that the line calls non-fatal is a warning."""
    line = "nvidia-nvswitch0: SXid (PCI:0000:c4:00.0): 24007, Non-fatal, Link 12 sourcetrack timeout error"
    assert only(kernel(line), "sxid.24007").status is Status.WARN


def test_a_non_fatal_12028_fails() -> None:
    """12028 is called non-fatal, yet the GPU behind the port stalls: it fails in both logs, with switch and port."""
    line = "nvidia-nvswitch0: SXid (PCI:0000:c4:00.0): 12028, Non-fatal, Link 12 egress non-posted PRIV error (First)"
    manager = story("fabric_manager_log/switch_errors.txt", "fabricmanager.log")
    for finding in (only(kernel(line), "sxid.12028"), only(manager, "sxid.12028")):
        assert finding.status is Status.FAIL
        assert finding.subject.id == "0000:c4:00.0"
        assert "port 12 stalls until a restart" in finding.message
        assert finding.remedy is not None
        assert "restart the node" in finding.remedy.text


def test_fabric_managers_log_passes_nothing_about_switches() -> None:
    """Noise in Fabric Manager's log is no pass: the log is no record of all that the switches report."""
    line = ("[Mar 03 2025 08:15:40] [ERROR] [tid 9] detected NVSwitch non-fatal error 20009 on fid 0 on NVSwitch pci "
            "bus id 00000000:c4:00.0 physical id 1 port 12")  # fmt: skip
    assert only(judge(Output("fabricmanager.log", [line])), "sxid.20009").status is Status.SKIP


def test_fabric_manager_start_passes_when_all_gpus_registered() -> None:
    """A start with all GPUs passes; with one missing it warns once the log goes on, and is not judged before."""
    lines = (STORIES / "fabric_manager_log" / "start.txt").read_text().splitlines()
    one_less = [line for line in lines if "555555555502" not in line]
    shown = {name: only(judge(Output("fabricmanager.log", some)), "fabric.manager_started").status
             for name, some in (("all", lines), ("less", one_less), ("early", one_less[:-1]))}  # fmt: skip
    assert shown == {"all": Status.PASS, "less": Status.WARN, "early": Status.SKIP}


def test_fabric_managers_other_errors_warn() -> None:
    """An error line without an NVSwitch code warns with its words."""
    finding = only(story("fabric_manager_log/switch_errors.txt", "fabricmanager.log"), "fabric.manager_errors")
    assert finding.status is Status.WARN
    assert "GPU 3" in finding.message


def test_a_boot_log_proves_absence() -> None:
    """A log that shows a boot passes Xid, SXid, kernel and PCIe; notices of healthy nodes are no alarm."""
    findings = story("kernel_log/boot.txt")
    assert not [finding for finding in findings if finding.status not in (Status.PASS, Status.SKIP)]
    passed = {finding.check for finding in findings if finding.status is Status.PASS}
    assert {"xid.none", "sxid.none", "kernel.crash", "kernel.stalls", "pcie.aer_fatal"} <= passed
    assert not [check for check in passed if check.startswith(("rdma", "memory", "storage", "gpu", "driver"))]


def test_an_excerpt_proves_nothing() -> None:
    """A few posted lines without an error pass in no family; that nothing could be judged is said."""
    findings = kernel("[  731.2] perf: interrupt took too long", "[  732.2] NVRM: GPU at PCI:0000:4f:00: GPU-x")
    assert [finding.check for finding in findings if finding.status is not Status.SKIP] == ["evidence.judged"]
    assert "excerpt" in only(findings, "xid.none").message


def test_the_driver_lines_of_a_grep_prove_nothing() -> None:
    """Lines that were picked by the driver's name show its load, yet an Xid would not have been picked."""
    findings = kernel("[    9.1] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.86.15  Release")
    assert only(findings, "xid.none").status is Status.SKIP


def test_a_collected_log_proves_absence() -> None:
    """A log that hwcheck collected itself is whole, even where the boot is no longer in the ring buffer."""
    output = Output("kernel.log", ["[  731.2] perf: interrupt took too long"])
    assert only(judge(output, collected=True), "xid.none").status is Status.PASS
    assert only(judge(output), "xid.none").status is Status.SKIP


def test_a_grep_without_an_answer_proves_absence() -> None:
    """An empty answer to a grep for Xid passes."""
    assert only(kernel(command="dmesg -T | grep -i xid"), "xid.none").status is Status.PASS


@pytest.mark.parametrize("name", ["denied", "cut_in_the_number"])
def test_a_refused_or_cut_log_is_unknown(name: str) -> None:
    """Where the text itself shows that it is incomplete, the absence of Xids is unknown."""
    assert only(story(f"kernel_log/{name}.txt"), "xid.none").status is Status.UNKNOWN


@pytest.mark.parametrize(
    ("name", "both"),
    [("api_mismatch", ("570.124.06", "570.86.15")), ("api_mismatch_one_line", ("580.95.05", "580.65.06"))],
)
def test_two_versions_of_the_driver_fail(name: str, both: tuple[str, str]) -> None:
    """An API mismatch fails with both versions, and asks to reload or reboot."""
    finding = only(story(f"kernel_log/{name}.txt"), "driver.api_mismatch")
    assert finding.status is Status.FAIL
    assert all(version in finding.message for version in both)
    assert finding.remedy is not None
    assert "rmmod" in finding.remedy.text
    assert "reboot" in finding.remedy.text


EVENTS = {
    "kernel.crash": {Status.FAIL: 3},
    "kernel.stalls": {Status.WARN: 3},
    "kernel.oom": {Status.WARN: 2},
    "kernel.machine_check": {Status.FAIL: 2, Status.WARN: 1},
    "kernel.log_peermem": {Status.SKIP: 1},
    "memory.log_errors": {Status.FAIL: 2, Status.WARN: 1},
    "cpu.log_throttled": {Status.WARN: 1},
    "pcie.aer_fatal": {Status.FAIL: 1},
    "pcie.aer_nonfatal": {Status.WARN: 1},
    "pcie.aer_corrected": {Status.SKIP: 1},
    "gpu.log_on_bus": {Status.FAIL: 1},
    "gpu.log_initialises": {Status.FAIL: 1},
    "rdma.log_fatal": {Status.FAIL: 1, Status.WARN: 1},
    "rdma.log_module": {Status.WARN: 1},
    "rdma.log_flaps": {Status.SKIP: 1},
    "storage.read_only": {Status.FAIL: 2},
    "storage.log_errors": {Status.FAIL: 2, Status.WARN: 2},
}


@pytest.mark.parametrize("check", EVENTS)
def test_other_events_are_judged(check: str) -> None:
    """Each kind of kernel message leads to its verdict, and optical drives to none."""
    statuses = [finding.status for finding in story("kernel_log/events.txt") if finding.check == check]
    assert {status: statuses.count(status) for status in statuses} == EVENTS[check]


def test_a_crash_before_the_last_boot_is_history() -> None:
    """A panic that a later boot in the same log leaves behind is a warning."""
    lines = (
        "Mar 04 09:00:00 n1 kernel: Kernel panic - not syncing: hung",
        "Mar 04 09:05:00 n1 kernel: Linux version 6.8.0 (x)",
    )
    assert only(kernel(*lines), "kernel.crash").status is Status.WARN


def test_a_link_that_flaps_warns() -> None:
    """Five losses of link within a day warn; spread over weeks they do not."""
    line = "kernel: mlx5_core 0000:52:00.0 ens3np0: Link down"
    near = kernel(*(f"Mar 04 0{hour}:00:00 n1 {line}" for hour in range(5)))
    far = kernel(*(f"Mar {day:02} 01:00:00 n1 {line}" for day in (1, 4, 8, 12, 16)))
    assert only(near, "rdma.log_flaps").subject == ("nic", "0000:52:00.0")
    assert only(far, "rdma.log_flaps").status is Status.SKIP


def test_a_storm_of_corrected_errors_warns() -> None:
    """Corrected PCIe errors above the bound warn, and without a bound they are not judged."""
    lines = ["[1.5] pcieport 0000:40:01.0: PCIe Bus Error: severity=Corrected, type=Physical Layer"] * 500
    assert only(kernel(*lines), "pcie.aer_corrected").status is Status.WARN
    unbound = judge(Output("kernel.log", lines), bounds={})
    assert only(unbound, "pcie.aer_corrected").status is Status.SKIP


def test_two_logs_of_one_node_add_up() -> None:
    """What dmesg told stays known when the journal tells something else; the same event is told once."""
    first = Output("kernel.log", [xid_line(79)], file="dmesg.txt")
    second = Output("kernel.log", [xid_line(79), xid_line(119)], file="journal.txt")
    findings = judge(first, second)
    assert "1 line " in only(findings, "xid.79").message
    origin = only(findings, "xid.119").origin
    assert origin is not None
    assert origin.file == "journal.txt"


def test_a_flood_is_unknown() -> None:
    """Lines that were not kept are said, and keep the log from a clean verdict."""
    lines = [xid_line(43, at=f"{number:04x}:01:00") for number in range(300)]
    finding = only(kernel(*lines), "evidence.log_groups")
    assert finding.status is Status.UNKNOWN
    assert "44 error lines" in finding.message
