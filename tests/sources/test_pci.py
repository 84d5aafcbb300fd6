"""The PCI source: what it reads of a tree, and what it says where it may not, cannot or must not read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hwcheck.facts import NODE, Facet, Missing, Reason, Snapshot, Subject
from hwcheck.sources import pci
from hwcheck.sources.source import Absent, Context
from tests.sources.pci_tree import DOWNSTREAM, L0S, L1, REDIRECT, PciTree, Registers, snapshot_of

GPU, NIC = Subject("pci", "0000:18:00.0"), Subject("pci", "0000:1a:00.0")


def read(root: Path) -> Snapshot:
    """Read a tree and parse it."""
    return snapshot_of(pci._pci(Context(str(root))), "sysfs.pci")


def test_registers_are_read_through_the_capability_lists(tmp_path: Path) -> None:
    """Link, payload, errors and access control come out of raw bytes, of both ends."""
    PciTree(tmp_path).hgx()
    snapshot = read(tmp_path)
    assert snapshot.value("pci.link.speed", GPU) == 32.0
    assert snapshot.value("pci.max_read_request", NIC) == 4096
    assert snapshot.value("pci.uncorrectable", NIC) == ()
    assert snapshot.value("pci.upstream", GPU)["port"] == "Downstream Port"
    control = {record["device"]: record for record in snapshot.value("pci.acs")}
    assert control["0000:15:01.0"]["redirect"] is True
    assert control["0000:15:01.0"]["between"] is False
    assert control["0000:17:00.0"]["between"] is True


@pytest.mark.parametrize(
    ("here", "there", "effective"), [(L1, L1, "L1"), (L1, 0, "none"), (0, L0S, "L0s"), (3, 3, "L0s L1")]
)
def test_aspm_is_in_effect_as_both_ends_say(tmp_path: Path, here: int, there: int, effective: str) -> None:
    """L1 needs both ends of a link; each end sends L0s by itself."""
    tree = PciTree(tmp_path)
    tree.add("0000:15:01.0", "60400", "8086:352A", registers=Registers(4, aspm=there))
    tree.add("0000:18:00.0", "30200", "10DE:2335", "0000:15:01.0", Registers(aspm=here))
    assert read(tmp_path).get(GPU, "pci.aspm", Facet.EFFECTIVE).value == effective


def test_a_user_is_told_denied_and_not_off(tmp_path: Path) -> None:
    """The kernel gives a user 64 bytes: ASPM, read request and ACS are denied, the link comes from attributes."""
    tree = PciTree(tmp_path, user=True)
    tree.hgx(current_link_width="8\n", max_link_width="16\n", current_link_speed="32.0 GT/s PCIe\n")
    snapshot = read(tmp_path)
    for subject, name in ((GPU, "pci.aspm"), (NIC, "pci.max_read_request"), (NODE, "pci.acs")):
        value = snapshot.get(subject, name).value
        assert isinstance(value, Missing), name
        assert value.reason is Reason.DENIED
    assert snapshot.value("pci.link.width", GPU) == 8


def test_only_what_matters_is_read(tmp_path: Path) -> None:
    """USB controllers, the host's own graphics, and virtual functions are left alone."""
    tree = PciTree(tmp_path)
    tree.add("0000:00:14.0", "C0330", "8086:1BCD", registers=Registers())
    tree.add("0000:03:00.0", "30000", "1A03:2000", registers=Registers())
    virtual = tree.add("0000:1a:00.2", "20000", "15B3:101E", registers=Registers())
    (virtual / "physfn").symlink_to("../0000:1a:00.0")
    with pytest.raises(Absent):
        read(tmp_path)
    tree.add("0000:3a:00.0", "10802", "144D:A80A", registers=Registers(width=4, width_max=4))
    assert [str(subject) for subject in read(tmp_path).subjects("pci")] == ["0000:3a:00.0"]


def test_a_sleeping_device_is_not_woken(tmp_path: Path) -> None:
    """Reading registers would wake a runtime-suspended device."""
    tree = PciTree(tmp_path)
    tree.add("0000:3a:00.0", "10802", "144D:A80A", registers=Registers(), power__runtime_status="suspended\n")
    text = pci._pci(Context(str(tmp_path)))
    assert b"config: !suspended" in text
    assert b"hex:" not in text


def test_a_device_of_all_ones_is_asked_once(tmp_path: Path) -> None:
    """A device that no longer answers is lost; each further read would wait for a timeout."""
    tree = PciTree(tmp_path)
    (tree.add("0000:18:00.0", "30200", "10DE:2335") / "config").write_bytes(b"\xff" * 4096)
    assert pci._pci(Context(str(tmp_path))).count(b"ff" * 4 + b"\n") == 1
    assert read(tmp_path).value("pci.lost", GPU) is True


def test_broken_registers_never_loop_or_raise(tmp_path: Path) -> None:
    """Capability lists that point at themselves or outside end, and nothing is made up."""
    tree = PciTree(tmp_path)
    space = bytearray(4096)
    space[6], space[0x34], space[0x41] = 0x10, 0x40, 0x40
    space[0x100:0x104] = (0x1234 | 0x100 << 20).to_bytes(4, "little")
    (tree.add("0000:18:00.0", "30200", "10DE:2335") / "config").write_bytes(space)
    (tree.add("0000:1a:00.0", "20700") / "config").write_bytes(b"\x00" * 40)
    snapshot = read(tmp_path)
    assert not snapshot.get(GPU, "pci.aspm").present
    value = snapshot.get(NIC, "pci.aspm").value
    assert isinstance(value, Missing)
    assert value.reason is Reason.UNPARSABLE


def test_names_cannot_forge_lines(tmp_path: Path) -> None:
    """A folder whose name holds a line feed is no function; a driver's name with one stays on its line."""
    tree = PciTree(tmp_path)
    folder = tree.add("0000:18:00.0", "30200", "10DE:2335", registers=Registers())
    (folder / "driver").symlink_to("x\n/sys/bus/pci/devices/0000:99:00.0/uevent: PCI_CLASS=30200")
    (tmp_path / "sys/bus/pci/devices/0000:98:00.0\n").mkdir()
    assert [str(subject) for subject in read(tmp_path).subjects("pci")] == ["0000:18:00.0"]


def test_an_endless_tree_of_links_ends(tmp_path: Path) -> None:
    """A function that links to itself gives nothing and does not hang."""
    devices = tmp_path / "sys/bus/pci/devices"
    devices.mkdir(parents=True)
    (devices / "0000:18:00.0").symlink_to("0000:18:00.0")
    with pytest.raises(Absent):
        read(tmp_path)


def test_reading_changes_nothing(tmp_path: Path) -> None:
    """No file of the tree is written, made or removed."""
    PciTree(tmp_path).hgx(power__control="on\n")
    before = {path: (path.lstat().st_mtime_ns, path.lstat().st_size) for path in tmp_path.rglob("*")}
    read(tmp_path)
    assert {path: (path.lstat().st_mtime_ns, path.lstat().st_size) for path in tmp_path.rglob("*")} == before


def test_who_controls_aspm_is_told(tmp_path: Path) -> None:
    """Hidden attributes of links that can do ASPM mean that writes of the policy are refused."""
    PciTree(tmp_path).hgx()
    policy = tmp_path / "sys/module/pcie_aspm/parameters/policy"
    policy.parent.mkdir(parents=True)
    policy.write_text("[default] performance powersave powersupersave \n")
    snapshot = read(tmp_path)
    assert "no ASPM attributes" in snapshot.value("pci.aspm.refused")
    assert snapshot.get(NODE, "pci.aspm.policy", Facet.PERMITTED).value == "default"
    link = tmp_path / "sys/bus/pci/devices/0000:18:00.0/link"
    link.mkdir()
    (link / "l1_aspm").write_text("0\n")
    snapshot = read(tmp_path)
    assert snapshot.value("pci.aspm.refused") == ""
    assert snapshot.get(NODE, "pci.aspm.policy", Facet.PERMITTED).value == "any"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_denied(tmp_path: Path) -> None:
    """A configuration space that may not be opened is denied."""
    folder = PciTree(tmp_path).add("0000:18:00.0", "30200", "10DE:2335", registers=Registers())
    (folder / "config").chmod(0)
    value = read(tmp_path).get(GPU, "pci.aspm").value
    assert isinstance(value, Missing)
    assert value.reason is Reason.DENIED


def test_a_redirecting_switch_is_known_by_address(tmp_path: Path) -> None:
    """The record of a port names it, so that the fix knows where to write."""
    PciTree(tmp_path).hgx(Registers(DOWNSTREAM, acs=REDIRECT))
    control = read(tmp_path).value("pci.acs")
    assert [record["device"] for record in control if record["redirect"] and record["between"]] == [
        "0000:17:00.0",
        "0000:17:01.0",
    ]
