"""What a port and the host are like around a measurement between two nodes: state, rate, who else is at work."""

import os

from hwcheck.sources import load_before, load_binding

_PORT, _NET = "/sys/class/infiniband/%s/ports/%d/", "/sys/class/net/"
_DAEMONS = frozenset(("ibacm", "opensm", "iwpmd", "rdma-ndd", "srp_daemon"))  # hold devices, and are no work
_PROCESSES = 16  # names that are told


def look(order):
    """
    Return ``state`` and ``rate`` (Gb/s) of the port, as far as sysfs tells them.

    Args:
        order: ``device`` and ``number``; ``device`` is "" where the port is not known.
    """
    told = {}
    if order["device"]:
        path = _PORT % (order["device"], order["number"])
        state = load_before.first_line(path + "state").strip()
        if state:
            told["state"] = state.rpartition(": ")[2]
        rate = load_before.first_line(path + "rate").split()
        if rate[1:2] == ["Gb/sec"]:
            told["rate"] = float(rate[0])
    return told


def around(order, context):
    """Bind to the port's NUMA node and look at the host for a moment; returns what this end tells of itself."""
    node = load_binding.numa_node(context, order["pci"]) if order["pci"] else -1
    told = {**load_binding.bind(context, node), **load_before.host_before(context.root), **look(order)}
    if order["device"]:
        told["rdma_users"] = _users_of_verbs()
    return told


def together(mine, other):
    """
    Join what the two ends tell: the busier host, all users of RDMA devices; bound only where both are.

    Args:
        mine: of the client.
        other: of the server.
    """
    told = {key: value for key, value in mine.items() if key not in ("state", "rate")}
    told["busy"] = max(mine.get("busy", 0.0), other.get("busy", 0.0))
    for end, of in (("client", mine), ("server", other)):
        told.update(("%s_%s" % (end, key), of[key]) for key in ("state", "rate") if key in of)
    if "rdma_users" in mine:
        told["rdma_users"] = mine["rdma_users"] + other.get("rdma_users", [])
    if other.get("numa_bound") is False:
        told["numa_bound"] = False
    return told


def _users_of_verbs():
    """List the processes that have an RDMA device open."""
    found = {}
    for pid in os.listdir("/proc"):
        if not pid.isdigit() or int(pid) == os.getpid():
            continue
        try:
            names = [os.readlink("/proc/%s/fd/%s" % (pid, fd)) for fd in os.listdir("/proc/%s/fd" % pid)]
        except OSError:
            continue
        if any(name.startswith("/dev/infiniband/uverbs") for name in names):
            who = load_before.first_line("/proc/%s/comm" % pid).strip()
            if who not in _DAEMONS:
                found[pid] = who
    return ["%s %s" % item for item in sorted(found.items())][:_PROCESSES]


def sent():
    """Return the bytes that each network interface has sent so far."""
    found = {}
    for name in os.listdir(_NET):
        text = load_before.first_line(_NET + name + "/statistics/tx_bytes").strip()
        if text.isdigit():
            found[name] = int(text)
    return found


def carrier(before, after):
    """Return the interface that sent most between two looks, and its rate in Gb/s (0 where it does not tell)."""
    grown = {name: count - before.get(name, 0) for name, count in after.items()}
    name = max(sorted(grown), key=lambda one: grown[one], default="")
    speed = load_before.first_line(_NET + name + "/speed").strip() if name else ""
    return name, int(speed) / 1000.0 if speed.isdigit() else 0.0


def address_of(interface):
    """Return the IPv4 address of an interface; "" where it has none."""
    import fcntl
    import socket
    import struct

    ask = struct.pack("16s240x", interface.encode("ascii", "replace")[:15])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            answer = fcntl.ioctl(one.fileno(), 0x8915, ask)  # SIOCGIFADDR
        except OSError:
            return ""
    return socket.inet_ntoa(answer[20:24])


def reached_at():
    """Return the address at which the connection that started us has reached this node; "" where nobody tells."""
    words = os.environ.get("SSH_CONNECTION", "").split()
    return words[2] if len(words) == 4 else ""
