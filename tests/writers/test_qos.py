"""RoCE settings with either driver: written, kept by a unit for each port, undone; InfiniBand and gaps refused."""

from __future__ import annotations

import errno
import os
import shutil
from typing import Any

import pytest

from hwcheck.writers import udev
from hwcheck.writers.place import Place
from hwcheck.writers.qos import UNIT
from tests.writers.conftest import Node, status

NET, RDMA, PCI = "/sys/class/net/ens1", "/sys/class/infiniband/mlx5_0", "0000:19:00.0"
CONFIGFS = "/sys/kernel/config/rdma_cm"
TOS = f"{CONFIGFS}/mlx5_0/ports/1/default_roce_tos"
DCB = """
[ -e $ROOT/no-dcb ] && { echo "Attribute read: Operation not supported" >&2; exit 1; }
exec python3 - $ROOT "$@" <<'END'
import json, os, sys
root, words = sys.argv[1], [word for word in sys.argv[2:] if word not in ("-j", "-N")]
table, verb, device, rest = words[0], words[1], words[3], words[5:]
file = f"{root}/dcb/{table}"
kept = json.load(open(file)) if os.path.exists(file) else []
if verb == "show":
    if table == "pfc":
        print(json.dumps({"pfc_cap": 8, "prio_pfc": [one in kept for one in range(8)]}))
    else:
        print(json.dumps({"dscp_prio": kept} if kept else {}))
    sys.exit()
if os.path.exists(root + "/dcbx"):
    sys.exit()
for word in rest:
    first, _, last = word.partition(":")
    if table == "pfc":
        kept = [] if first == "all" else sorted({*kept, int(first)})
    else:
        pair = [int(first), int(last)]
        if verb == "del":
            kept.remove(pair)
        else:
            kept = sorted([one for one in kept if one[0] != pair[0]] + [pair])
os.makedirs(root + "/dcb", exist_ok=True)
json.dump(kept, open(file, "w"))
trust = f"{root}/sys/class/net/{device}/qos/trust"
if table == "app" and os.path.exists(trust):
    open(trust, "w").write("dscp\\n" if kept else "pcp\\n")
END"""


def step(key: str, value: str, subject: str = "ens1") -> dict[str, Any]:
    """Return a step."""
    return {"id": f"test.{key}", "subject": subject, "mechanism": "qos", "key": key, "value": value}


@pytest.fixture
def inbox(node: Node) -> Node:
    """Return a node with one RoCE port and the in-box driver."""
    here = node.root / "sys/devices/pci0000:15" / PCI
    (here / "net/ens1").mkdir(parents=True)
    (here / "infiniband/mlx5_0/ports/1").mkdir(parents=True)
    for kind, name in (("net", "ens1"), ("infiniband", "mlx5_0")):
        link = node.root / "sys/class" / kind / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(f"../../devices/pci0000:15/{PCI}/{kind}/{name}")
        (here / kind / name / "device").symlink_to("../..")
    (node.root / "sys/bus/pci/devices").mkdir(parents=True)
    (node.root / "sys/bus/pci/devices" / PCI).symlink_to(f"../../../devices/pci0000:15/{PCI}")
    node.put(f"{RDMA}/ports/1/link_layer", "Ethernet\n")
    node.put(f"{NET}/dev_port", "0\n")
    node.put(f"{NET}/type", "1\n")
    (node.root / CONFIGFS[1:]).mkdir(parents=True)
    node.program("dcb", DCB)
    node.program("systemctl")
    node.program("udevadm")
    return node


@pytest.fixture
def ofed(inbox: Node) -> Node:
    """Return the same with DOCA-OFED."""
    inbox.put(f"{NET}/qos/trust", "pcp\n")
    for priority in range(8):
        inbox.put(f"{NET}/ecn/roce_np/enable/{priority}", "0\n")
        inbox.put(f"{NET}/ecn/roce_rp/enable/{priority}", "1\n")
    inbox.put(f"{NET}/ecn/roce_np/cnp_dscp", "0\n")
    inbox.put(f"{NET}/ecn/roce_np/cnp_802p_prio", "0\n")
    inbox.put(f"{RDMA}/tc/1/traffic_class", "\n")
    return inbox


@pytest.fixture(autouse=True)
def kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a traffic class file take and show a byte as the driver does, and not know -1."""
    plain = Place.set_value

    def set_value(self: Place, path: str, text: str) -> None:
        if path.endswith("/traffic_class"):
            if text == "-1":
                raise OSError(errno.EINVAL, "Invalid argument")
            text = "" if text == "0" else f"Global tclass={text}"
        plain(self, path, text)

    monkeypatch.setattr(Place, "set_value", set_value)


def settled(node: Node, *steps: dict[str, Any], count: int) -> None:
    """Check the round trip, with the tables of DCB as before where there were none."""
    node.put("/dcb/pfc", "[]")
    node.put("/dcb/app", "[]")
    node.round_trip(*steps, count=count)


def test_the_in_box_driver_is_set_by_dcb_and_debugfs(inbox: Node) -> None:
    """PFC and DSCP map by dcb, notifications by cc_params, all of them again by one unit."""
    folder = f"/sys/kernel/debug/mlx5/{PCI}/cc_params"
    inbox.put(f"{folder}/np_cnp_dscp", "48\n")
    inbox.put(f"{folder}/np_cnp_prio", "6\n")
    steps = [step("pfc", "3"), step("dscp", "48:6 26:3"), step("cnp_dscp", "46"), step("cnp_prio", "5", PCI)]
    settled(inbox, *steps, count=4)
    assert (inbox.text("/dcb/pfc"), inbox.text("/dcb/app")) == ("[3]", "[[26, 3], [48, 6]]")
    assert inbox.text(f"{folder}/np_cnp_dscp") == "46\n"
    text = inbox.text(UNIT.settings("ens1")) or ""
    assert "\nExecStart=-/usr/bin/dcb pfc set dev ens1 prio-pfc all:off 3:on\n" in text
    assert "\nExecStart=-/usr/bin/dcb app replace dev ens1 dscp-prio 26:3 48:6\n" in text
    assert f"echo 46 > {folder}/np_cnp_dscp'" in text
    assert (
        'SUBSYSTEM=="net", KERNEL=="ens1", DRIVERS=="mlx5_core", TAG+="systemd", '
        'ENV{SYSTEMD_WANTS}+="hwcheck-qos@%k.service"'
    ) in (inbox.text(udev.FILE) or "")


def test_ofed_is_set_by_its_files(ofed: Node) -> None:
    """Trust, ECN at both ends, notifications, forced class; trust first, since it fills the DSCP table."""
    steps = [
        step("dscp", "26:3"), step("trust", "dscp"), step("ecn_np", "3"), step("ecn_rp", "3,4"), step("cnp_dscp", "48"),
        step("cnp_prio", "6"), step("traffic_class", "106", "mlx5_0/1"), step("pfc", "none"),
    ]  # fmt: skip
    settled(ofed, *steps, count=6)
    assert ofed.text(f"{NET}/qos/trust") == "dscp\n"
    assert [ofed.text(f"{NET}/ecn/roce_np/enable/{n}") for n in (2, 3)] == ["0\n", "1\n"]
    assert ofed.text(f"{RDMA}/tc/1/traffic_class") == "Global tclass=106\n"
    assert 'SUBSYSTEM=="infiniband", KERNEL=="mlx5_0", TAG+="systemd"' in (ofed.text(udev.FILE) or "")
    assert "mlx5_0/1 traffic_class" in {one["key"] for one in ofed.stage("held")["held"]}


def test_ecn_can_be_turned_off_everywhere(ofed: Node) -> None:
    """None is none; priorities are at least these."""
    assert status(ofed.apply(step("ecn_rp", "3"))) == [("right", "")]
    assert status(ofed.apply(step("ecn_rp", "none"), run="r2")) == [("changed", "")]
    assert {ofed.text(f"{NET}/ecn/roce_rp/enable/{n}") for n in range(8)} == {"0\n"}
    assert "for i in 0 1 2 3 4 5 6 7; do echo 0 >" in (ofed.text(UNIT.settings("ens1")) or "")


def test_pfc_of_others_is_turned_off_and_comes_back(inbox: Node) -> None:
    """The table is replaced, never added to; undone it is as before; so is a DSCP that had another priority."""
    inbox.put("/dcb/pfc", "[0, 5]")
    inbox.put("/dcb/app", "[[26, 2], [30, 3]]")
    assert status(inbox.apply(step("pfc", "3"), step("dscp", "26:3,48:6"))) == [("changed", ""), ("changed", "")]
    assert (inbox.text("/dcb/pfc"), inbox.text("/dcb/app")) == ("[3]", "[[26, 3], [30, 3], [48, 6]]")
    assert inbox.stage("undo")["results"] == []
    assert (inbox.text("/dcb/pfc"), inbox.text("/dcb/app")) == ("[0, 5]", "[[26, 2], [30, 3]]")


def test_a_switch_that_takes_the_setting_back_is_noticed(inbox: Node) -> None:
    """DCBX in the firmware: the write succeeds and reads otherwise; nothing stays."""
    inbox.put("/dcbx", "")
    inbox.put("/dcb/pfc", "[]")
    done = inbox.apply(step("pfc", "3"))
    assert not done["ok"]
    assert "reads 'none' instead of '3'" in status(done)[0][1]
    assert inbox.text(udev.FILE) is None
    assert inbox.text(UNIT.path) is None


def test_the_byte_of_rdma_cm_is_written_in_a_folder_of_configfs(inbox: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is made where it is missing, not for a look; undone, the hidden value comes back and the folder goes."""
    hidden = ["32\n"]
    make = os.mkdir

    def mkdir(path: str, *more: int) -> None:
        make(path, *more)
        if str(path).endswith("/rdma_cm/mlx5_0"):
            inbox.put(TOS, hidden[0])

    def rmdir(path: str) -> None:
        if str(path).endswith("/rdma_cm/mlx5_0"):
            hidden[0] = inbox.text(TOS) or ""
            shutil.move(path, inbox.root.parent / "gone")
        else:
            remove(path)

    remove = os.rmdir
    monkeypatch.setattr(os, "mkdir", mkdir)
    monkeypatch.setattr(os, "rmdir", rmdir)
    inbox.stage("check", step("default_tos", "106", "mlx5_0"))
    assert inbox.text(TOS) is None
    assert status(inbox.apply(step("default_tos", "106", "mlx5_0"))) == [("changed", "")]
    assert inbox.text(TOS) == "106\n"
    assert "mkdir -p /sys/kernel/config/rdma_cm/mlx5_0 && echo 106 >" in (inbox.text(UNIT.settings("mlx5_0")) or "")
    assert not inbox.apply(step("default_tos", "106", "mlx5_0"), run="r2")["changed"]
    assert inbox.stage("undo")["results"] == []
    assert (inbox.text(TOS), hidden) == (None, ["32\n"])


def test_a_folder_that_is_there_is_a_plain_file(inbox: Node) -> None:
    """Somebody made it: it stays."""
    inbox.put(TOS, "0\n")
    inbox.round_trip(step("default_tos", "106", "mlx5_0"))


def test_a_port_is_found_by_each_of_its_names(ofed: Node) -> None:
    """Interface, device, port and PCI address are one port."""
    for run, name in enumerate(("ens1", "mlx5_0", "mlx5_0/1", PCI)):
        told = ofed.stage("check", step("cnp_dscp", "48", name), run=f"r{run}")["results"][0]
        assert told["before"]["running"] == "0"


def test_a_port_is_retired_key_by_key(ofed: Node) -> None:
    """Drop-in and rule lose their lines; unit and files go with the last."""
    ofed.put("/dcb/pfc", "[]")
    ofed.apply(step("pfc", "3"), step("cnp_dscp", "48"))
    assert status(ofed.apply(step("pfc", "absent"), run="r2")) == [("changed", "")]
    assert "pfc" not in (ofed.text(UNIT.settings("ens1")) or "")
    assert ofed.text(UNIT.path) is not None
    assert status(ofed.apply(step("cnp_dscp", "absent"), run="r3")) == [("changed", "")]
    assert [ofed.text(path) for path in (UNIT.settings("ens1"), UNIT.path, udev.FILE)] == [None, None, None]


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("trust", "dscp", "trusts DSCP as long as one is mapped"),
        ("ecn_np", "3", "ROCE_CC_PRIO_MASK"),
        ("cnp_dscp", "48", "debugfs"),
        ("traffic_class", "106", "NCCL_IB_TC"),
    ],
)
def test_what_the_in_box_driver_does_not_have_is_refused(inbox: Node, key: str, value: str, why: str) -> None:
    """With what does it instead."""
    before = inbox.tree()
    told = status(inbox.apply(step(key, value)))
    assert told[0][0] == "refused"
    assert why in told[0][1]
    assert inbox.tree() == before


@pytest.mark.parametrize(
    ("key", "value"),
    [("trust", "both"), ("pfc", "8"), ("pfc", ""), ("pfc", "3;reboot"), ("dscp", "26"), ("dscp", "64:3"),
     ("dscp", "26:8"), ("cnp_dscp", "64"), ("cnp_prio", "-1"), ("default_tos", "256"), ("traffic_class", "x"),
     ("speed", "1")],
)  # fmt: skip
def test_values_that_no_port_has_are_refused(ofed: Node, key: str, value: str) -> None:
    """Nothing is written."""
    before = ofed.tree()
    assert status(ofed.apply(step(key, value)))[0][0] == "refused"
    assert ofed.tree() == before


@pytest.mark.parametrize("case", ["link_layer", "type", "no-dcb", "nobody", "name", "configfs"])
def test_a_port_that_has_none_of_it_is_refused(inbox: Node, case: str) -> None:
    """InfiniBand, an interface without DCB, no such port, a name that is none."""
    one, why = step("pfc", "3"), "not applicable on InfiniBand"
    if case == "link_layer":
        inbox.put(f"{RDMA}/ports/1/link_layer", "InfiniBand\n")
    elif case == "type":
        inbox.put("/sys/class/net/ib0/type", "32\n")
        one = step("pfc", "3", "ib0")
    elif case == "no-dcb":
        inbox.put("/no-dcb", "")
        why = "Operation not supported"
    elif case == "configfs":
        (inbox.root / CONFIGFS[1:]).rmdir()
        one, why = step("default_tos", "106"), "rdma_cm is not loaded"
    else:
        subject = "ens9" if case == "nobody" else "../../etc"
        one, why = step("pfc", "3", subject), subject
    told = status(inbox.apply(one))
    assert told[0][0] == "refused"
    assert why in told[0][1]
    assert inbox.text(udev.FILE) is None


def test_an_image_is_refused(image: Node) -> None:
    """Its adapters and driver are not known."""
    assert status(image.apply(step("pfc", "3")))[0][0] == "refused"
