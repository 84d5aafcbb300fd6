"""
``/sys/class/infiniband``: the tree flattened to lines, or one file of it.

Source: kernel ABI sysfs-class-infiniband; ``grep -r . /sys/class/infiniband/``, ``tail -n +1 FILES``, ``cat FILE``; a
    public capture of an H100 node.
Shape: ``PATH: value`` or ``PATH:value`` a line; or a line ``==> PATH <==`` before the value. Subjects: the
    device ``mlx5_0`` and the port ``mlx5_0/1``. The node program adds ``PATH -> target`` for the link to the PCI
    function, names under ``device/net``, and ``default_roce_tos`` of configfs where its folder is there.
Units: ``rate`` is Gb/s; ``port_rcv_data`` and ``port_xmit_data`` count units of 4 bytes; counters run since driver
    load.
Missing: an empty ``traffic_class`` is one that was never set: absent. ``Invalid argument``, ``No such file`` and
    ``Permission denied`` of grep, tail or cat are FAILED, ABSENT and DENIED; so are ``!error``, ``!absent`` and
    ``!denied`` of the node program. A counter that answers ``EINVAL`` is one that this port does not have.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from hwcheck.evidence import Output
from hwcheck.facts import Reason, Subject, count, pci_address, port
from hwcheck.facts.names.rdma import COUNTERS, HW_COUNTERS
from hwcheck.parse import port_words as words
from hwcheck.parse.format import fmt
from hwcheck.parse.gid_table import GidTables
from hwcheck.parse.sink import FactSink

_ROOT = "/sys/class/infiniband/"
_PATH = r"/sys/class/infiniband/[\w.-]{1,64}/[\w./-]{1,120}"
_FLAT = re.compile(rf"^\s*({_PATH}):\s?(.*)$")
_DEVICE = re.compile(r"^/sys/class/infiniband/([\w.-]{1,64})/device -> \S{0,300}/([0-9a-f:.]{7,16})$")
_TOS = re.compile(r"^/sys/kernel/config/rdma_cm/([\w.-]{1,64})/ports/(\d{1,3})/default_roce_tos: (\d{1,3})$")
_HEAD = re.compile(rf"^==> ({_PATH}) <==\s*$")
_CAT = re.compile(rf"({_PATH})\s*$")
_FILE = re.compile(r"^([\w.-]{1,64})/(?:(?:ports|tc)/(\d{1,3})/)?([\w/.@-]{1,80})$")
_ERRORS = {
    "!denied": Reason.DENIED,
    "!absent": Reason.ABSENT,
    "Permission denied": Reason.DENIED,
    "No such file or directory": Reason.ABSENT,
    "Invalid argument": Reason.FAILED,
    "Input/output error": Reason.FAILED,
}

_NO_COUNTER = ("!error EINVAL", "!error EOPNOTSUPP", "!error ENODATA")


def _traffic_class(text: str) -> int:
    value = count(text.rpartition("=")[2])
    if value > 255:
        raise ValueError("a traffic class is one byte")
    return value


_OF_DEVICE = {
    "hca_type": ("rdma.device.hca_type", words.hca_type),
    "fw_ver": ("rdma.device.fw", words.short),
    "board_id": ("rdma.device.psid", words.short),
    "node_guid": ("rdma.device.guid", words.short),
    "sys_image_guid": ("rdma.device.image_guid", words.short),
}
_OF_PORT = {
    "state": ("rdma.port.state", words.port_state),
    "phys_state": ("rdma.port.phys_state", words.physical_state),
    "link_layer": ("rdma.port.link_layer", words.link_layer),
    "lid": ("rdma.port.lid", words.lid),
    "sm_lid": ("rdma.port.sm_lid", words.lid),
    "traffic_class": ("rdma.port.traffic_class", _traffic_class),
    **{f"counters/{name}": (f"rdma.counter.{name}", count) for name in COUNTERS},
    **{f"hw_counters/{name}": (f"rdma.counter.{name}", count) for name in HW_COUNTERS},
}
_GIVES = (
    *(name for name, _ in _OF_DEVICE.values()), "rdma.device.model", "rdma.device.pci",
    "rdma.port.state", "rdma.port.phys_state", "rdma.port.link_layer", "rdma.port.rate", "rdma.port.hca_type",
)  # fmt: skip


class _Tree:
    """Puts file after file; ties the device's type to its ports once all files are read."""

    def __init__(self, facts: FactSink) -> None:
        self._facts = facts
        self._types: dict[str, tuple[str, int]] = {}
        self._seen: set[Subject] = set()
        self._ports, self._devices = words.Ports(facts), words.Devices(facts)
        self._gids = GidTables(facts)
        self._netdevs: dict[str, list[tuple[str, int]]] = {}

    def put(self, path: str, text: str, line: int) -> None:
        """Record the value of one file."""
        match = _FILE.match(path.removeprefix(_ROOT))
        if match is None:
            return
        device, number, name = match[1], match[2], match[3]
        subject = port(device, int(number)) if number else Subject("nic", device)
        known = _OF_PORT if number else _OF_DEVICE
        if number:
            self._seen.add(subject)
        if number and name.startswith(("gids/", "gid_attrs/")):
            self._gids.put(subject, name, text, line)
        elif number and name == "rate" and _gap(text) is None:
            self._ports.put_rate(subject, text, line)
        elif number and name == "rate":
            self._value(subject, "rdma.port.rate", str, text, line)
        elif name in known:
            self._value(subject, *known[name], text, line)
        elif name.startswith("device/net/"):
            self._netdevs.setdefault(device, []).append((name[11:], line))
        if not number and name == "hca_type":
            self._types[device] = text, line

    def _value(self, subject: Subject, name: str, read: Callable[[str], Any], text: str, line: int) -> None:
        reason = _gap(text)
        if reason is not None and not (name.startswith("rdma.counter.") and text in _NO_COUNTER):
            self._facts.missing(subject, name, reason, text.strip()[:60], line)
        elif reason is not None:
            self._facts.missing(subject, name, Reason.ABSENT, "this port does not count it", line)
        elif not text.strip() and name == "rdma.port.traffic_class":
            self._facts.missing(subject, name, Reason.ABSENT, "never set", line)
        else:
            (self._ports if subject.kind == "port" else self._devices).put(subject, name, read, text, line)

    def close(self) -> None:
        """Record the model of each device, and the type of the device at each of its ports."""
        for subject in sorted(self._seen):
            kind, line = self._types.get(subject.id.rpartition("/")[0], ("", 0))
            if kind:
                self._ports.put(subject, "rdma.port.hca_type", words.hca_type, kind, line)
            self._netdev(subject)
        self._gids.close()
        self._ports.close()
        self._devices.close()

    def _netdev(self, subject: Subject) -> None:
        """Record the interface of a port: the one of its GIDs, else the only one of the device that is no child."""
        named = self._gids.netdev(subject)
        mine = [one for one in self._netdevs.get(subject.id.rpartition("/")[0], ()) if not {".", "@"} & set(one[0])]
        if named:
            self._facts.put(subject, "rdma.port.netdev", *named)
        elif len(mine) == 1:
            self._facts.put(subject, "rdma.port.netdev", *mine[0])


def _gap(text: str) -> Reason | None:
    """Tell why there is no value; None where there is one."""
    if text.startswith("!error "):
        return Reason.FAILED
    return next((reason for said, reason in _ERRORS.items() if text.rstrip().endswith(said)), None)


@fmt(
    "sysfs.infiniband",
    "/sys/class/infiniband",
    gives=_GIVES,
    opens=(
        r"\s*/sys/class/infiniband/[\w.-]{1,64}/[\w./-]{1,120}:"
        r"|==> /sys/class/infiniband/[\w.-]{1,64}/\S{1,120} <==\s*$"
    ),
    continues=(
        r"\s*(?:/sys/class/infiniband/|==> /sys/class/infiniband/|$|(?:grep|cat|tail): /sys/class/infiniband/"
        r"|\d{1,3}: [A-Za-z_]{2,30}\s*$|\d{1,20}\s*$|[\d.]{1,7} Gb/sec|InfiniBand\s*$|Ethernet\s*$|MT_?\w{1,32}\s*$"
        r"|\d{1,3}\.\d{1,5}\.\d{1,6}\s*$|[0-9a-f]{4}(?::[0-9a-f]{4}){3,7}\s*$|0x[0-9a-f]{1,8}\s*$|Global tclass=\d)"
    ),
    command=r"\b(?:grep|tail|head)\b.{0,200}/sys/class/infiniband\b",
)
def parse_sysfs_infiniband(output: Output, facts: FactSink) -> None:
    """Read the flattened tree in either style."""
    tree, path = _Tree(facts), ""
    for index, text in enumerate(output.lines):
        line = output.first_line + index
        bare = re.sub(r"^\s*(?:grep|cat|tail): (?=/sys/)", "", text)
        if match := _HEAD.match(text):
            path = match[1]
        elif match := _FLAT.match(bare):
            tree.put(match[1], match[2], line)
        elif (match := _DEVICE.match(text)) and pci_address(match[2]):
            facts.put(Subject("nic", match[1]), "rdma.device.pci", pci_address(match[2]), line)
        elif (match := _TOS.match(text)) and int(match[3]) < 256:
            facts.put(port(match[1], match[2]), "rdma.port.default_tos", int(match[3]), line)
        elif path and text.strip():
            tree.put(path, text, line)
            path = ""
    tree.close()


@fmt(
    "sysfs.infiniband.cat",
    "a file of /sys/class/infiniband",
    gives=(),
    continues=r"[\w:./=() -]{0,100}$",
    command=r"\bcat\s+/sys/class/infiniband/[\w./-]{1,180}\s*$",
    rank=40,
)
def parse_one_file(output: Output, facts: FactSink) -> None:
    """Read what ``cat`` printed; which file it was stands in the command."""
    match = _CAT.search(output.command)
    if match is None:
        return
    told = [(i, text) for i, text in enumerate(output.lines) if text.strip()]
    index, text = told[0] if told else (0, "")
    tree = _Tree(facts)
    tree.put(match[1], text, output.first_line + index)
    tree.close()
