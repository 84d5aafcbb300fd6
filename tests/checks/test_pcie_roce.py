"""PCIe ports, ASPM, IOMMU, RoCE and GPUDirect on a node that was read live."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hwcheck.engine import Judge
from hwcheck.evidence import Evidence, Output
from hwcheck.facts import NODE, Facet, Fact, Origin, Reason, Snapshot, Subject
from hwcheck.findings import Finding
from hwcheck.parse import take_snapshot
from hwcheck.profiles import ProfileSet
from hwcheck.sources import pci
from hwcheck.sources.source import Context
from tests.sources.pci_tree import DOWNSTREAM, L1, REDIRECT, ROOT_PORT, UPSTREAM, PciTree, Registers, snapshot_of

LAYERS = Path(__file__).parents[2] / "hwcheck/profiles"
PROFILES = ProfileSet([LAYERS / "base-pci.yaml", LAYERS / "base-qos.yaml"])
GPU, NIC, RAIL = Subject("pci", "0000:18:00.0"), Subject("pci", "0000:1a:00.0"), Subject("netdev", "ens6")
QUIET = ("pass", "skip")


def judged(snapshot: Snapshot, site: Path | None = None) -> list[Finding]:
    """Judge a snapshot by the base profile."""
    profiles = PROFILES if site is None else ProfileSet([LAYERS / "base-pci.yaml", LAYERS / "base-qos.yaml", site])
    return Judge(profiles.profile("base")).findings(snapshot)


def only(found: list[Finding], check: str) -> list[tuple[str, str]]:
    """Return subject and status of the findings of a check."""
    return [(str(finding.subject), str(finding.status)) for finding in found if finding.check == check]


def read(root: Path, **facts: Any) -> Snapshot:
    """Read a PCI tree and add facts of the node (``__`` stands for a dot)."""
    snapshot = snapshot_of(pci._pci(Context(str(root))), "sysfs.pci")
    for name, value in facts.items():
        snapshot.put(NODE, name.replace("__", "."), Fact(value, Origin("test")))
    return snapshot


def known(facts: dict[tuple[Subject, str], Any]) -> Snapshot:
    """Make a snapshot of single facts of a collected node."""
    snapshot = Snapshot("node")
    snapshot.put(NODE, "evidence.collected", Fact(value=True, origin=Origin("test")))
    for (subject, name), value in facts.items():
        snapshot.put(subject, name, Fact(value, Origin("test")))
    return snapshot


def test_a_healthy_board_has_nothing_to_say(tmp_path: Path) -> None:
    """Clear switch ports, whole links, ASPM off: nothing to warn of, though the root port redirects."""
    PciTree(tmp_path).hgx()
    found = [finding for finding in judged(read(tmp_path)) if finding.family in ("pcie", "numa")]
    assert [finding for finding in found if finding.status not in QUIET] == []
    assert ("", "pass") in only(found, "pcie.acs")
    assert ("", "pass") in only(found, "pcie.switch_link")


def test_acs_between_gpu_and_adapter_fails_by_name(tmp_path: Path) -> None:
    """Redirect on the switch ports is a fault with their addresses."""
    PciTree(tmp_path).hgx(Registers(DOWNSTREAM, acs=REDIRECT))
    (finding,) = [finding for finding in judged(read(tmp_path)) if finding.check == "pcie.acs"]
    assert finding.status == "fail"
    assert "0000:17:00.0, 0000:17:01.0" in finding.message


def test_acs_elsewhere_is_no_fault(tmp_path: Path) -> None:
    """Without a common switch, peer traffic passes the CPU whatever the root ports do."""
    tree = PciTree(tmp_path)
    for root_port, device, kind, ids in (
        ("0000:15:01.0", "0000:18:00.0", "30200", "10DE:2335"),
        ("0000:25:01.0", "0000:28:00.0", "20700", "15B3:1021"),
    ):
        tree.add(root_port, "60400", "8086:352A", registers=Registers(ROOT_PORT, acs=REDIRECT))
        tree.add(device, kind, ids, root_port, Registers())
    assert only(judged(read(tmp_path)), "pcie.acs") == [("", "skip")]


def test_a_user_gets_unknown_and_never_a_pass(tmp_path: Path) -> None:
    """What needs root is unknown: ACS, ASPM, read request, error registers."""
    PciTree(tmp_path, user=True).hgx()
    found = judged(read(tmp_path))
    for check in ("pcie.acs", "pcie.aspm", "pcie.errors"):
        assert {status for _, status in only(found, check)} == {"unknown"}, check


@pytest.mark.parametrize(("above", "status"), [(L1, "warn"), (0, "pass")])
def test_aspm_is_judged_by_what_is_in_effect(tmp_path: Path, above: int, status: str) -> None:
    """L1 that only one end has on never happens."""
    tree = PciTree(tmp_path)
    tree.add("0000:15:01.0", "60400", "8086:352A", registers=Registers(ROOT_PORT, aspm=above))
    tree.add("0000:18:00.0", "30200", "10DE:2335", "0000:15:01.0", Registers(aspm=L1))
    assert only(judged(read(tmp_path)), "pcie.aspm") == [("0000:18:00.0", status)]


def test_aspm_of_a_guest_is_its_hosts(tmp_path: Path) -> None:
    """A virtual machine does not own its links."""
    tree = PciTree(tmp_path)
    tree.add("0000:15:01.0", "60400", "8086:352A", registers=Registers(ROOT_PORT, aspm=L1))
    tree.add("0000:18:00.0", "30200", "10DE:2335", "0000:15:01.0", Registers(aspm=L1))
    assert only(judged(read(tmp_path, platform__virtualization="kvm")), "pcie.aspm") == [("0000:18:00.0", "skip")]


def test_a_small_read_request_of_an_adapter_warns(tmp_path: Path) -> None:
    """512 bytes are too little for a 400 Gb/s adapter; a GPU's or drive's own value is not judged."""
    tree = PciTree(tmp_path)
    tree.add("0000:1a:00.0", "20700", registers=Registers(read_request=512))
    tree.add("0000:18:00.0", "30200", "10DE:2335", registers=Registers(read_request=512))
    assert dict(only(judged(read(tmp_path)), "pcie.max_read_request")) == {
        "0000:1a:00.0": "warn",
        "0000:18:00.0": "skip",
    }


@pytest.mark.parametrize(
    ("device", "above", "kind", "status"),
    [
        (Registers(width=8), Registers(ROOT_PORT), "30200", "fail"),
        (Registers(width=8), Registers(ROOT_PORT, width_max=8), "30200", "fail"),
        (Registers(width=8), Registers(ROOT_PORT), "20700", "fail"),
        (Registers(width=8), Registers(ROOT_PORT, width_max=8), "20700", "skip"),
        (Registers(speed=3), Registers(ROOT_PORT), "20700", "warn"),
        (Registers(speed=4), Registers(ROOT_PORT, speed_max=4), "20700", "pass"),
        (Registers(speed=1), Registers(ROOT_PORT), "30200", "skip"),
    ],
)
def test_a_link_is_judged_by_both_ends(
    tmp_path: Path, device: Registers, above: Registers, kind: str, status: str
) -> None:
    """A slot that gives less is no fault of an adapter; a GPU needs all its lanes; idle speed is none."""
    tree = PciTree(tmp_path)
    tree.add("0000:15:01.0", "60400", "8086:352A", registers=above)
    tree.add("0000:18:00.0", kind, "10DE:2335" if kind == "30200" else "15B3:1021", "0000:15:01.0", device)
    assert only(judged(read(tmp_path)), "pcie.link") == [("0000:18:00.0", status)]


def test_a_narrow_uplink_of_a_switch_fails(tmp_path: Path) -> None:
    """Devices look whole while the link they share is half."""
    tree = PciTree(tmp_path)
    tree.add("0000:15:01.0", "60400", "8086:352A", registers=Registers(ROOT_PORT))
    tree.add("0000:16:00.0", "60400", "1000:C030", "0000:15:01.0", Registers(UPSTREAM, width=8))
    tree.add("0000:17:00.0", "60400", "1000:C030", "0000:16:00.0", Registers(DOWNSTREAM))
    tree.add("0000:18:00.0", "30200", "10DE:2335", "0000:17:00.0", Registers())
    found = judged(read(tmp_path))
    assert only(found, "pcie.switch_link") == [("", "fail")]
    assert only(found, "pcie.link") == [("0000:18:00.0", "pass")]


def test_windows_payload_and_counters(tmp_path: Path) -> None:
    """A window without address fails; a payload above the port's and counted timeouts warn."""
    tree = PciTree(tmp_path)
    tree.add("0000:15:01.0", "60400", "8086:352A", registers=Registers(ROOT_PORT, payload=256))
    tree.add(
        "0000:18:00.0", "30200", "10DE:2335", "0000:15:01.0", Registers(payload=512),
        resource="0x0000000000000000 0x0000003fffffffff 0x000000002014220c\n",
        aer_dev_nonfatal="CmpltTO 2\nUnsupReq 9\n",
    )  # fmt: skip
    found = judged(read(tmp_path))
    assert only(found, "pcie.bar") == [("0000:18:00.0", "fail")]
    assert only(found, "pcie.max_payload") == [("0000:18:00.0", "warn")]
    (counted,) = [finding for finding in found if finding.check == "pcie.aer_counters"]
    assert counted.status == "warn"
    assert "CmpltTO 2" in counted.message
    assert "UnsupReq" not in counted.message


@pytest.mark.parametrize(
    ("policy", "refused", "status"),
    [("powersave", "", "warn"), ("powersave", "FADT", "skip"), ("default", "", "skip"), ("performance", "", "skip")],
)
def test_the_policy_proves_nothing(policy: str, refused: str, status: str) -> None:
    """Only a policy that puts links to sleep, and may, warns; no policy is a pass."""
    snapshot = known({(NODE, "pci.aspm.policy"): policy, (NODE, "pci.aspm.refused"): refused})
    assert only(judged(snapshot), "pcie.aspm_policy") == [("", status)]


@pytest.mark.parametrize(
    ("facts", "status"),
    [
        ({"iommu.modes": ("identity",)}, "pass"),
        ({"iommu.modes": ()}, "pass"),
        ({"iommu.modes": ("DMA-FQ",), "kernel.cmdline": ("iommu=pt",)}, "warn"),
        ({"iommu.modes": ("DMA",), "platform.virtualization": "kvm"}, "skip"),
        ({"kernel.cmdline": ("intel_iommu=on",)}, "warn"),
    ],
)
def test_the_groups_outrank_the_argument(facts: dict[str, Any], status: str) -> None:
    """The mode of the groups is what is in effect; the argument is only a request."""
    found = judged(known({(NODE, name): value for name, value in facts.items()}))
    assert only(found, "kernel.iommu") == [("", status)]


def test_no_numa_node_warns_on_bare_metal_only() -> None:
    """-1 is a fault of the firmware, except in a guest and where there is only one node."""
    facts: dict[tuple[Subject, str], Any] = {(GPU, "pci.numa_node"): -1}
    assert only(judged(known(facts)), "numa.device") == [("0000:18:00.0", "warn")]
    for name, value in (("platform.virtualization", "kvm"), ("numa.count", 1)):
        assert only(judged(known({**facts, (NODE, name): value})), "numa.device") == [("0000:18:00.0", "skip")]


PORTS = {(Subject("port", f"mlx5_{number}/1"), "rdma.port.state"): "Active" for number in range(8)}


@pytest.mark.parametrize(
    ("facts", "status"),
    [
        ({"driver.module_open": True, "kernel.release": "6.8.0-60-generic"}, "pass"),
        ({"driver.module_open": True, "kernel.release": "5.4.0-1"}, "fail"),
        ({"driver.module_open": True, "kernel.release": "4.18.0-553.el8_10.x86_64"}, "skip"),
        ({"driver.module_open": False, "kernel.release": "6.8.0"}, "fail"),
        (
            {
                "driver.module_open": False, "gpudirect.peermem": "550.90.07",
                "kernel.module.versions": {"mlx5_core": {"version": "24.10-1.1.4"}},
            },
            "pass",
        ),
        (
            {
                "driver.module_open": False, "kernel.release": "6.8.0", "gpudirect.peermem": "550.90.07",
                "kernel.module.versions": {"mlx5_core": {"version": ""}},
            },
            "fail",
        ),
        ({"driver.module_open": False, "gpudirect.peermem": "550.90.07"}, "skip"),
        ({"driver.module_open": False, "gpudirect.clients": ("nv_mem",)}, "pass"),
    ],
)  # fmt: skip
def test_one_way_of_gpudirect_is_enough(facts: dict[str, Any], status: str) -> None:
    """Neither "not loaded" nor "loaded" decides alone: a way must be there as a whole."""
    facts = {"gpu.attached_count": 8, **facts}
    found = judged(known({**PORTS, **{(NODE, name): value for name, value in facts.items()}}))
    assert only(found, "rdma.gpudirect") == [("", status)]


def test_gpudirect_with_fewer_ports_than_gpus_only_warns() -> None:
    """A node with a single adapter may not be meant for it."""
    facts = {(NODE, "driver.module_open"): False, (NODE, "kernel.release"): "6.8.0", (NODE, "gpu.attached_count"): 8}
    one = dict(list(PORTS.items())[:1])
    assert only(judged(known({**one, **facts})), "rdma.gpudirect") == [("", "warn")]


def test_roce_of_a_live_node_is_told_and_not_judged_without_the_sites_wish(tmp_path: Path) -> None:
    """Every interface of a live node is asked, front-end ones too; with a site layer the same values warn."""
    ecn = (True,) * 8
    snapshot = known(
        {
            (RAIL, "roce.trust"): "pcp", (RAIL, "roce.pfc"): (False,) * 8, (RAIL, "roce.ecn.np"): ecn,
            (RAIL, "roce.ecn.rp"): (False,) * 8, (Subject("port", "mlx5_0/1"), "rdma.port.traffic_class"): 0,
            (Subject("port", "mlx5_0/1"), "rdma.port.default_tos"): 0,
        }
    )  # fmt: skip
    checks = ("roce.trust", "roce.pfc", "roce.ecn", "roce.traffic_class", "roce.default_tos")
    assert {status for check in checks for _, status in only(judged(snapshot), check)} == {"skip"}
    site = tmp_path / "site.yaml"
    told = "why: our fabric, section 3\n    source: network plan\n"
    wishes = {"trust": "dscp", "lossless_priorities": "[3]", "ecn_priorities": "[3]", "traffic_class": "106"}
    bounds = "".join(f"  roce.{name}:\n    value: {value}\n    {told}" for name, value in wishes.items())
    site.write_text(
        f"name: ours\nbounds:\n{bounds}checks:\n  roce.default_tos:\n    expect: {{equals: 106}}\n    {told}"
    )
    assert {status for check in checks for _, status in only(judged(snapshot, site), check)} == {"warn"}


def test_the_odd_rail_is_found_without_a_site_layer() -> None:
    """One interface that lost its setting differs from its peers of the same speed."""
    mark = {"speed": 400.0, "mtu": 9000, "trust": "dscp"}
    rails = {(Subject("netdev", f"ens{number}"), "roce.marks"): mark for number in range(8)}
    front = {(Subject("netdev", "eno1"), "roce.marks"): {"speed": 200.0, "mtu": 1500, "trust": "pcp"}}
    assert only(judged(known({**rails, **front})), "roce.peers") == [("", "pass")]
    rails[Subject("netdev", "ens3"), "roce.marks"] = {**mark, "trust": "pcp"}
    assert only(judged(known({**rails, **front})), "roce.peers") == [("ens3", "warn")]


@pytest.mark.parametrize(("shared", "status"), [(True, "warn"), (False, "skip")])
def test_arp_matters_only_where_rails_share_a_network(shared: bool, status: str) -> None:  # noqa: FBT001 - a case
    """One rail a network needs no care; several answer for each other, as the effective value says."""
    snapshot = known({(RAIL, "net.subnet_shared"): shared})
    for name, value in (("arp_announce", 0), ("arp_ignore", 0), ("rp_filter", 1)):
        for facet in (Facet.RUNNING, Facet.EFFECTIVE):
            snapshot.put(RAIL, f"sysctl.{name}", Fact(value, Origin("test")), facet)
    found = judged(snapshot)
    for name in ("arp_announce", "arp_ignore", "rp_filter"):
        assert only(found, f"sysctl.{name}") == [("ens6", status)]


def test_a_source_that_hung_leaves_its_checks_unknown() -> None:
    """A PCI source that never answered must not let a check pass or fall silent."""
    output = Output("sysfs.pci", [], reason=Reason.TIMEOUT, detail="no answer in 15 s")
    found = judged(take_snapshot(Evidence("", [output], collected=True)))
    for check in ("pcie.link", "pcie.aspm", "pcie.acs", "pcie.switch_link", "pcie.bar"):
        assert only(found, check) == [("", "unknown")], check
