"""The RDMA and network sources: ports, GIDs, interfaces, RoCE settings, from small trees."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from hwcheck.facts import Missing, Reason, Subject, port
from hwcheck.facts.names.rdma import COUNTERS, HW_COUNTERS
from hwcheck.sources import rdma
from hwcheck.sources.source import Absent, Context
from tests.sources.pci_tree import snapshot_of

ZERO = "0000:0000:0000:0000:0000:0000:0000:0000\n"
RAIL = Subject("netdev", "ens6")


def put(root: Path, files: dict[str, str]) -> None:
    """Write files below a root."""
    for name, text in files.items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def device(root: Path, name: str = "mlx5_0") -> str:
    """Add an RDMA device with one port; returns its folder in the tree."""
    here = f"sys/class/infiniband/{name}"
    put(
        root,
        {
            f"{here}/hca_type": "MT4129\n",
            f"{here}/fw_ver": "28.43.2026\n",
            f"{here}/board_id": "MT_0000000838\n",
            f"{here}/ports/1/state": "4: ACTIVE\n",
            f"{here}/ports/1/phys_state": "5: LinkUp\n",
            f"{here}/ports/1/link_layer": "Ethernet\n",
            f"{here}/ports/1/rate": "400 Gb/sec (4X NDR)\n",
            f"{here}/ports/1/counters/link_downed": "1\n",
            f"{here}/ports/1/hw_counters/out_of_sequence": "7\n",
        },
    )
    return here


def interface(root: Path, name: str = "ens6", device_name: str = "mlx5_0", **files: str) -> None:
    """Add a network interface on PCI."""
    folder = root / f"sys/devices/pci0000:15/0000:16:00.0/net/{name}"
    put(folder, {"operstate": "up\n", "mtu": "9000\n", "speed": "400000\n", "type": "1\n", "dev_port": "0\n", **files})
    put(folder, {f"device/infiniband/{device_name}/node_type": "1\n"})
    (folder / "device/driver").symlink_to("../../../../bus/pci/drivers/mlx5_core")
    links = root / "sys/class/net"
    links.mkdir(parents=True, exist_ok=True)
    (links / name).symlink_to(f"../../devices/pci0000:15/0000:16:00.0/net/{name}")


def test_counters_are_those_of_the_registry() -> None:
    """What the node program reads is what the parsers know."""
    assert rdma.COUNTERS == COUNTERS
    assert rdma.HW_COUNTERS == HW_COUNTERS


def test_a_port_is_read_with_its_counters(tmp_path: Path) -> None:
    """State, rate, counters and firmware come from the tree."""
    device(tmp_path)
    snapshot = snapshot_of(rdma._infiniband(Context(str(tmp_path))), "sysfs.infiniband")
    assert snapshot.value("rdma.port.state", port("mlx5_0")) == "Active"
    assert snapshot.value("rdma.port.rate", port("mlx5_0")) == 400
    assert snapshot.value("rdma.counter.out_of_sequence", port("mlx5_0")) == 7
    assert snapshot.value("rdma.device.psid", Subject("nic", "mlx5_0")) == "MT_0000000838"


def test_the_empty_end_of_a_gid_table_is_not_read(tmp_path: Path) -> None:
    """A table of 256 entries is left after eight empty ones; set entries come with type and interface."""
    here = device(tmp_path)
    gids = {f"{here}/ports/1/gids/{number}": ZERO for number in range(256)}
    gids[f"{here}/ports/1/gids/3"] = "0000:0000:0000:0000:0000:ffff:c0a8:0a0b\n"
    put(tmp_path, gids)
    put(tmp_path, {f"{here}/ports/1/gid_attrs/types/3": "RoCE v2\n", f"{here}/ports/1/gid_attrs/ndevs/3": "ens6\n"})
    text = rdma._infiniband(Context(str(tmp_path)))
    assert text.count(b"/gids/") == 1
    (gid,) = snapshot_of(text, "sysfs.infiniband").value("rdma.port.gids", port("mlx5_0"))
    assert (gid["ip"], gid["version"], gid["netdev"]) == ("192.168.10.11", "v2", "ens6")


def test_configfs_is_read_only_where_somebody_made_the_folder(tmp_path: Path) -> None:
    """No folder of rdma_cm is made; a value that is there is read."""
    device(tmp_path)
    (tmp_path / "sys/kernel/config/rdma_cm").mkdir(parents=True)
    rdma._infiniband(Context(str(tmp_path)))
    assert list((tmp_path / "sys/kernel/config/rdma_cm").iterdir()) == []
    put(tmp_path, {"sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos": "106\n"})
    snapshot = snapshot_of(rdma._infiniband(Context(str(tmp_path))), "sysfs.infiniband")
    assert snapshot.value("rdma.port.default_tos", port("mlx5_0")) == 106


def test_a_node_without_rdma_is_absent(tmp_path: Path) -> None:
    """No device is an answer, not an error."""
    for ask in (rdma._infiniband, rdma._net, rdma._gpudirect, rdma._congestion, rdma._dcb, rdma._pause):
        with pytest.raises(Absent):
            ask(Context(str(tmp_path)))


def test_roce_settings_of_the_out_of_tree_driver_are_read(tmp_path: Path) -> None:
    """Trust and ECN of DOCA-OFED; with the in-box driver the files are not there, and no fact is made up."""
    ecn = {f"ecn/roce_{end}/enable/{number}": "1\n" for end in ("np", "rp") for number in range(8)}
    interface(tmp_path, **{"qos/trust": "dscp\n"}, **ecn)
    interface(tmp_path, "ens7", "mlx5_1")
    snapshot = snapshot_of(rdma._net(Context(str(tmp_path))), "sysfs.net")
    assert snapshot.value("roce.trust", RAIL) == "dscp"
    assert snapshot.value("roce.ecn.rp", RAIL) == (True,) * 8
    assert snapshot.value("net.rdma_port", RAIL) == "mlx5_0/1"
    assert snapshot.value("net.bus", RAIL) == "0000:16:00.0"
    assert not snapshot.get(Subject("netdev", "ens7"), "roce.trust").present


def test_an_interface_without_link_has_no_speed(tmp_path: Path) -> None:
    """A speed of -1 is no number of Gb/s."""
    interface(tmp_path, speed="-1\n", operstate="down\n")
    value = snapshot_of(rdma._net(Context(str(tmp_path))), "sysfs.net").get(RAIL, "net.speed").value
    assert isinstance(value, Missing)
    assert value.reason is Reason.ABSENT


def test_virtual_interfaces_and_forged_names_are_left_alone(tmp_path: Path) -> None:
    """Bridges and containers' interfaces have no PCI path; a name with a blank is none the kernel gives."""
    interface(tmp_path)
    links = tmp_path / "sys/class/net"
    (links / "veth0").symlink_to("../../devices/virtual/net/veth0")
    (links / "a b").symlink_to("../../devices/pci0000:15/0000:16:00.0/net/ens6")
    (links / "loop").symlink_to("loop")
    snapshot = snapshot_of(rdma._net(Context(str(tmp_path))), "sysfs.net")
    assert [str(subject) for subject in snapshot.subjects("netdev")] == ["ens6"]


def test_rails_in_one_network_are_recognised(tmp_path: Path) -> None:
    """The main routing table tells which interfaces share a network."""
    interface(tmp_path)
    interface(tmp_path, "ens7", "mlx5_1")
    row = "{}\t0000000A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n"
    put(tmp_path, {"proc/net/route": "Iface\tDestination\n" + row.format("ens6") + row.format("ens7")})
    snapshot = snapshot_of(rdma._net(Context(str(tmp_path))), "sysfs.net")
    assert snapshot.value("net.subnets", RAIL) == ("10.0.0.0/16",)
    assert snapshot.value("net.subnet_shared", RAIL) is True


def test_an_attribute_that_is_a_huge_file_is_cut(tmp_path: Path) -> None:
    """No more than a page or two of an attribute is taken, and it is not taken for a value."""
    interface(tmp_path, mtu="9" * 2_000_000)
    text = rdma._net(Context(str(tmp_path)))
    assert len(text) < 20_000
    assert not snapshot_of(text, "sysfs.net").get(RAIL, "net.mtu").present


def oldest_python() -> str | None:
    """Find a Python 3.9 that runs; a name on PATH may be a launcher without one behind it."""
    found = shutil.which("python3.9")
    if found is None or subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode:
        return None
    return found


def test_the_oldest_python_of_a_node_runs_it(tmp_path: Path, root: Path) -> None:
    """PCI and RDMA sources run on Python 3.9."""
    python = oldest_python()
    if python is None:
        pytest.skip("no Python 3.9 here")
    device(tmp_path)
    code = (
        "from hwcheck.sources import pci, rdma\nfrom hwcheck.sources.source import Context\n"
        f"print(rdma._infiniband(Context({str(tmp_path)!r})).decode())"
    )
    done = subprocess.run([python, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert "4: ACTIVE" in done.stdout
