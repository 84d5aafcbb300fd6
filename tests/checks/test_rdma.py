"""Checks of RDMA ports and links, RoCE settings, NIC firmware and NCCL's use of them."""

from __future__ import annotations

import json
import time

import pytest

from hwcheck.engine import Judge
from hwcheck.evidence import Evidence, Output
from hwcheck.facts import Snapshot
from hwcheck.findings import Finding
from hwcheck.parse import take_snapshot
from hwcheck.profiles import ProfileSet

JUDGE = Judge(ProfileSet().profile("base-rdma"), ("rdma", "roce", "firmware"))


def snapshot(*outputs: tuple[str, str] | tuple[str, str, str]) -> Snapshot:
    """Parse (kind, text[, command])."""
    made = [Output(kind, text.splitlines(), command="".join(rest)) for kind, text, *rest in outputs]
    return take_snapshot(Evidence(outputs=made))


def judged(now: Snapshot, check: str, previous: Snapshot | None = None) -> dict[str, Finding]:
    """Judge, and return the findings of one check by subject."""
    return {str(found.subject): found for found in JUDGE.findings(now, previous) if found.check == check}


def statuses(now: Snapshot, check: str, previous: Snapshot | None = None) -> dict[str, str]:
    """Return the answers of one check by subject."""
    return {subject: str(found.status) for subject, found in judged(now, check, previous).items()}


def ibstat(*ports: str, kind: str = "MT4129", layer: str = "InfiniBand", first: int = 0) -> str:
    """Make ibstat text; a port is ``state/physical/rate`` with ``/SM lid`` where it is not 1."""
    text = ""
    for number, port in enumerate(ports, first):
        state, physical, rate, *manager = port.split("/")
        text += (
            f"CA 'mlx5_{number}'\n\tCA type: {kind}\n\tFirmware version: 28.43.2566\n\tPort 1:\n\t\tState: {state}\n"
            f"\t\tPhysical state: {physical}\n\t\tRate: {rate}\n\t\tSM lid: {manager[0] if manager else 1}\n"
            f"\t\tLink layer: {layer}\n"
        )
    return text


UP, POLLING, DISABLED = "Active/LinkUp/400", "Down/Polling/10", "Down/Disabled/10"


def test_an_active_port_in_error_recovery_warns() -> None:
    """The physical state is judged beside the logical one."""
    now = snapshot(("ibstat", ibstat(UP, "Active/LinkErrorRecovery/400")))
    assert statuses(now, "rdma.port_link") == {"mlx5_0/1": "pass", "mlx5_1/1": "warn"}


def test_ports_that_are_up_pass() -> None:
    """Active ports with LinkUp pass in state, rate and subnet manager."""
    now = snapshot(("ibstat", ibstat(*[UP] * 4)))
    for check in ("rdma.port_state", "rdma.port_link", "rdma.port_rate", "rdma.subnet_manager"):
        assert set(statuses(now, check).values()) == {"pass"}


def test_a_rail_that_is_down_fails_with_its_physical_state() -> None:
    """Down ports of the fabric's type fail, each naming Polling or Disabled with its own remedy."""
    found = judged(snapshot(("ibstat", ibstat(UP, UP, UP, POLLING, UP, UP, DISABLED, UP))), "rdma.port_down")
    assert {subject: str(one.status) for subject, one in found.items()} == {"mlx5_3/1": "fail", "mlx5_6/1": "fail"}
    assert "Polling" in found["mlx5_3/1"].message
    assert "Disabled" in found["mlx5_6/1"].message
    remedies = [found[name].remedy for name in ("mlx5_3/1", "mlx5_6/1")]
    assert remedies[0]
    assert "transceiver" in remedies[0].text
    assert remedies[1]
    assert "ip link set" in remedies[1].text


def test_spare_ports_of_another_type_do_not_fail() -> None:
    """Front-end ports of another type may be down."""
    text = ibstat(*[UP] * 4) + ibstat(DISABLED, DISABLED, "Active/LinkUp/100", kind="MT4125", layer="Ethernet", first=4)
    assert set(statuses(snapshot(("ibstat", text)), "rdma.port_down").values()) == {"skip"}


@pytest.mark.parametrize(
    ("ports", "status"),
    [((UP, POLLING), "skip"), ((UP, UP, UP, POLLING, POLLING), "warn"), ((POLLING, DISABLED), "warn")],
)
def test_down_is_judged_by_how_many_are_up(ports: tuple[str, ...], status: str) -> None:
    """Half down looks like unused second ports, some down is in doubt, all down leaves nothing to compare with."""
    assert set(statuses(snapshot(("ibstat", ibstat(*ports))), "rdma.port_down").values()) == {status}


def test_the_rate_of_a_down_port_is_not_read() -> None:
    """The 10 or 40 Gb/s of a port without link is a default."""
    assert statuses(snapshot(("ibstat", ibstat(UP, UP, POLLING))), "rdma.port_rate")["mlx5_2/1"] == "skip"


def test_one_port_slower_than_its_peers_fails() -> None:
    """A rail at half the rate of the others is a cable, transceiver or switch port of a lower class."""
    found = statuses(snapshot(("ibstat", ibstat(UP, UP, UP, "Active/LinkUp/200"))), "rdma.port_rate")
    assert found == {"mlx5_0/1": "pass", "mlx5_1/1": "pass", "mlx5_2/1": "pass", "mlx5_3/1": "fail"}


def test_a_later_source_without_rates_does_not_hide_a_slow_port() -> None:
    """The rates of ibstat stand, whatever ibv_devinfo says after it."""
    devinfo = "".join(
        f"hca_id:\tmlx5_{number}\n\tvendor_part_id:\t4129\n\t\tport:\t1\n\t\t\tstate:\tPORT_ACTIVE (4)\n"
        for number in range(3)
    )
    now = snapshot(("ibstat", ibstat(UP, UP, "Active/LinkUp/200")), ("ibv_devinfo", devinfo))
    assert statuses(now, "rdma.port_rate")["mlx5_2/1"] == "fail"


@pytest.mark.parametrize(
    ("kind", "rate", "status"), [("MT4123", 100, "warn"), ("MT4129", 200, "pass"), ("MT4125", 25, "pass")]
)
def test_equal_ports_are_judged_by_the_class_of_the_part(kind: str, rate: int, status: str) -> None:
    """ConnectX-6 at 100 is in doubt; ConnectX-7 at 200 is an HDR fabric; ConnectX-6 Dx has no class."""
    port = f"Active/LinkUp/{rate}"
    assert set(statuses(snapshot(("ibstat", ibstat(port, port, kind=kind))), "rdma.port_rate").values()) == {status}


def test_no_subnet_manager_matters_on_infiniband_only() -> None:
    """SM LID 0 fails on InfiniBand, is normal on Ethernet and on a port that is down."""
    port = "Initializing/LinkUp/400/0"
    assert statuses(snapshot(("ibstat", ibstat(port))), "rdma.subnet_manager") == {"mlx5_0/1": "fail"}
    ethernet = snapshot(("ibstat", ibstat("Active/LinkUp/400/0", layer="Ethernet")))
    assert statuses(ethernet, "rdma.subnet_manager") == {"mlx5_0/1": "skip"}
    assert statuses(snapshot(("ibstat", ibstat("Down/Polling/10/0"))), "rdma.subnet_manager") == {"mlx5_0/1": "skip"}


def test_a_device_that_could_not_be_read_is_unknown() -> None:
    """Ibpanic names a device: its state is unknown, the others keep their answers."""
    text = ibstat(UP, UP) + "ibpanic: [9] main: stat of IB device 'mlx5_2' failed: No such file or directory\n"
    assert statuses(snapshot(("ibstat", text)), "rdma.port_state") == {
        "mlx5_0/1": "pass", "mlx5_1/1": "pass", "mlx5_2/1": "unknown",
    }  # fmt: skip


def mlxlink(**values: object) -> Snapshot:
    """Make mlxlink text from keys with _ for blanks."""
    rows = "".join(f"{key.replace('_', ' ')} : {value}\n" for key, value in values.items())
    return snapshot(("mlxlink", f"Physical Counters and BER Info\n-----\n{rows}", "mlxlink -d mlx5_0 -c"))


@pytest.mark.parametrize(
    ("errors", "rate", "status"),
    [(0, "15E-255", "pass"), (9, "2E-17", "pass"), (9, "3E-14", "warn"), (9, "1E-9", "fail"), (9, "N/A", "skip")],
)
def test_errors_after_correction_are_judged_by_their_rate(errors: int, rate: str, status: str) -> None:
    """Effective errors matter by their bit error rate; without a rate they are not judged."""
    now = mlxlink(Effective_Physical_Errors=errors, Effective_Physical_BER=rate)
    assert statuses(now, "rdma.link_errors") == {"mlx5_0/1": status}


def test_flapping_needs_time_or_an_earlier_reading() -> None:
    """Link downs warn when they grew, or are many a day; else they are history."""
    assert statuses(mlxlink(Link_Down_Counter=0), "rdma.link_flaps") == {"mlx5_0/1": "pass"}
    assert statuses(mlxlink(Link_Down_Counter=3), "rdma.link_flaps") == {"mlx5_0/1": "skip"}
    earlier = mlxlink(Link_Down_Counter=2)
    assert statuses(mlxlink(Link_Down_Counter=3), "rdma.link_flaps", earlier) == {"mlx5_0/1": "warn"}


def test_mlxlink_recommendation_is_heard() -> None:
    """Bad signal integrity fails, an unplugged cable on a link that is down warns, no issue passes."""

    def link(state: str, advice: str) -> tuple[str, str]:
        text = f"Operational Info\n---\nState : {state}\n\nTroubleshooting Info\n---\nRecommendation : {advice}\n"
        now = snapshot(("mlxlink", text, "mlxlink -d mlx5_0"))
        return statuses(now, "rdma.link_state")["mlx5_0/1"], statuses(now, "rdma.link_advice")["mlx5_0/1"]

    assert link("Active", "No issue was observed") == ("pass", "pass")
    assert link("Active", "Bad signal integrity") == ("pass", "fail")
    assert link("Polling", "Cable is unplugged") == ("warn", "warn")


def test_module_sensors_are_judged_by_the_modules_own_range() -> None:
    """A hot module warns; passive copper has no sensors at all."""

    def module(*rows: str) -> dict[str, str]:
        text = "\n".join(("Module Info", "-----", *rows))
        return statuses(snapshot(("mlxlink", text, "mlxlink -d mlx5_0 -m")), "rdma.module")

    assert module("Temperature [C] : 79 [-5..75]") == {"mlx5_0/1": "warn"}
    assert module("Temperature [C] : 60 [-5..75]") == {"mlx5_0/1": "pass"}
    copper = module(
        "Temperature [C] : 0 [-5..75]",
        "Voltage [mV] : 0 [0..0]",
        "Cable Type : Passive copper cable",
        "Rx LOS [per lane] : 1,1,1,1",
    )
    assert set(copper.values()) == {"skip"}


def counters(**values: int) -> Snapshot:
    """Make a flattened tree of counters."""
    root = "/sys/class/infiniband/mlx5_0/ports/1/counters"
    return snapshot(("sysfs.infiniband", "\n".join(f"{root}/{key}: {value}" for key, value in values.items())))


def test_counters_are_judged_by_growth_only() -> None:
    """Absolute values are no verdict; growth of a fatal counter fails, a reset counter is no growth."""
    assert statuses(counters(link_downed=255), "rdma.counters") == {"mlx5_0/1": "skip"}
    assert statuses(counters(link_downed=9), "rdma.counters") == {"mlx5_0/1": "skip"}
    assert statuses(counters(link_downed=9), "rdma.counters", counters(link_downed=8)) == {"mlx5_0/1": "fail"}
    assert statuses(counters(link_downed=9), "rdma.counters", counters(link_downed=9)) == {"mlx5_0/1": "pass"}
    assert statuses(counters(link_downed=1), "rdma.counters", counters(link_downed=9)) == {"mlx5_0/1": "skip"}


GIDS = """DEV PORT INDEX GID IPv4 VER DEV
mlx5_0 1 0 fe80:0000:0000:0000:0e42:a1ff:fed0:0006 v2 ens9f0
mlx5_0 1 2 0000:0000:0000:0000:0000:ffff:ac10:2806 172.16.40.6 v1 ens9f0
mlx5_0 1 3 0000:0000:0000:0000:0000:ffff:ac10:2806 172.16.40.6 v2 ens9f0
n_gids_found=3
"""


@pytest.mark.parametrize(
    ("index", "status", "word"),
    [(3, "pass", "v2"), (2, "warn", "v1"), (0, "warn", "link-local"), (7, "warn", "not exist"), (-1, "skip", "itself")],
)
def test_the_gid_index_of_nccl_is_looked_up(index: int, status: str, word: str) -> None:
    """Index 3 is the routed v2 GID; v1, link-local and missing ones warn and name index 3."""
    now = snapshot(("show_gids", GIDS), ("nccl.env", f"NCCL_IB_GID_INDEX={index}"))
    found = judged(now, "rdma.gid_index")["mlx5_0/1"]
    assert found.status == status
    assert word in found.message
    assert status != "warn" or "index 3" in found.message


@pytest.mark.parametrize("chosen", ["=mlx5_4", "^mlx5_0", "mlx5_0:2"])
def test_ports_that_nccl_does_not_use_have_no_gid_verdict(chosen: str) -> None:
    """NCCL_IB_HCA takes ports out."""
    now = snapshot(("show_gids", GIDS), ("nccl.env", f"NCCL_IB_GID_INDEX=2\nNCCL_IB_HCA={chosen}"))
    assert judged(now, "rdma.gid_index") == {}


def test_a_gid_index_that_only_the_log_tells_counts() -> None:
    """NCCL's log repeats the variables it took over."""
    log = "gpu07:41:42 [0] NCCL INFO NCCL_IB_GID_INDEX set by environment to 2."
    assert statuses(snapshot(("show_gids", GIDS), ("nccl.log", log)), "rdma.gid_index") == {"mlx5_0/1": "warn"}


def nccl_log(status: int, vendor: int, *more: str) -> dict[str, str]:
    """Judge a log with one failed completion."""
    line = f"Got completion from peer 10.1.1.2<4> with status={status} opcode=0 len=0 vendor err {vendor} (Send)"
    lines = [f"gpu07:41:42 [0] NCCL {text}" for text in (f"WARN NET/IB : {line} hca mlx5_0", *more)]
    return statuses(snapshot(("nccl.log", "\n".join(lines))), "rdma.completion")


def test_local_protection_error_with_gpudirect_fails() -> None:
    """Status 4 on a GDRDMA channel is a NIC that may not reach GPU memory; other errors may be the peer's."""
    channel = "INFO Channel 00/0 : 7[3] -> 0[0] [receive] via NET/IB/0/GDRDMA"
    assert nccl_log(4, 81, channel) == {"": "fail"}
    assert nccl_log(4, 81) == {"": "warn"}
    assert nccl_log(12, 129, channel) == {"": "warn"}


def qos(trust: str, *on: int) -> Snapshot:
    """Make mlnx_qos text with PFC on some priorities."""
    flags = " ".join(str(int(number in on)) for number in range(8))
    return snapshot(("mlnx_qos", f"Priority trust state: {trust}\n\tenabled {flags}\n", "mlnx_qos -i ens9f0"))


@pytest.mark.parametrize(("on", "status"), [((), "warn"), ((3,), "pass"), (range(8), "warn")])
def test_pfc_without_a_sites_wish(on: tuple[int, ...], status: str) -> None:
    """No lossless priority warns, one is right, all stop each other."""
    assert statuses(qos("dscp", *on), "roce.pfc") == {"ens9f0": status}


def test_trust_pcp_warns_and_says_that_the_wish_is_not_known() -> None:
    """Trust pcp leaves untagged RoCE v2 without priority."""
    found = judged(qos("pcp", 3), "roce.trust")["ens9f0"]
    assert found.status == "warn"
    assert "site's wish" in found.message
    assert statuses(qos("dscp", 3), "roce.trust") == {"ens9f0": "pass"}


def test_global_pause_beside_pfc_warns() -> None:
    """The two exclude each other; without PFC the check does not apply."""
    pause = ("ethtool.a", "Pause parameters for ens9f0:\nAutonegotiate: off\nRX: on\nTX: off\n")
    text = "Priority trust state: dscp\n\tenabled 0 0 0 {} 0 0 0 0\n"
    with_pfc = snapshot(pause, ("mlnx_qos", text.format(1), "mlnx_qos -i ens9f0"))
    assert statuses(with_pfc, "roce.global_pause") == {"ens9f0": "warn"}
    without = snapshot(pause, ("mlnx_qos", text.format(0), "mlnx_qos -i ens9f0"))
    assert statuses(without, "roce.global_pause") == {"ens9f0": "skip"}


def test_a_dscp_written_as_traffic_class_warns() -> None:
    """26 is DSCP 6; 106 is what was meant."""
    command = "cat /sys/class/infiniband/mlx5_0/tc/1/traffic_class"
    now = snapshot(("sysfs.infiniband.cat", "Global tclass=26", command))
    assert statuses(now, "roce.traffic_class") == {"mlx5_0/1": "warn"}
    now = snapshot(("sysfs.infiniband.cat", "Global tclass=106", command))
    assert statuses(now, "roce.traffic_class") == {"mlx5_0/1": "skip"}


def test_firmware_that_waits_for_a_reset_warns_with_both_versions() -> None:
    """Running and flashed differ: a reset or reboot is outstanding."""
    text = "Image type:  FS4\nFW Version:  28.45.1200\nFW Version(Running):  28.43.2566\n"
    found = judged(snapshot(("mstflint", text, "mstflint -d c1:00.0 q")), "firmware.nic_running")["0000:c1:00.0"]
    assert found.status == "warn"
    assert "28.45.1200" in found.message
    assert "28.43.2566" in found.message
    assert found.remedy
    assert "mlxfwreset" in found.remedy.text


def test_firmware_of_which_only_the_flash_is_told_is_no_pass() -> None:
    """A query without the running version says nothing of it."""
    now = snapshot(("mstflint", "Image type:  FS4\nFW Version:  28.45.1200\n", "mstflint -d c1:00.0 q"))
    assert set(statuses(now, "firmware.nic_running").values()) == {"skip"}


def test_one_nic_with_other_firmware_warns() -> None:
    """Of three alike the odd one warns; one of another type is no outlier."""
    text = ibstat(UP, UP, UP).replace("28.43.2566", "28.39.1002", 1) + ibstat(UP, kind="MT41692", first=3)
    assert statuses(snapshot(("ibstat", text)), "firmware.nic_uniform") == {
        "mlx5_0": "warn", "mlx5_1": "pass", "mlx5_2": "pass", "mlx5_3": "skip",
    }  # fmt: skip


def test_board_components_are_compared_by_kind_and_package() -> None:
    """One version a kind passes; Up-To-Date No counts only beside another package version."""
    entries = [
        {"AP Name": name, "Sys Version": version, "Pkg Version": package, "Up-To-Date": "No"}
        for name, version, package in (
            ("GPU_SXM_1", "96.1", "N/A"), ("GPU_SXM_2", "96.1", "N/A"), ("PSU_0", "2", "2"), ("PSU_1", "1", "2"),
            ("PCIeSwitch_0", "0.0.7", "N/A"), ("PCIeSwitch_1", "1.0.7", "N/A"),
        )
    ]  # fmt: skip
    now = snapshot(("nvfwupd", json.dumps(entries)))
    assert statuses(now, "firmware.component_uniform") == {
        "GPU_SXM_1": "pass", "GPU_SXM_2": "pass", "PSU_0": "warn", "PSU_1": "warn",
        "PCIeSwitch_0": "skip", "PCIeSwitch_1": "skip",
    }  # fmt: skip
    found = statuses(now, "firmware.component_package")
    assert (found["PSU_0"], found["PSU_1"], found["GPU_SXM_1"]) == ("pass", "warn", "skip")


RDMA_LINK = "link mlx5_{0}/1 state {1} physical_state {2} netdev ens{0}\n"
IBSTATUS = (
    "Infiniband device 'mlx5_{0}' port 1 status:\n\tbase lid:\t 0x7\n\tsm lid:\t 0x1\n\tstate:\t {1}\n"
    "\tphys state:\t {2}\n\trate:\t 400 Gb/sec (4X NDR)\n\tlink_layer:\t InfiniBand\n\n"
)
DEVINFO = (
    "hca_id:\tmlx5_{0}\n\tvendor_part_id:\t4129\n\t\tport:\t1\n\t\t\tstate:\t{1}\n\t\t\tmax_mtu:\t4096 (5)\n"
    "\t\t\tactive_mtu:\t2048 (4)\n\t\t\tlink_layer:\tInfiniBand\n\n"
)


@pytest.mark.parametrize(
    ("kind", "form", "up", "down", "status"),
    [
        ("rdma.link", RDMA_LINK, ("ACTIVE", "LINK_UP"), ("DOWN", "DISABLED"), "warn"),
        ("ibstatus", IBSTATUS, ("4: ACTIVE", "5: LinkUp"), ("1: DOWN", "3: Disabled"), "warn"),
        ("ibv_devinfo", DEVINFO, ("PORT_ACTIVE (4)", ""), ("PORT_DOWN (1)", ""), "fail"),
    ],
)
def test_down_ports_are_judged_whatever_tool_tells_them(
    kind: str, form: str, up: tuple[str, str], down: tuple[str, str], status: str
) -> None:
    """One of four down is a fault, or in doubt where device types are not told; half of them may be spare."""
    one = "".join(form.format(number, *(down if number == 3 else up)) for number in range(4))
    half = "".join(form.format(number, *(down if number % 2 else up)) for number in range(4))
    assert statuses(snapshot((kind, one)), "rdma.port_down") == {"mlx5_3/1": status}
    assert set(statuses(snapshot((kind, half)), "rdma.port_down").values()) == {"skip"}
    none = "".join(form.format(number, *down) for number in range(2))
    assert set(statuses(snapshot((kind, none)), "rdma.port_down").values()) == {"warn"}


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("ens1 (Up)", "ens2 (Up)", "ens3 (Up)", "ens4 (Down)"), "warn"),
        (("ens1 (Up)", "ens2 (Down)"), "skip"),
        (("ens1 (Down)", "ens2 (Down)"), "warn"),
        (("ib0 (Down)", "ib1 (Down)"), "skip"),
        (("ib0 (Up)", "ib1 (Up)", "ib2 (Up)", "ib3 (Down)"), "warn"),
    ],
)
def test_an_interface_that_is_down_is_compared_with_its_kind(words: tuple[str, ...], status: str) -> None:
    """Down among many that are up is in doubt; IPoIB may be off altogether."""
    text = "".join(f"mlx5_{number} port 1 ==> {word}\n" for number, word in enumerate(words))
    assert set(statuses(snapshot(("ibdev2netdev", text)), "rdma.netdev").values()) - {"pass"} == {status}


def test_types_that_another_tool_tells_are_used() -> None:
    """States of rdma link and types of ibv_devinfo are of the same ports."""
    states = "".join(RDMA_LINK.format(number, "ACTIVE", "LINK_UP") for number in range(3))
    types = "".join(f"hca_id:\tmlx5_{number}\n\tvendor_part_id:\t4129\n\t\tport:\t1\n" for number in range(4))
    now = snapshot(("ibv_devinfo", types), ("rdma.link", states + RDMA_LINK.format(3, "DOWN", "POLLING")))
    assert statuses(now, "rdma.port_down") == {"mlx5_3/1": "fail"}


def test_many_ports_cost_as_much_each_as_few() -> None:
    """Peers are counted once, so that eight times the ports cost about eight times as much."""

    def cost(ports: int) -> float:
        start = time.process_time()
        JUDGE.findings(snapshot(("ibstat", ibstat(*[UP] * ports))))
        return time.process_time() - start

    cost(50)
    assert cost(1600) < 30 * max(cost(200), 0.02)


@pytest.mark.parametrize(
    ("errors", "rate", "status"),
    [
        ("0", "15E-255", "pass"), ("0", "1E-5", "fail"), ("0", "1E-13", "warn"), ("44", "1E-16", "pass"),
        ("44", "2E-12", "fail"), ("N/A", "1E-5", "fail"), ("0", "N/A", "pass"), ("44", "N/A", "skip"),
    ],
)  # fmt: skip
def test_the_error_rate_is_judged_whatever_the_counter_says(errors: str, rate: str, status: str) -> None:
    """A counter at 0 may have been cleared; the rate still tells what the link does."""
    text = f"Physical Counters and BER Info\nEffective Physical Errors : {errors}\nEffective Physical BER : {rate}\n"
    now = snapshot(("mlxlink", text, "mlxlink -d mlx5_0 -c"))
    assert statuses(now, "rdma.link_errors") == {"mlx5_0/1": status}


ETHTOOL = (
    "Settings for {}:\n\tSupported link modes:   100000baseKR4/Full\n\t                        400000baseCR4/Full\n"
    "\tSpeed: {}\n\tDuplex: {}\n\tLink detected: {}\n"
)


def test_an_interface_asked_for_by_name_is_judged() -> None:
    """No link and half duplex warn; a speed below the adapter's own is told and not judged."""
    text = ETHTOOL.format("ens1", "400000Mb/s", "Full", "yes") + ETHTOOL.format("ens2", "100000Mb/s", "Half", "yes")
    now = snapshot(("ethtool", text + ETHTOOL.format("ens3", "Unknown!", "Unknown! (255)", "no (No cable)")))
    assert statuses(now, "rdma.netdev_link") == {"ens1": "pass", "ens2": "pass", "ens3": "warn"}
    assert statuses(now, "rdma.netdev_duplex") == {"ens1": "pass", "ens2": "warn", "ens3": "skip"}
    speed = judged(now, "rdma.netdev_speed")
    assert [str(speed[name].status) for name in ("ens1", "ens2", "ens3")] == ["pass", "skip", "skip"]
    assert "100 Gb/s and supports 400" in speed["ens2"].message


def test_interface_counters_are_judged_by_growth() -> None:
    """One reading is told with its numbers; growth warns."""

    def reading(value: int) -> Snapshot:
        text = f"NIC statistics:\n     rx_crc_errors_phy: {value}\n"
        return snapshot(("ethtool.S", text, "ethtool -S ens1"))

    alone = judged(reading(7), "rdma.netdev_counters")["ens1"]
    assert alone.status == "skip"
    assert "rx_crc_errors_phy 7" in alone.message
    assert statuses(reading(9), "rdma.netdev_counters", reading(7)) == {"ens1": "warn"}
    assert statuses(reading(7), "rdma.netdev_counters", reading(7)) == {"ens1": "pass"}


def test_an_mtu_below_the_largest_is_told() -> None:
    """Whether the fabric is made for more stands in no evidence."""
    now = snapshot(("ibv_devinfo", DEVINFO.format(0, "PORT_ACTIVE (4)")))
    assert statuses(now, "rdma.port_mtu") == {"mlx5_0/1": "skip"}
