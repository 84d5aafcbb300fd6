"""
``ibv_devinfo``: RDMA devices as verbs sees them, plain or ``-v``.

Source: ``ibv_devinfo`` of rdma-core (libibverbs-utils); its man page and public outputs.
Shape: one block a device, in it one a port; the subjects are the device ``mlx5_0`` and the port ``mlx5_0/1``.
Units: MTU in bytes. ``active_speed`` (with ``-v``) is the speed of *one lane* and not read; the rate stands in ibstat.
Missing: a device without its ports, or a port without ``link_layer`` while the first one has it, is cut off.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import Subject, count, port
from hwcheck.parse import port_words as words
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_DEVICE = re.compile(r"^\s*hca_id:\s*([\w.:-]{1,64})\s*$")
_PORT = re.compile(r"^\s*port:\s*(\d{1,3})\s*$")
_VALUE = re.compile(r"^\s*([a-z_]{4,24}):[ \t]*(\S.*)?$")
_GID = re.compile(r"^\s*GID\[\s*(\d{1,4})\]:\s*([0-9a-fA-F:.]{2,45})(?:,\s*(RoCE v[12]|IB/RoCE v1|IB))?\s*$")


def _mtu(text: str) -> int:
    return count(text.partition("(")[0])


_OF_DEVICE = {
    "fw_ver": ("rdma.device.fw", words.short),
    "sys_image_guid": ("rdma.device.image_guid", words.short),
    "vendor_part_id": ("rdma.device.hca_type", words.hca_type),
    "board_id": ("rdma.device.psid", words.short),
}
_OF_PORT = {
    "state": ("rdma.port.state", words.port_state),
    "phys_state": ("rdma.port.phys_state", words.physical_state),
    "max_mtu": ("rdma.port.mtu.max", _mtu),
    "active_mtu": ("rdma.port.mtu", _mtu),
    "sm_lid": ("rdma.port.sm_lid", words.lid),
    "port_lid": ("rdma.port.lid", words.lid),
    "link_layer": ("rdma.port.link_layer", words.link_layer),
}
_GIVES = (
    *(name for name, _ in _OF_DEVICE.values()), "rdma.device.model",
    *(name for key, (name, _) in _OF_PORT.items() if key != "phys_state"), "rdma.port.hca_type",
)  # fmt: skip


@fmt(
    "ibv_devinfo",
    "ibv_devinfo",
    gives=_GIVES,
    opens=r"\s*hca_id:\s*[\w.:-]{1,64}\s*$",
    continues=(
        r"\s+\S|\s*$|(?:hca_id|transport|fw_ver|node_guid|sys_image_guid|vendor_id|vendor_part_id|hw_ver|board_id"
        r"|phys_port_cnt|port|state|max_mtu|active_mtu|sm_lid|port_lid|port_lmc|link_layer):"
    ),
    command=r"(?:^|[\s/|;&])ibv_devinfo(?:\s+-{0,2}[\w.:-]+)*\s*$",
)
def parse_ibv_devinfo(output: Output, facts: FactSink) -> None:
    """Read devices and ports."""
    last = max((i for i, text in enumerate(output.lines) if text.strip()), default=-1)
    complete = _is_complete(output.lines)
    ports, devices = words.Ports(facts), words.Devices(facts)
    device, kind, block = "", "", ""
    for index, text in enumerate(output.lines):
        line = output.first_line + index
        if match := _DEVICE.match(text):
            device, kind, block = match[1], "", ""
        elif device and (match := _PORT.match(text)):
            block = match[1]
            if kind:
                ports.put(port(device, block), "rdma.port.hca_type", words.hca_type, kind, line)
        elif device and (match := _VALUE.match(text)):
            told = "" if index == last and not complete else match[2] or ""
            kind = told.strip() if match[1] == "vendor_part_id" else kind
            if block and match[1] in _OF_PORT:
                ports.put(port(device, block), *_OF_PORT[match[1]], told, line)
            elif not block and match[1] in _OF_DEVICE:
                devices.put(Subject("nic", device), *_OF_DEVICE[match[1]], told, line)
    ports.close()
    devices.close()
    _gids(output, facts)
    if not complete:
        facts.cut_off("ibv_devinfo ends in the middle of a device", _GIVES)


def _gids(output: Output, facts: FactSink) -> None:
    """Collect the GID table that ``-v`` prints; the interface is not told."""
    device, block = "", ""
    found: dict[Subject, tuple[list[dict[str, object]], int]] = {}
    for index, text in enumerate(output.lines):
        if match := _DEVICE.match(text):
            device, block = match[1], ""
        elif match := _PORT.match(text):
            block = match[1]
        elif device and block and (match := _GID.match(text)) and match[3] and match[3].startswith("RoCE"):
            subject = port(device, block)
            rows, _ = found.setdefault(subject, ([], output.first_line + index))
            ip = match[2].rpartition(":")[2] if match[2].lower().startswith("::ffff:") and "." in match[2] else ""
            rows.append({"index": int(match[1]), "gid": match[2], "ip": ip, "version": match[3][-2:], "netdev": ""})
    for subject, (rows, line) in found.items():
        facts.put(subject, "rdma.port.gids", tuple(rows), line)


def _is_complete(lines: list[str]) -> bool:
    """Tell whether the last device has a port, and that port all lines of the first one but those of ``-v``."""
    ports: list[set[str]] = []
    have, started = 0, False
    for text in lines:
        if _DEVICE.match(text):
            have, started = 0, True
        elif _PORT.match(text):
            ports.append(set())
            have += 1
        elif have and (match := _VALUE.match(text)) and match[1] in _OF_PORT:
            ports[-1].add(match[1])
    if not have:
        return not started
    return ports[-1] >= ports[0] and ("link_layer" in ports[-1] or "max_mtu" not in ports[-1])
