"""Network interfaces as ethtool shows them: link, duplex, speed, error counters."""

from __future__ import annotations

from collections.abc import Iterator

from hwcheck.checks.relation import Answer, Given, ok, relation, skip, warn
from hwcheck.facts.names.rdma import NET_COUNTERS
from hwcheck.findings import Remedy, Urgency

_LINK = Remedy(
    "hands",
    "Reseat cable and transceiver at both ends, look at the switch port, and set the interface up (ip link set NETDEV "
    "up); ethtool -m NETDEV and mlxlink -d DEVICE -m tell module and signal.",
    disturbs="network",
)
_DUPLEX = Remedy(
    "act",
    "Switch auto-negotiation on at both ends (ethtool -s NETDEV autoneg on), or fix both to full duplex.",
    disturbs="network",
)
_ERRORS = ("link_down_events_phy", "rx_crc_errors_phy", "rx_symbol_err_phy", "rx_pcs_symbol_err_phy")
_DROPS = ("rx_discards_phy", "tx_discards_phy", "rx_out_of_buffer")
_JUDGED = (*_ERRORS, *_DROPS)


@relation("rdma.netdev_link", needs=("net.link",), uses=("net.rdma_port",), urgency=Urgency.JOB_END, remedy=_LINK)
def interface_has_link(given: Given) -> Answer:
    """
    An interface that ethtool was asked for has a link.

    What it checks: "Link detected" of ethtool.
    Why it matters: who asks for one interface means it to carry traffic; without link it carries none.
    How to fix: cable, transceiver, switch port, and whether the interface is set up.
    Applies to: interfaces asked for by name. Where all interfaces of a node are listed, spare ones have no link.
    Source: ethtool(8).
    """
    name, origin = given.subject.id, given.origin("net.link")
    if given["net.link"]:
        return ok(f"{name} has a link", observed=True)
    if origin is None or not origin.source.startswith("ethtool"):
        return skip(f"{name} has no link; whether it is in use is not told", observed=False)
    port = given.maybe("net.rdma_port")
    behind = f" of RDMA port {port}" if port else ""
    return warn(f"{name}{behind} has no link", observed=False, expected=True)


@relation("rdma.netdev_duplex", needs=("net.duplex",), urgency=Urgency.MAINTENANCE, remedy=_DUPLEX)
def interface_is_full_duplex(given: Given) -> Answer:
    """
    An interface runs in full duplex.

    What it checks: "Duplex" of ethtool.
    Why it matters: half duplex is a negotiation that failed: one end was fixed, the other guessed; collisions and late
    frames follow under load.
    How to fix: the same negotiation at both ends.
    Applies to: Ethernet interfaces with a link.
    Source: ethtool(8); IEEE 802.3 knows no half duplex from 10 Gb/s on.
    """
    duplex = given["net.duplex"]
    if duplex.lower() == "half":
        return warn(f"{given.subject.id} runs in half duplex", observed=duplex, expected="Full")
    if duplex.lower() == "full":
        return ok(f"{given.subject.id} runs in full duplex", observed=duplex)
    return skip(f"{given.subject.id}: duplex is {duplex}", observed=duplex)


@relation("rdma.netdev_speed", needs=("net.speed",), uses=("net.speed_max", "net.link"))
def interface_speed(given: Given) -> Answer | None:
    """
    An interface runs at the highest speed that it supports.

    What it checks: "Speed" of ethtool against the fastest of its "Supported link modes".
    Why it matters: a slower cable, transceiver or switch port sets the pace of the interface.
    How to fix: nothing where the fabric is made for the lower speed.
    Applies to: interfaces with a link. A lower speed is told and not judged: adapters are often faster than the fabric.
    Source: ethtool(8).
    """
    if given.maybe("net.link") is False:
        return None
    speed, most = given["net.speed"], given.maybe("net.speed_max")
    text = f"{given.subject.id} runs at {speed:g} Gb/s"
    if most is None:
        return skip(f"{text}; what it supports is not told", observed=speed)
    if speed < most:
        return skip(f"{text} and supports {most:g}; whether the fabric is slower is not told", observed=speed)
    return ok(f"{text}, the most it supports", observed=speed, expected=most)


@relation(
    "rdma.netdev_counters",
    any_of=tuple(f"net.counter.{name}" for name in NET_COUNTERS),
    uses=tuple(f"net.counter.{name}" for name in _JUDGED),
    compares=tuple(f"net.counter.{name}" for name in _JUDGED),
    urgency=Urgency.MAINTENANCE,
    remedy=_LINK,
)
def interface_counters_do_not_grow(given: Given) -> Iterator[Answer]:
    """
    Error counters of an interface do not grow.

    What it checks: lost links, CRC and symbol errors and discards of ethtool -S against an earlier reading of
    the same boot. One reading shows no growth: the counters run since the driver was loaded.
    Why it matters: errors on the wire are sent again; discards under RoCE end in time-outs of a whole job.
    How to fix: for errors clean, reseat or exchange the cable or transceiver; for discards look at PFC and at the PCIe
    link of the adapter.
    Applies to: interfaces of mlx5 adapters, from the second look at a node in one boot.
    Source: mlx5 driver documentation, ethtool counters.
    """
    seen: dict[str, int] = {}
    judged = 0
    for name in _JUDGED:
        fact = f"net.counter.{name}"
        now, before = given.maybe(fact), given.previous(fact)
        if now:
            seen[name] = now
        if now is None or before is None or now < before:
            continue
        judged += 1
        if now > before:
            text = f"{given.subject.id}: {name} grew by {now - before} since the earlier reading"
            yield warn(text, observed=now, expected=before, because=fact)
        else:
            yield ok(f"{given.subject.id}: {name} did not grow", observed=now, because=fact)
    if not judged:
        told = ", ".join(f"{name} {value}" for name, value in seen.items()) or "none above 0"
        text = f"{given.subject.id}: {told}; one reading shows no growth; the next check in this boot compares with it"
        yield skip(text, observed=seen)
