"""RDMA ports: up, at their rate, with a subnet manager."""

from __future__ import annotations

from typing import Any

from hwcheck.checks.relation import Answer, Given, fail, ok, relation, skip, warn
from hwcheck.findings import Remedy, Urgency
from hwcheck.parse.port_words import is_rail, netdev_kind

_LINK = Remedy(
    "hands",
    "Reseat the cable or transceiver at both ends and look at the switch port; mlxlink -d DEVICE -m -c tells module "
    "and signal. Replace the cable or transceiver if the link stays down.",
    disturbs="network",
)
_ADMIN = Remedy(
    "act",
    "Set the interface up (ip link set NETDEV up) and look for a shut switch port; then check that a cable and a "
    "transceiver module are in place with mlxlink -d DEVICE -m.",
    disturbs="network",
)
_RATE = Remedy(
    "hands",
    "Compare cable, transceiver and switch port with those of a port at full rate (mlxlink -d DEVICE -m, iblinkinfo); "
    "replace what is of a lower class, or set the switch port to full speed and width. The PSID of the card tells "
    "whether the card itself is of the lower class.",
    disturbs="network",
)
_MANAGER = Remedy(
    "act",
    "Start a subnet manager in the fabric (opensm or UFM), or find why it does not reach this port: sminfo on the "
    "node, iblinkinfo on a neighbour.",
    disturbs="network",
)


@relation(
    "rdma.port_state",
    needs=("rdma.port.state",),
    uses=("rdma.port.phys_state", "rdma.port.link_layer"),
    urgency=Urgency.NOW,
    remedy=_LINK,
)
def port_is_up(given: Given) -> Answer:
    """
    An RDMA port is Active.

    What it checks: the logical state. A port that is Down is left to rdma.port_down, which compares it with ports of
    its kind; the physical state of one that is Active to rdma.port_link.
    Why it matters: a collective runs over all rails; with one missing it fails or falls back to a slower path.
    How to fix: for Init or Armed bring the subnet manager to the port, on Ethernet set its interface up.
    Applies to: every InfiniBand and RoCE port.
    Source: InfiniBand specification, port states; public ibstat outputs of H100 and A100 nodes.
    """
    state, physical = given["rdma.port.state"], given.maybe("rdma.port.phys_state")
    seen = _seen(state, physical)
    if state == "Active":
        return ok(f"port is {seen}", observed=seen)
    if state != "Down":
        managed = given.maybe("rdma.port.link_layer") != "Ethernet"
        text = f"port is {seen}: the link is there but the port was not made Active"
        return fail(text, observed=seen, expected="Active", remedy=_MANAGER if managed else _ADMIN)
    return skip(f"port is {seen}; rdma.port_down compares it with ports of its kind", observed=seen)


def _seen(state: str, physical: str | None) -> str:
    return f"{state} ({physical})" if physical else state


@relation("rdma.port_link", needs=("rdma.port.phys_state", "rdma.port.state"), urgency=Urgency.NOW, remedy=_LINK)
def active_port_has_link(given: Given) -> Answer | None:
    """
    The link of an Active port is up.

    What it checks: the physical state of an Active port is LinkUp.
    Why it matters: a port in LinkErrorRecovery is about to lose its link; NCCL retries until it gives up.
    How to fix: reseat or replace the cable or transceiver.
    Applies to: Active ports whose physical state is told.
    Source: InfiniBand specification, port physical states.
    """
    if given["rdma.port.state"] != "Active":
        return None
    physical = given["rdma.port.phys_state"]
    if physical == "LinkUp":
        return ok("link is up", observed=physical)
    text = f"port is Active but its physical state is {physical}"
    return warn(text, observed=physical, expected="LinkUp")


@relation(
    "rdma.port_down",
    needs=("rdma.port.state", "rdma.port.peers"),
    uses=("rdma.port.hca_type", "rdma.port.phys_state", "rdma.port.link_layer"),
    urgency=Urgency.NOW,
    remedy=_LINK,
)
def fabric_port_down(given: Given) -> Answer | None:
    """
    No port of the compute fabric is down.

    What it checks: a port that is Down, against the node's other ports. The fabric's device type is the one with the
    most ports that are up. Of that type a Down port is a fault where more than two in three are up, in doubt where more
    are up than down, and no fault where it is the other way round (the second port of each card is often unused). Down
    ports of other types are spare front-end ports. Where the device types are not told, ports of one link layer are
    compared, and a Down port among many that are up is in doubt.
    Why it matters: one rail down costs a whole node its share of the fabric, or stops the job.
    How to fix: Disabled: set the interface up, look for a shut switch port. Polling: no signal from the other end;
    reseat or replace the cable or transceiver.
    Applies to: nodes whose evidence tells port states: ibstat, sysfs and ibv_devinfo with the device types, ibstatus
    and rdma link without.
    Source: public ibstat outputs of H100 nodes with rails down, and with unused front-end ports.
    """
    if given["rdma.port.state"] != "Down":
        return None
    kind, physical = given.maybe("rdma.port.hca_type"), given.maybe("rdma.port.phys_state")
    census = given["rdma.port.peers"]
    seen = _seen("Down", physical)
    name = f"port {given.subject.id} is {seen}"
    here = {"observed": seen, "because": "rdma.port.state"}
    more: dict[str, Any] = {**here, "expected": "Active", "remedy": _ADMIN if physical == "Disabled" else _LINK}
    if not any(counts.get("Up") for counts in census["layers"].values()):
        return warn(f"{name}, and no port in the evidence is up", **more)
    states = census["states"]
    layer = given.maybe("rdma.port.link_layer") or ""
    counted = census["layers"].get(layer, {}) if kind is None else states.get(kind, {})
    up, down = counted.get("Up", 0), counted.get("Down", 0)
    if kind is None:
        counts = f"{up} of {up + down} {layer}{' ' if layer else ''}ports are up"
        if up > 2 * down and is_rail(given.subject.id):
            return warn(f"{name}, while {counts}; device types are not told, so it may be a spare one", **more)
        return skip(f"{name}; {counts} and device types are not told, so it may be unused", **here)
    fabric = max(states, key=lambda one: (states[one].get("Up", 0), one))
    if kind != fabric or not is_rail(given.subject.id):
        return skip(f"{name}; it is not of the fabric's type {fabric} and may be unused", **here)
    counts = f"{up} of {up + down} {kind} ports are up"
    if up <= down:
        return skip(f"{name}; {counts}, so it may be unused", **here)
    return (fail if up > 2 * down else warn)(f"{name}, while {counts}", **more)


@relation(
    "rdma.port_rate",
    needs=("rdma.port.rate", "rdma.port.state", "rdma.port.hca_type", "rdma.port.peers"),
    uses=("rdma.port.link_layer",),
    urgency=Urgency.NOW,
    remedy=_RATE,
)
def port_rate(given: Given) -> Answer:
    """
    An Active port runs at the rate of its peers and of its class.

    What it checks: the rate of an Active port against the most common rate of the node's Active ports of the same
    device type and link layer; and where no port is faster, against the lowest rate that is plausible for the type.
    Why it matters: Active hides a link that came up at half speed; every collective then runs at that speed.
    How to fix: find the cable, transceiver or switch port of the lower class, with mlxlink -m and iblinkinfo.
    Applies to: Active ports whose device type is told. A port that is not Active has no rate: it shows a default.
    Source: NVIDIA/nccl issue 307 (100G cables on ConnectX-6); bounds of the profile.
    """
    if given["rdma.port.state"] != "Active":
        return skip("the port is not Active, so its rate means nothing")
    rate, kind = given["rdma.port.rate"], given["rdma.port.hca_type"]
    rates: dict[float, int] = given["rdma.port.peers"]["rates"].get(
        f"{kind} {given.maybe('rdma.port.link_layer') or ''}", {}
    )
    usual, number = max(rates.items(), key=lambda item: (item[1], item[0]), default=(rate, 0))
    total = sum(rates.values())
    text = f"port {given.subject.id} runs at {rate:g} Gb/s"
    if is_rail(given.subject.id) and rate < usual and number > total / 2:
        return fail(f"{text}, {number} of {total} {kind} ports at {usual:g}", observed=rate, expected=usual)
    return _class_rate(given, text, rate, kind)


def _class_rate(given: Given, text: str, rate: float, kind: str) -> Answer:
    """Judge by the device's class; a class without a bound has no lowest plausible rate."""
    classes = given.bound("rdma.port_rate") or {}
    lowest = classes.get(kind) if is_rail(given.subject.id) else None
    if lowest is not None and rate < lowest:
        reason = f"{kind} is a part of {lowest:g} Gb/s or more, unless the PSID says otherwise"
        return warn(f"{text}: {reason}", observed=rate, expected=lowest)
    return ok(text, observed=rate)


@relation(
    "rdma.subnet_manager",
    needs=("rdma.port.sm_lid", "rdma.port.link_layer"),
    uses=("rdma.port.state", "rdma.port.lid"),
    urgency=Urgency.NOW,
    remedy=_MANAGER,
)
def has_subnet_manager(given: Given) -> Answer | None:
    """
    An InfiniBand port knows its subnet manager.

    What it checks: the subnet manager's LID of an InfiniBand port that is not Down is not 0.
    Why it matters: without a subnet manager the port gets no address and carries nothing.
    How to fix: start opensm or UFM, or bring its partition or route to this port.
    Applies to: InfiniBand. On Ethernet the LID is 0 by nature.
    Source: InfiniBand specification, subnet management; public ibstat outputs.
    """
    if given["rdma.port.link_layer"] != "InfiniBand":
        return skip("Ethernet has none")
    if given.maybe("rdma.port.state") in (None, "Down"):
        return skip("the port is not up")
    manager = given["rdma.port.sm_lid"]
    if manager == 0:
        return fail("no subnet manager: SM LID is 0 on an InfiniBand port", observed=0, expected="not 0")
    return ok(f"subnet manager has LID {manager}", observed=manager)


@relation(
    "rdma.netdev",
    needs=("rdma.port.netdev_up", "rdma.port.netdev", "rdma.port.peers"),
    uses=("rdma.port.state",),
    urgency=Urgency.MAINTENANCE,
    remedy=_ADMIN,
)
def interface_is_up(given: Given) -> Answer:
    """
    The network interface of an RDMA port is up.

    What it checks: the word that ibdev2netdev prints behind the interface. Down among interfaces of its kind of which
    more than two in three are up, or with none up at all, is in doubt; else it may be a spare one.
    Why it matters: an Ethernet interface that is down carries no RDMA.
    How to fix: where the port belongs to the fabric, set the interface up (ip link set NETDEV up).
    Applies to: ports listed by ibdev2netdev. An IPoIB interface may be down on purpose, RDMA does without it: with none
    up it is no fault. Where the state of the port itself is told, that is judged instead.
    Source: public ibdev2netdev outputs.
    """
    netdev, state = given["rdma.port.netdev"], given.maybe("rdma.port.state")
    if given["rdma.port.netdev_up"]:
        return ok(f"interface {netdev} is Up", observed="Up")
    if state is not None:
        return skip(f"interface {netdev} is Down; its port is {state}, which is judged by itself", observed="Down")
    kind = netdev_kind(netdev)
    counted = given["rdma.port.peers"]["netdevs"].get(kind, {})
    up, down = counted.get("Up", 0), counted.get("Down", 0)
    text = f"interface {netdev} is Down, {up} of {up + down} {kind} interfaces are Up"
    if is_rail(given.subject.id) and (up > 2 * down or (not up and kind != "IPoIB")):
        return warn(text, observed="Down", expected="Up")
    return skip(f"{text}: it may be unused", observed="Down")
