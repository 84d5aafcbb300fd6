"""
RDMA and the network interfaces behind it: ports, counters, GIDs, RoCE settings, and the ways of GPUDirect RDMA.

Everything here asks a driver (a counter of a port is a command to the firmware of the card), so it runs in children. No
directory is made in configfs: ``default_roce_tos`` is read where somebody has made its folder before.
"""

import os

from hwcheck.sources import read
from hwcheck.sources.source import DEEP, Absent, Source

_DEVICES = "/sys/class/infiniband/"
_NETDEVS = "/sys/class/net/"
_OF_DEVICE = ("hca_type", "fw_ver", "board_id", "node_guid", "sys_image_guid")
_OF_PORT = ("state", "phys_state", "link_layer", "rate", "lid", "sm_lid")
COUNTERS = (
    "link_downed", "link_error_recovery", "symbol_error", "local_link_integrity_errors",
    "excessive_buffer_overrun_errors", "port_rcv_errors", "port_rcv_remote_physical_errors", "port_xmit_discards",
    "port_xmit_wait", "port_rcv_data", "port_xmit_data",
)  # fmt: skip
HW_COUNTERS = (
    "out_of_sequence", "packet_seq_err", "local_ack_timeout_err", "rnr_nak_retry_err", "implied_nak_seq_err",
    "out_of_buffer", "rx_icrc_encapsulated", "roce_slow_restart", "roce_adp_retrans", "roce_adp_retrans_to",
    "np_ecn_marked_roce_packets", "np_cnp_sent", "rp_cnp_handled", "req_cqe_error", "resp_cqe_error",
)  # fmt: skip
_EMPTY_GIDS = 8  # so many empty entries in a row are taken for the end of a table of 256
_OF_NETDEV = ("operstate", "mtu", "speed", "duplex", "type", "dev_port", "carrier_changes", "qos/trust")
_GPUDIRECT = (
    "/sys/module/nvidia_peermem/version", "/sys/module/nv_peer_mem/version", "/sys/kernel/mm/memory_peers/*/version",
)  # fmt: skip


def _names(path):
    """List a folder, without names that no driver gives: they could pass for another line."""
    try:
        return sorted(name for name in os.listdir(path) if name.isprintable() and " " not in name)
    except OSError:
        return []


def _link(path):
    try:
        return os.readlink(path).replace("\n", "?")
    except OSError:
        return ""


def _infiniband(context):
    root, lines = context.root, []

    def add(path):
        text = read.value(root + path)
        if text != "!absent":
            lines.append(path + ": " + text)
        return text

    for device in _names(root + _DEVICES):
        here = _DEVICES + device
        for name in _OF_DEVICE:
            add(here + "/" + name)
        lines.append(here + "/device -> " + _link(root + here + "/device"))
        lines.extend(here + "/device/net/" + name + ": " for name in _names(root + here + "/device/net"))
        for port in _names(root + here + "/ports"):
            at = here + "/ports/" + port
            for name in _OF_PORT:
                add(at + "/" + name)
            for name in COUNTERS if "counters" not in context.off else ():
                add(at + "/counters/" + name)
            for name in HW_COUNTERS if "counters" not in context.off else ():
                add(at + "/hw_counters/" + name)
            _gids(root, at, lines)
            add(here + "/tc/" + port + "/traffic_class")
    if not lines:
        raise Absent(_DEVICES)
    for path in read.expand(root, "/sys/kernel/config/rdma_cm/*/ports/*/default_roce_tos"):
        add(path)
    return _text(lines)


def _gids(root, at, lines):
    """Add the GIDs that are set, with type and interface; most of the table is empty."""
    empty, index = 0, 0
    while empty < _EMPTY_GIDS and index < 256:
        gid = read.value(root + at + "/gids/%d" % index)
        if gid.startswith("!"):
            return
        if gid.strip("0:"):
            empty = 0
            for name, text in (
                ("gids/%d" % index, gid),
                ("gid_attrs/types/%d" % index, read.value(root + at + "/gid_attrs/types/%d" % index)),
                ("gid_attrs/ndevs/%d" % index, read.value(root + at + "/gid_attrs/ndevs/%d" % index)),
            ):
                lines.append(at + "/" + name + ": " + text)
        else:
            empty += 1
        index += 1


def _interfaces(context):
    """Return the network interfaces on PCI, without virtual functions."""
    found = []
    for name in _names(context.root + _NETDEVS):
        path = _link(context.root + _NETDEVS + name)
        if "/pci" in path and not os.path.lexists(context.root + _NETDEVS + name + "/device/physfn"):
            found.append((name, path))
    return found


def _net(context):
    root, lines = context.root, []
    for name, path in _interfaces(context):
        here = _NETDEVS + name
        lines.append(here + " -> " + path)
        driver = _link(root + here + "/device/driver")
        if driver:
            lines.append(here + "/device/driver -> " + driver)
        lines.extend(here + "/device/infiniband/" + one + ": " for one in _names(root + here + "/device/infiniband"))
        files = [here + "/" + file for file in _OF_NETDEV]
        if os.path.isdir(root + here + "/ecn"):
            files += [here + "/ecn/roce_%s/enable/%d" % (end, n) for end in ("np", "rp") for n in range(8)]
        _files(root, files, lines)
    if not lines:
        raise Absent("a network interface on PCI in " + _NETDEVS)
    try:
        routes = read.read(root + "/proc/net/route").decode("ascii", "replace").splitlines()[1:]
    except (OSError, Absent):
        routes = []
    lines.extend("/proc/net/route: " + " ".join(row.split()) for row in routes[:4000])
    return _text(lines)


def _files(root, files, lines):
    for path in files:
        text = read.value(root + path)
        if text != "!absent":
            lines.append(path + ": " + text)


def _pause(context):
    """Ask each interface for its pause parameters, as ``ethtool -a`` prints them; by ioctl, so nothing is spawned."""
    import _socket
    import array
    import fcntl
    import struct

    if context.root:
        raise Absent("an ioctl has no root: the kernel's own interfaces would answer")
    parts = []
    with_socket = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
    for name, _ in _interfaces(context):
        answer = array.array("B", struct.pack("=IIII", 0x12, 0, 0, 0))  # ETHTOOL_GPAUSEPARAM
        ask = struct.pack("16sP16x", name.encode()[:15], answer.buffer_info()[0])
        try:
            fcntl.ioctl(with_socket.fileno(), 0x8946, ask)  # SIOCETHTOOL
        except OSError:
            continue  # a driver without pause frames
        words = ["on" if flag else "off" for flag in struct.unpack("=IIII", answer.tobytes())[1:]]
        parts.append("Pause parameters for %s:\nAutonegotiate: %s\nRX: %s\nTX: %s\n" % (name, *words))
    if not parts:
        raise Absent("pause parameters of an interface on PCI")
    return "".join(parts).encode("utf-8", "replace")


def _gpudirect(context):
    return read.flat(context, _GPUDIRECT)


def _dcb(context):
    """Ask iproute2's dcb for each interface of mlx5: the in-box way to PFC and the DSCP map."""
    import subprocess

    parts = []
    for name, _ in _interfaces(context):
        if not _link(context.root + _NETDEVS + name + "/device/driver").endswith("/mlx5_core"):
            continue
        for what in (("pfc", "show"), ("-N", "app", "show")):
            command = ["dcb", *what, "dev", name]
            try:
                done = subprocess.run(  # noqa: S603 - a fixed tool, a name that the kernel gave, no shell
                    command, stdin=subprocess.DEVNULL, capture_output=True, timeout=5, check=False
                )
            except FileNotFoundError:
                raise Absent("dcb of iproute2") from None
            except subprocess.TimeoutExpired:
                continue
            parts.append(b"==> " + " ".join(command).encode() + b" <==\n" + done.stdout + done.stderr)
    if not parts:
        raise Absent("an interface of mlx5_core")
    return b"".join(parts)


def _congestion(context):
    return read.flat(context, ("/sys/kernel/debug/mlx5/*/cc_params/*",))


def _peer_client(context):
    """Look for the symbol by which OFED's ib_core takes GPU memory from other modules."""
    path = context.root + "/proc/kallsyms"
    try:
        with open(path, "rb") as file:
            rows = [row.split() for row in file if b"ib_register_peer_memory_client" in row]
    except FileNotFoundError:
        raise Absent("/proc/kallsyms") from None
    found = b"yes" if rows else b"no"
    return b"/proc/kallsyms ib_register_peer_memory_client: " + found + b"\n"


def _text(lines):
    return ("\n".join(lines) + "\n").encode("utf-8", "replace")


SOURCES = (
    Source("infiniband", "sysfs.infiniband", _infiniband, child=True, deadline=15.0, note="recorded"),
    Source("net", "sysfs.net", _net, child=True, deadline=10.0, note="iron"),
    Source("net-pause", "ethtool.a", _pause, child=True, deadline=10.0, note="lab"),
    Source("gpudirect", "gpudirect", _gpudirect, note="lab"),
    Source("dcb", "dcb", _dcb, tier=DEEP, child=True, deadline=60.0, note="lab"),
    Source(
        "roce-congestion", "mlx5.cc_params", _congestion, tier=DEEP, child=True, deadline=20.0, root=True, note="lab"
    ),
    Source("peer-client", "gpudirect", _peer_client, tier=DEEP, child=True, deadline=20.0, note="lab"),
)
