"""RoCE settings of a network interface: priority flow control, trust, marking."""

from __future__ import annotations

from typing import Any

from hwcheck.checks.relation import Answer, Given, ok, relation, skip, warn
from hwcheck.facts import Subject
from hwcheck.findings import Remedy, Urgency

_QOS = Remedy(
    "write",
    "Where the site wants lossless RoCE: mlnx_qos -i NETDEV --trust dscp --pfc with a 1 at the fabric's lossless "
    "priority (3 by convention), the same on the switch; make it permanent, for it is lost at a driver restart. Name "
    "the site's wish in a site layer (bounds roce.lossless_priorities and roce.trust).",
    role="rdma_qos",
    disturbs="network",
)
_PAUSE = Remedy(
    "write",
    "Turn global pause off on the interface (ethtool -A NETDEV rx off tx off); it excludes PFC.",
    role="rdma_qos",
    disturbs="network",
)
_CLASS = Remedy(
    "write",
    "Write the whole traffic class byte: DSCP times 4 plus the ECN bits; 106 is DSCP 26 with ECT(0).",
    role="rdma_qos",
    disturbs="network",
)
_INTENT = "the site's wish is not in the evidence"


def _infiniband(netdev: Subject) -> bool:
    return netdev.id.startswith("ib")


def _wish(given: Given, bound: str) -> Any:
    """Return what a site layer wants; None where none says."""
    value = given.bound(bound)
    return None if value == "unset" else value


@relation("roce.pfc", needs=("roce.pfc",), urgency=Urgency.MAINTENANCE, remedy=_QOS)
def pfc_is_on(given: Given) -> Answer:
    """
    Priority flow control is on where the site wants it.

    What it checks: the priorities with PFC, against bound roce.lossless_priorities of the site; without one, that at
    least one priority has it and not all.
    Why it matters: with no lossless priority RoCE drops packets under incast and bandwidth collapses; PFC on all
    priorities lets one flow stop every other.
    How to fix: mlnx_qos --pfc (or dcb pfc set) on node and switch alike.
    Applies to: RoCE interfaces that were asked; not InfiniBand. A fabric that is lossy by design sets the bound to [].
    Source: knowledge of the NVIDIA network operator's defaults (PFC on priority 3); public mlnx_qos output.
    """
    if _infiniband(given.subject):
        return skip("InfiniBand is lossless by credits and has no PFC")
    found = [priority for priority, flag in enumerate(given["roce.pfc"]) if flag]
    wanted = _wish(given, "roce.lossless_priorities")
    text = f"PFC is on for priority {', '.join(map(str, found))}" if found else "PFC is off for all priorities"
    name = f"{given.subject.id}: {text}"
    if wanted is not None:
        return (ok if found == sorted(wanted) else warn)(name, observed=found, expected=wanted)
    if not found:
        return warn(f"{name}, so no RoCE traffic is lossless ({_INTENT})", observed=found)
    if len(found) == len(given["roce.pfc"]):
        return warn(f"{name}: one flow can stop all others", observed=found)
    return ok(name, observed=found)


@relation("roce.trust", needs=("roce.trust",), urgency=Urgency.MAINTENANCE, remedy=_QOS)
def trust_is_dscp(given: Given) -> Answer:
    """
    The NIC takes the priority from the DSCP.

    What it checks: the trust state, against bound roce.trust of the site; without one, that it is not pcp.
    Why it matters: RoCE v2 is routed and as a rule untagged: with trust pcp (VLAN priority) all of it is priority 0.
    How to fix: mlnx_qos --trust dscp, on node and switch alike.
    Applies to: RoCE interfaces that were asked; not InfiniBand. A VLAN-tagged fabric sets the bound to pcp.
    Source: knowledge of the NVIDIA network operator's defaults (trust dscp); public mlnx_qos output.
    """
    if _infiniband(given.subject):
        return skip("InfiniBand steers by service level, not by DSCP")
    trust, wanted = given["roce.trust"], _wish(given, "roce.trust")
    name = f"{given.subject.id}: trust state is {trust}"
    if wanted is not None:
        return (ok if trust == wanted else warn)(name, observed=trust, expected=wanted)
    if trust == "pcp":
        text = f"{name}, so untagged RoCE v2 traffic has no priority ({_INTENT})"
        return warn(text, observed=trust, expected="dscp")
    return ok(name, observed=trust, expected="dscp")


@relation(
    "roce.global_pause",
    needs=("net.pause.rx", "net.pause.tx", "roce.pfc"),
    urgency=Urgency.MAINTENANCE,
    remedy=_PAUSE,
)
def global_pause_is_off(given: Given) -> Answer:
    """
    Global pause is off where PFC is on.

    What it checks: ethtool's pause parameters of an interface on which a priority has PFC.
    Why it matters: the two exclude each other: with global pause the NIC does not honour PFC.
    How to fix: ethtool -A NETDEV rx off tx off.
    Applies to: RoCE interfaces with PFC.
    Source: NVIDIA driver documentation, flow control; ethtool(8).
    """
    if not any(given["roce.pfc"]):
        return skip("no priority has PFC")
    ways = [way for way in ("rx", "tx") if given[f"net.pause.{way}"]]
    if ways:
        return warn(
            f"{given.subject.id}: global pause is on ({', '.join(ways)}) beside PFC", observed=ways, expected=[]
        )
    return ok(f"{given.subject.id}: global pause is off", observed=ways)


@relation("roce.traffic_class", needs=("rdma.port.traffic_class",), urgency=Urgency.MAINTENANCE, remedy=_CLASS)
def traffic_class_is_a_byte(given: Given) -> Answer:
    """
    The traffic class is the whole byte, not the DSCP.

    What it checks: a traffic class of 26: it is DSCP 6; who writes 26 meant DSCP 26, whose byte is 104 to 107.
    Why it matters: the switch puts the traffic into another queue, without ECN and PFC.
    How to fix: write 106.
    Applies to: RoCE ports with a traffic class set (OFED).
    Source: RFC 2474 (DSCP is the upper six bits of the byte); a public tutorial has the error.
    """
    value = given["rdma.port.traffic_class"]
    if value == 26:
        return warn("traffic class 26 is DSCP 6; DSCP 26 needs 104 to 107", observed=26, expected=106)
    return skip(f"traffic class is {value} (DSCP {value >> 2}); {_INTENT}", observed=value)
