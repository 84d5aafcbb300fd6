"""PCIe, clocks, NUMA, driver set, IMEX, services, kernel: judged from small texts through the parsers."""

from __future__ import annotations

import pytest

from hwcheck.checks import RELATIONS
from hwcheck.engine import Judge
from hwcheck.evidence import Evidence
from hwcheck.findings import Finding
from hwcheck.parse import take_snapshot
from hwcheck.profiles import Profile, ProfileSet
from hwcheck.readers.segments import split_text

PROFILES = ProfileSet()
HOST = PROFILES.profile("base-host")


def judged(text: str, platform: str = "") -> list[Finding]:
    """Judge a paste by the host layer, as if on this platform."""
    evidence = Evidence()
    split_text(text.splitlines(), "posted", evidence)
    profile = Profile(platform or "base", HOST.title, HOST.layers, HOST.checks, HOST.bounds, HOST.hash)
    return Judge(profile).findings(take_snapshot(evidence))


def statuses(text: str, check: str, platform: str = "") -> list[str]:
    """Return the statuses of one check."""
    return [str(finding.status) for finding in judged(text, platform) if finding.check == check]


def one(text: str, check: str, platform: str = "") -> Finding:
    """Return the only finding of a check."""
    (finding,) = [finding for finding in judged(text, platform) if finding.check == check]
    return finding


CLEAR = "\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-\n"
REDIRECT = "\t\tACSCtl:\tSrcValid- TransBlk- ReqRedir+ CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-\n"
GREP = "$ sudo lspci -vvv | grep ACSCtl\n"
GPU = "1b:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)\n"


def test_acs_redirect_on_bare_metal_fails_with_the_count() -> None:
    """A redirect bit counts without source validation; source validation alone does not."""
    finding = one(GREP + CLEAR + REDIRECT * 3, "pcie.acs")
    assert finding.status == "fail"
    assert "3 of 4" in finding.message
    assert finding.remedy is not None
    assert "setpci" in finding.remedy.text


def test_acs_clear_on_real_lines_passes() -> None:
    """Only lines that were read let ACS pass."""
    assert statuses(GREP + CLEAR * 2, "pcie.acs") == ["pass"]


@pytest.mark.parametrize(
    ("before", "platform"),
    [("$ systemd-detect-virt\nkvm\n", ""), ("", "gb200"), ("", "hgx-b300")],
    ids=["guest", "grace", "connectx-8"],
)
def test_acs_redirect_is_no_fault_where_it_belongs(before: str, platform: str) -> None:
    """Guests, Grace machines and boards with ConnectX-8 are not judged by zero redirect bits."""
    assert statuses(before + GREP + REDIRECT, "pcie.acs", platform) == ["skip"]


@pytest.mark.parametrize(
    "text", ["$ lspci -vvv | grep ACSCtl\n", f"$ lspci -vvv\n{GPU}\tCapabilities: <access denied>\n"]
)
def test_acs_without_root_is_unknown_and_says_how(text: str) -> None:
    """An empty grep or denied capabilities of a user prove nothing."""
    finding = one(text, "pcie.acs")
    assert finding.status == "unknown"
    assert finding.remedy is not None
    assert "sudo" in finding.remedy.text
    assert not [item for item in judged(text) if item.family == "pcie" and item.status == "pass"]


def test_an_empty_grep_by_root_says_nothing() -> None:
    """Root sees every ACS line there is: none is no fault and no pass."""
    assert statuses(GREP, "pcie.acs") == ["skip"]


def _link(speed: str, width: int, head: str = GPU) -> str:
    return (
        f"$ sudo lspci -vvv\n{head}\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM not supported\n"
        f"\t\tLnkSta:\tSpeed {speed}, Width x{width}\n"
    )


@pytest.mark.parametrize(
    ("speed", "width", "status"),
    [
        ("32GT/s", 16, "pass"),
        ("32GT/s", 8, "fail"),
        ("16GT/s", 16, "warn"),
        ("2.5GT/s", 16, "skip"),
        ("unknown", 16, "unknown"),
    ],
)
def test_a_gpu_link_is_judged_by_width_first(speed: str, width: int, status: str) -> None:
    """A narrow link fails; a slow one warns, unless it is what an idle GPU shows."""
    assert statuses(_link(speed, width), "pcie.link") == [status]


def test_a_narrow_link_on_grace_is_by_design() -> None:
    """GH200 shows x1 and is healthy."""
    head = "0009:01:00.0 3D controller: NVIDIA Corporation GH100 [GH200 120GB / 480GB] (rev a1)\n"
    assert statuses(_link("16GT/s", 1, head), "pcie.link") == ["skip"]


def test_a_narrow_onboard_card_only_warns() -> None:
    """A card that is neither GPU nor RDMA adapter does not keep the node out of work."""
    head = "02:00.0 Ethernet controller: Intel Corporation Ethernet Controller X550 (rev 01)\n"
    assert statuses(_link("32GT/s", 8, head), "pcie.link") == ["warn"]


def test_a_function_of_all_ones_is_lost() -> None:
    """Rev ff means that the device has left the bus."""
    assert statuses(GPU.replace("rev a1", "rev ff"), "pcie.device_lost") == ["fail"]


def test_aspm_errors_and_read_requests_of_an_adapter_warn() -> None:
    """Registers of a NIC that cost performance or hint at trouble warn, and do not fail."""
    text = (
        "$ sudo lspci -vvv\n3c:00.0 Infiniband controller: Mellanox Technologies MT2910 Family [ConnectX-7]\n"
        "\t\tDevCtl:\tCorrErr+\n\t\t\tMaxPayload 256 bytes, MaxReadReq 512 bytes\n"
        "\t\tLnkCtl:\tASPM L1 Enabled; RCB 64 bytes\n\t\tUESta:\tDLP- CmpltTO+ UnsupReq+\n"
    )
    found = {finding.check: str(finding.status) for finding in judged(text)}
    assert (found["pcie.aspm"], found["pcie.errors"], found["pcie.max_read_request"]) == ("warn",) * 3


TRACKING = """Reference ID    : {refid} (ntp-a)
Stratum         : {stratum}
System time     : {offset:.9f} seconds fast of NTP time
Root delay      : 0.000400000 seconds
Root dispersion : {dispersion:.9f} seconds
Leap status     : {leap}
"""
GOOD = {"refid": "0A140001", "stratum": 3, "offset": 0.0, "dispersion": 0.02, "leap": "Normal"}


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, "pass"),
        ({"leap": "Not synchronised"}, "fail"),
        ({"stratum": 0}, "fail"),
        ({"stratum": 16}, "fail"),
        ({"refid": "00000000"}, "fail"),
        ({"refid": "7F7F0101"}, "fail"),
        ({"offset": 0.02}, "warn"),
        ({"dispersion": 1.5}, "fail"),
        ({"leap": "Norm"}, "unknown"),
    ],
)
def test_chrony_is_judged_by_its_state_before_its_offset(change: dict[str, object], status: str) -> None:
    """An offset of zero proves nothing on a clock that is not synchronised."""
    assert statuses(TRACKING.format(**(GOOD | change)), "time.chrony") == [status]


@pytest.mark.parametrize(
    ("row", "status"),
    [
        ("0A140001,ntp-a,3,1746515289.1,0.022100000,0.001,0.002,-3.1,0.1,0.2,0.003,0.004,64.2,Normal", "warn"),
        ("0A140001,,3,1746515289.1,-0.000002000,0.001,0.002,-3.1,0.1,0.2,0.003,0.004,64.2,Normal", "pass"),
        ("00000000,,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,1.0,1.0,0.0,Not synchronised", "fail"),
    ],
)
def test_the_csv_of_chrony_is_known_without_its_command(row: str, status: str) -> None:
    """Fourteen fields with a reference id and a leap word are the tracking report."""
    assert statuses(f"{row}\n", "time.chrony") == [status]


def test_the_sources_of_chrony_as_csv_are_known_without_their_command() -> None:
    """Ten fields with the marks of a source are the list of sources."""
    assert statuses("^,*,10.20.0.1,2,6,377,21,0.000001,0.000002,0.0003\n", "time.sources") == ["pass"]
    assert statuses("^,?,10.20.0.1,0,6,0,21,0.000001,0.000002,0.0003\n", "time.sources") == ["fail"]


def test_an_offset_is_said_in_its_unit_and_shown_with_its_line() -> None:
    """Ten times a millisecond is no 1e+07 ns, and slow is said as slow."""
    found = one(TRACKING.format(**(GOOD | {"offset": 0.0221})).replace(" fast ", " slow "), "time.chrony")
    assert "22.1 ms slow of NTP time" in found.message
    assert found.origin is not None
    assert found.origin.excerpt.startswith("System time")
    text = "ptp4l[100.1]: master offset    2500000 s2 freq +1 path delay 500\n" * 2
    assert "2.5 ms from the PTP master" in one(text, "time.ptp_offset").message


@pytest.mark.parametrize(
    ("word", "status"),
    [("READY", "pass"), ("UP", "pass"), ("NOT READY", "fail"), ("DOWN", "fail"), ("SPLENDID", "unknown")],
)
def test_the_state_of_the_imex_daemon_is_judged(word: str, status: str) -> None:
    """One word behind the prompt that names the command; a word nobody knows is not judged."""
    assert statuses(f"$ nvidia-imex-ctl -q\n{word}\n", "imex.state") == [status]


def test_offline_cpus_warn_unless_smt_is_off() -> None:
    """Some CPUs offline are in doubt; as many as are online, with one thread a core, is SMT switched off."""
    text = "Architecture: x86_64\nCPU(s): {}\nOff-line CPU(s) list: {}\nThread(s) per core: {}\n"
    text += "Core(s) per socket: 4\nSocket(s): 2\n"
    found = one(text.format(16, "3,7", 2), "cpu.topology")
    assert found.status == "warn"
    assert found.origin is not None
    assert "Off-line" in found.origin.excerpt
    assert statuses(text.format(8, "8-15", 1), "cpu.topology") == ["skip"]


def test_the_line_that_proves_is_shown() -> None:
    """A module and a NUMA node are shown with their own line, not with the first of the output."""
    nouveau = one("Module                  Size  Used by\next4 1 0\nnouveau 2000 1\n", "kernel.nouveau")
    memory = one(
        "available: 2 nodes (0-1)\nnode 0 cpus: 0\nnode 0 size: 64000 MB\nnode 1 cpus: 1\nnode 1 size: 32000 MB\n",
        "numa.memory",
    )
    shown = [found.origin.excerpt for found in (nouveau, memory) if found.origin is not None]
    assert shown == ["nouveau 2000 1", "node 1 size: 32000 MB"]


def test_no_daemon_is_a_fault_of_the_clock() -> None:
    """Without chronyd nobody steers the clock."""
    assert statuses("$ chronyc tracking\n506 Cannot talk to daemon\n", "time.chrony") == ["fail"]


def test_tracking_cut_off_before_its_leap_status_is_never_a_pass() -> None:
    """A report that breaks off may hide that the clock is not synchronised."""
    text = TRACKING.format(**GOOD)
    for count in range(1, 6):
        assert "pass" not in statuses("\n".join(text.splitlines()[:count]), "time.chrony")


@pytest.mark.parametrize(
    ("row", "status"),
    [("^* a 2 6 377 5 x", "pass"), ("^? a 0 6 0 - x", "fail"), ("^- a 2 6 17 5 x", "warn")],
)
def test_time_sources_must_answer(row: str, status: str) -> None:
    """A selected source passes, one that never answered fails."""
    head = "MS Name/IP address         Stratum Poll Reach LastRx Last sample\n====================\n"
    assert statuses(f"{head}{row}\n", "time.sources") == [status]


def test_online_sources_prove_nothing() -> None:
    """The activity report gives no verdict at all."""
    assert not [
        item for item in judged("200 OK\n4 sources online\n") if item.family == "time" and item.status != "skip"
    ]


def _ptp(*lines: str) -> str:
    return "".join(f"ptp4l[{10 + 5 * index}.000]: port 1 (ens1): {line}\n" for index, line in enumerate(lines))


TO_SLAVE = "UNCALIBRATED to SLAVE on MASTER_CLOCK_SELECTED"
TO_FAULTY = "SLAVE to FAULTY on FAULT_DETECTED (FT_UNSPECIFIED)"


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        ((TO_SLAVE,), "pass"),
        ((TO_SLAVE, TO_FAULTY, TO_SLAVE), "warn"),
        ((TO_SLAVE, TO_FAULTY), "fail"),
        (("LISTENING to UNCALIBRATED on RS_SLAVE",), "warn"),
        (("LISTENING to MASTER on ANNOUNCE_RECEIPT_TIMEOUT_EXPIRES",), "pass"),
    ],
)
def test_the_last_ptp_state_counts(lines: tuple[str, ...], status: str) -> None:
    """A fault that healed is a warning; only a port that is faulty now fails."""
    assert statuses(_ptp(*lines), "time.ptp") == [status]


def test_an_offset_from_before_a_fault_is_not_the_present_one() -> None:
    """After a change of state the old samples say nothing."""
    text = "ptp4l[1.000]: rms    3 max    4 freq   +9 +/-   2\n" + _ptp(TO_FAULTY, TO_SLAVE)
    assert statuses(text, "time.ptp_offset") == ["skip"]


PMC = """sending: GET CURRENT_DATA_SET
	0a1b2c.fffe.3d4e5f-0 seq 0 RESPONSE MANAGEMENT CURRENT_DATA_SET
		stepsRemoved     0
		offsetFromMaster 0.0
	0a1b2c.fffe.999999-1 seq 0 RESPONSE MANAGEMENT CURRENT_DATA_SET
		stepsRemoved     1
		offsetFromMaster {}
"""


@pytest.mark.parametrize(("offset", "status"), [("-45.0", "pass"), ("88000.0", "warn"), ("37000000000.0", "fail")])
def test_the_masters_own_zero_is_not_taken_for_the_slaves(offset: str, status: str) -> None:
    """Each clock is judged by its own answer; the master is not judged."""
    assert statuses(PMC.format(offset), "time.ptp_offset") == ["skip", status]


LSCPU = "Architecture: x86_64\nCPU(s): 8\nThread(s) per core: 2\nCore(s) per socket: 2\nSocket(s): 2\n"


def test_nodes_without_cpus_are_gpu_memory() -> None:
    """Eight CPU-less nodes beside one with CPUs are a healthy GH200."""
    nodes = "".join(f"NUMA node{number} CPU(s):\n" for number in range(1, 9))
    text = f"Architecture: aarch64\nCPU(s): 72\nSocket(s): 1\nNUMA node(s): 9\nNUMA node0 CPU(s): 0-71\n{nodes}"
    assert statuses(text, "numa.layout") == ["pass"]


def test_two_sockets_in_one_node_warn_on_bare_metal_only() -> None:
    """NUMA switched off in the BIOS hides the sockets; a guest is given what its host likes."""
    text = LSCPU + "NUMA node(s): 1\nNUMA node0 CPU(s): 0-7\n"
    assert statuses(text, "numa.layout") == ["warn"]
    assert statuses(text + "Hypervisor vendor: KVM\n", "numa.layout") == ["skip"]


@pytest.mark.parametrize(("second", "status"), [(64000, "pass"), (56000, "warn"), (0, "fail")])
def test_memory_of_nodes_with_cpus_is_about_equal(second: int, status: str) -> None:
    """A missing DIMM shows; memory of nodes without CPUs is not compared."""
    text = (
        "available: 3 nodes (0-2)\nnode 0 cpus: 0 1\nnode 0 size: 64000 MB\nnode 1 cpus: 2 3\n"
        f"node 1 size: {second} MB\nnode 2 cpus:\nnode 2 size: 96 MB\n"
    )
    assert statuses(text, "numa.memory") == [status]


def test_a_cut_off_node_list_is_unknown() -> None:
    """Nodes that were announced and are not listed keep the check from passing."""
    text = "available: 8 nodes (0-7)\nnode 0 cpus: 0 1\nnode 0 size: 64000 MB\n"
    assert statuses(text, "numa.memory") == ["unknown"]


def _set(driver: str, manager: str) -> str:
    loaded = f"$ cat /sys/module/nvidia/version\n{driver}\n"
    return f"{loaded}$ nv-fabricmanager --version\nFabric Manager version is : {manager}\n"


@pytest.mark.parametrize(
    ("manager", "platform", "status"),
    [
        ("580.82.07", "hgx-h200", "pass"),
        ("580.95.05", "hgx-h200", "fail"),
        ("580.95.05", "h100-pcie", "skip"),
        ("580.95.05", "gb200", "skip"),
    ],
)
def test_fabric_manager_and_driver_are_compared_whole(manager: str, platform: str, status: str) -> None:
    """One branch is not one version; nodes without a fabric manager of their own are not judged."""
    finding = one(_set("580.82.07", manager), "driver.fabric_manager", platform)
    assert finding.status == status
    if status == "fail":
        assert manager in finding.message
        assert "580.82.07" in finding.message


def test_a_driver_that_changes_at_the_next_load_warns() -> None:
    """An upgrade that is not loaded yet is said before it bites."""
    text = "$ cat /sys/module/nvidia/version\n580.82.07\n$ modinfo -F version nvidia\n580.95.05\n"
    assert statuses(text, "driver.next_load") == ["warn"]


MESSAGES = [
    ("Failed to initialize NVML: Driver/library version mismatch", "driver.library"),
    ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", "driver.loaded"),
    ("No devices were found", "driver.devices"),
    ("Unable to determine the device handle for GPU 0000:5D:00.0: GPU is lost.", "driver.device_handle"),
]


@pytest.mark.parametrize(("message", "check"), MESSAGES)
def test_a_tool_that_cannot_open_a_gpu_fails_on_linux(message: str, check: str) -> None:
    """Each message is a fault of its own."""
    assert statuses(f"$ nvidia-smi\n{message}\n", check) == ["fail"]


@pytest.mark.parametrize(("message", "check"), MESSAGES[1:])
def test_the_same_words_under_wsl_are_not_judged(message: str, check: str) -> None:
    """WSL on Windows is no supported platform, and no GPU is lost there."""
    finding = one(f"C:\\Users\\me>wsl nvidia-smi\n{message}\n", check)
    assert finding.status == "skip"
    assert "Windows" in finding.message


def test_refused_permission_is_unknown() -> None:
    """NVML that refuses for want of privilege has not said that the driver is down."""
    assert statuses("Failed to initialize NVML: Insufficient Permissions\n", "driver.loaded") == ["unknown"]


def test_an_image_that_wants_a_newer_driver_only_warns() -> None:
    """The node is right; the image asks for more."""
    text = "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8\n"
    assert statuses(text, "driver.container") == ["warn"]
    assert statuses("nvidia-container-cli: initialization error: load library failed\n", "driver.container") == ["fail"]


def _imex(first: str = "READY", cell: str = "C", version: str = "580.82", state: str = "UP") -> str:
    return (
        f"Connectivity Table Legend:\nC - Connected - Ready for operation\n\nNodes:\n"
        f"Node #0   - 10.0.0.1        - {first}                - Version: {version}\n"
        f"Node #1   - 10.0.0.2        - READY                - Version: 580.82\n\n"
        f" Nodes From\\To  0   1\n       0        C   {cell}\n       1        C   C\nDomain State: {state}\n"
    )


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (_imex(), "pass"),
        (_imex(first="UNAVAILABLE"), "fail"),
        (_imex(cell="!V!"), "fail"),
        (_imex(cell="D"), "fail"),
        (_imex(version="575.57"), "fail"),
        (_imex(state="DEGRADED"), "fail"),
        ("$ nvidia-imex-ctl -N\nNode #0 * 10.0.0.1 * READY\n", "unknown"),
    ],
)
def test_one_bad_word_of_the_domain_fails_it(text: str, status: str) -> None:
    """Nodes, cells, versions and the domain state all have to be right."""
    assert statuses(text, "imex.domain") == [status]


def test_a_domain_that_is_cut_off_does_not_pass() -> None:
    """Rows of the matrix that are missing may hold the fault."""
    lines = _imex().splitlines()
    for count in range(4, len(lines)):
        assert "pass" not in statuses("\n".join(lines[:count]), "imex.domain")


def test_an_old_error_of_the_imex_log_warns() -> None:
    """What is in the log happened at some time; the domain tells about now."""
    text = "ERROR: No matching network interface found for any IP addresses in nodes_config.cfg\n"
    assert statuses(_imex() + text, "imex.log") == ["warn"]
    assert statuses(_imex() + text, "imex.domain") == ["pass"]


IDLE = "nv-fabricmanager: request to query NVSwitch device information failed: Nothing to do [NV_WARN_NOTHING_TO_DO]\n"


def test_a_guest_without_nvswitch_is_the_hosts_matter() -> None:
    """Starting the fabric manager again cures nothing: the host must."""
    finding = one(f"{IDLE}$ systemd-detect-virt\nkvm\n$ lspci | grep NVIDIA\n{GPU}", "service.nvswitch")
    assert finding.status == "fail"
    assert finding.remedy is not None
    assert "host" in finding.remedy.text


def test_no_nvswitch_on_pcie_cards_is_normal() -> None:
    """A fabric manager on PCIe cards has nothing to do, and that is all."""
    assert statuses(IDLE, "service.nvswitch", "h100-pcie") == ["skip"]
    assert statuses(IDLE, "service.nvswitch") == ["unknown"]


def _unit(name: str, state: str) -> str:
    return f"● {name}.service - some service\n     Loaded: loaded (/x; enabled)\n     Active: {state}\n"


@pytest.mark.parametrize(
    ("name", "state", "status"),
    [
        ("slurmd", "active (running)", "pass"),
        ("slurmd", "failed (Result: exit-code)", "fail"),
        ("cups", "failed (Result: exit-code)", "warn"),
        ("nvidia-imex", "inactive (dead)", "skip"),
    ],
)
def test_failed_units_count_by_what_they_are(name: str, state: str, status: str) -> None:
    """A failed unit that a GPU node needs fails; an inactive one may be so by intent."""
    assert statuses(_unit(name, state), "service.state") == [status]


def test_an_inactive_fabric_manager_fails_only_where_it_is_needed() -> None:
    """On an HGX board it must run; elsewhere nothing is known."""
    text = _unit("nvidia-fabricmanager", "inactive (dead)")
    assert statuses(text, "service.fabricmanager", "hgx-h100") == ["fail"]
    assert statuses(text, "service.fabricmanager") == ["skip"]


def test_a_filtered_module_list_proves_absence_of_what_matches() -> None:
    """``lsmod | grep nvidia`` tells about nvidia_peermem and nothing about nouveau."""
    text = "$ lsmod | grep nvidia\nnvidia              14376960  31 nvidia_uvm\n"
    assert "not loaded" in one(text, "kernel.peermem").message
    assert "does not tell" in one(text, "kernel.nouveau").message


def test_nouveau_fails() -> None:
    """Nouveau keeps the NVIDIA driver out."""
    assert statuses("Module                  Size  Used by\nnouveau 2400000 1\n", "kernel.nouveau") == ["fail"]


@pytest.mark.parametrize(
    ("arguments", "check", "status"),
    [
        ("intel_iommu=on", "kernel.iommu", "warn"),
        ("intel_iommu=on iommu=pt", "kernel.iommu", "pass"),
        ("quiet", "kernel.iommu", "skip"),
        ("pcie_aspm=force", "kernel.pcie_aspm", "warn"),
        ("pcie_aspm=off", "kernel.pcie_aspm", "skip"),
    ],
)
def test_kernel_arguments(arguments: str, check: str, status: str) -> None:
    """Arguments are requests: only what is surely wrong warns."""
    assert statuses(f"BOOT_IMAGE=/vmlinuz root=/dev/sda1 {arguments}\n", check) == [status]


def test_a_low_memlock_limit_fails_beside_rdma_modules() -> None:
    """Without a sign of RDMA a low limit only warns."""
    limit = "$ ulimit -l\n64\n"
    assert statuses(limit, "limits.memlock") == ["warn"]
    modules = "$ lsmod\nModule                  Size  Used by\nmlx5_ib 471040 0\n"
    assert statuses(limit + modules, "limits.memlock") == ["fail"]
    assert statuses("$ ulimit -l\nunlimited\n", "limits.memlock") == ["pass"]


def test_numa_balancing_warns() -> None:
    """Automatic page migration is off on GPU nodes."""
    assert statuses("kernel.numa_balancing = 1\n", "sysctl.numa_balancing") == ["warn"]
    assert statuses("kernel.numa_balancing = 0\n", "sysctl.numa_balancing") == ["pass"]


def test_every_relation_of_the_host_explains_itself() -> None:
    """The five headings are there."""
    families = ("pcie", "time", "numa", "cpu", "imex", "service", "kernel", "limits")
    for check in RELATIONS.values():
        if check.id.partition(".")[0] in families and check.body.__module__.rpartition(".")[2] in (
            "pcie", "time", "numa", "imex", "service", "kernel_modules",
        ):  # fmt: skip
            for heading in ("What it checks:", "Why it matters:", "How to fix:", "Applies to:", "Source:"):
                assert heading in check.text, check.id
