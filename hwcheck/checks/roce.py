"""RoCE settings of a network interface: priority flow control, trust, marking."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hwcheck.checks.relation import Answer, Given, Some, ok, relation, skip, warn
from hwcheck.facts import Subject
from hwcheck.findings import Remedy, Urgency, Write

_NO_WISH = "These are facts of the fabric: hwcheck writes only what a site layer names."

_QOS = Remedy(
    "write",
    "Where the site wants lossless RoCE: mlnx_qos -i NETDEV --trust dscp --pfc with a 1 at the fabric's lossless "
    "priority (3 by convention), the same on the switch; make it permanent, for it is lost at a driver restart. Name "
    "the site's wish in a site layer (bounds roce.lossless_priorities and roce.trust).",
    role="rdma_qos",
    disturbs="network",
    by_hand=_NO_WISH,
    worked_out="qos pfc or trust = the bounds roce.lossless_priorities and roce.trust of the site (only with opt-in)",
)
_PAUSE = Remedy(
    "write",
    "Turn global pause off on the interface (ethtool -A NETDEV rx off tx off); it excludes PFC.",
    role="rdma_qos",
    disturbs="network",
    by_hand="Flow control of an interface belongs to the network configuration of the node.",
)
_CLASS = Remedy(
    "write",
    "Write the whole traffic class byte: DSCP times 4 plus the ECN bits; 106 is DSCP 26 with ECT(0).",
    role="rdma_qos",
    disturbs="network",
    by_hand=_NO_WISH,
    worked_out="qos traffic_class = the bound roce.traffic_class of the site (only with opt-in)",
)
_ECN = Remedy(
    "write",
    "Turn ECN on for the priority at both points: ecn/roce_np/enable/N and ecn/roce_rp/enable/N of the interface, or "
    "ROCE_CC_PRIO_MASK by mlxconfig; marks need a switch that makes them.",
    role="rdma_qos",
    disturbs="network",
    by_hand=_NO_WISH,
    worked_out="qos ecn_np and ecn_rp = the bound roce.ecn_priorities of the site (only with opt-in)",
)
_INTENT = "the site's wish is not in the evidence"


def _infiniband(netdev: Subject) -> bool:
    return netdev.id.startswith("ib")


def _set(remedy: Remedy, wish: dict[str, Any]) -> Remedy:
    """Return the remedy that writes what the site wants: key of the mechanism to value."""
    return replace(
        remedy, by_hand="", writes=tuple(Write("qos", key, _spelled(value), opt_in=True) for key, value in wish.items())
    )


def _spelled(value: Any) -> str:
    """Spell priorities as ``3,4``, and no priority as ``none``."""
    return (",".join(map(str, sorted(value))) or "none") if isinstance(value, (list, tuple)) else str(value)


@relation("roce.pfc", needs=("roce.pfc",), uses=("evidence.collected",), urgency=Urgency.MAINTENANCE, remedy=_QOS)
def pfc_is_on(given: Given) -> Answer:
    """
    Priority flow control is on where the site wants it.

    What it checks: the priorities with PFC, against bound roce.lossless_priorities of the site; without one, that at
    least one priority has it and not all.
    Why it matters: with no lossless priority RoCE drops packets under incast and bandwidth collapses; PFC on all
    priorities lets one flow stop every other.
    How to fix: mlnx_qos --pfc (or dcb pfc set) on node and switch alike.
    Applies to: RoCE interfaces; not InfiniBand. On a node that was read whole every interface is asked, front-end ones
    too: without the site's wish the value is only told. A fabric that is lossy by design sets the bound to [].
    Source: knowledge of the NVIDIA network operator's defaults (PFC on priority 3); public mlnx_qos output.
    """
    if _infiniband(given.subject):
        return skip("InfiniBand is lossless by credits and has no PFC")
    found = [priority for priority, flag in enumerate(given["roce.pfc"]) if flag]
    wanted = given.bound("roce.lossless_priorities")
    text = f"PFC is on for priority {', '.join(map(str, found))}" if found else "PFC is off for all priorities"
    name = f"{given.subject.id}: {text}"
    if wanted is not None:
        remedy = _set(_QOS, {"pfc": wanted})
        return (ok if found == sorted(wanted) else warn)(name, observed=found, expected=wanted, remedy=remedy)
    if given.maybe("evidence.collected"):
        return skip(f"{name}; {_INTENT}", observed=found)
    if not found:
        return warn(f"{name}, so no RoCE traffic is lossless ({_INTENT})", observed=found)
    if len(found) == len(given["roce.pfc"]):
        return warn(f"{name}: one flow can stop all others", observed=found)
    return ok(name, observed=found)


@relation("roce.trust", needs=("roce.trust",), uses=("evidence.collected",), urgency=Urgency.MAINTENANCE, remedy=_QOS)
def trust_is_dscp(given: Given) -> Answer:
    """
    The NIC takes the priority from the DSCP.

    What it checks: the trust state, against bound roce.trust of the site; without one, that it is not pcp.
    Why it matters: RoCE v2 is routed and as a rule untagged: with trust pcp (VLAN priority) all of it is priority 0.
    How to fix: mlnx_qos --trust dscp, on node and switch alike.
    Applies to: RoCE interfaces; not InfiniBand. On a node that was read whole every interface is asked, front-end ones
    too: without the site's wish the value is only told. A VLAN-tagged fabric sets the bound to pcp.
    Source: knowledge of the NVIDIA network operator's defaults (trust dscp); public mlnx_qos output.
    """
    if _infiniband(given.subject):
        return skip("InfiniBand steers by service level, not by DSCP")
    trust, wanted = given["roce.trust"], given.bound("roce.trust")
    name = f"{given.subject.id}: trust state is {trust}"
    if wanted is not None:
        remedy = _set(_QOS, {"trust": wanted})
        return (ok if trust == wanted else warn)(name, observed=trust, expected=wanted, remedy=remedy)
    if given.maybe("evidence.collected"):
        return skip(f"{name}; {_INTENT}", observed=trust)
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

    What it checks: the traffic class against bound roce.traffic_class of the site; without one, that it is not 26: that
    is DSCP 6, and who writes 26 meant DSCP 26, whose byte is 104 to 107.
    Why it matters: the switch puts the traffic into another queue, without ECN and PFC.
    How to fix: write 106.
    Applies to: RoCE ports with a traffic class set (OFED).
    Source: RFC 2474 (DSCP is the upper six bits of the byte); a public tutorial has the error.
    """
    value, wanted = given["rdma.port.traffic_class"], given.bound("roce.traffic_class")
    if wanted is not None:
        text = f"traffic class is {value} (DSCP {value >> 2})"
        remedy = _set(_CLASS, {"traffic_class": wanted})
        return (ok if value == wanted else warn)(text, observed=value, expected=wanted, remedy=remedy)
    if value == 26:
        return warn("traffic class 26 is DSCP 6; DSCP 26 needs 104 to 107", observed=26, expected=106)
    return skip(f"traffic class is {value} (DSCP {value >> 2}); {_INTENT}", observed=value)


@relation("roce.ecn", needs=("roce.ecn.np", "roce.ecn.rp"), urgency=Urgency.MAINTENANCE, remedy=_ECN)
def ecn_is_on_at_both_ends(given: Given) -> Answer:
    """
    The NIC answers congestion marks, and slows down when told.

    What it checks: ECN notification point (receiver) and reaction point (sender) on the priorities of bound
    roce.ecn_priorities of the site. Without one the state is only told.
    Why it matters: one end alone does nothing: marks that nobody answers, or answers that nobody heeds, end in pauses.
    How to fix: write 1 to ecn/roce_np/enable/N and ecn/roce_rp/enable/N, again after each driver restart, or set
    ROCE_CC_PRIO_MASK in the firmware.
    Applies to: RoCE interfaces with DOCA or OFED; the in-box driver does not show it.
    Source: NVIDIA DOCA-OFED documentation, ECN; defaults of the NVIDIA network operator (all priorities).
    """
    ends = {"np": given["roce.ecn.np"], "rp": given["roce.ecn.rp"]}
    on = {end: [number for number, flag in enumerate(flags) if flag] for end, flags in ends.items()}
    text = f"{given.subject.id}: ECN is on for priorities {on['np']} (receiver), {on['rp']} (sender)"
    wanted = given.bound("roce.ecn_priorities")
    if wanted is None:
        return skip(f"{text}; {_INTENT}", observed=on)
    good = all(set(wanted) <= set(numbers) for numbers in on.values())
    remedy = _set(_ECN, {"ecn_np": wanted, "ecn_rp": wanted})
    return (ok if good else warn)(text, observed=on, expected=wanted, remedy=remedy)


@relation("roce.peers", needs=(Some("roce.marks"),), urgency=Urgency.MAINTENANCE, remedy=_QOS)
def interfaces_are_alike(given: Given) -> Iterator[Answer]:
    """
    RoCE interfaces of one speed are set alike.

    What it checks: MTU, trust state and ECN of each interface that is up, against the most common of those of its
    speed, where more than half of at least three agree.
    Why it matters: rails of one fabric want one setting; the odd one was forgotten when its driver restarted.
    How to fix: give it the setting of the others.
    Applies to: nodes with three or more RoCE interfaces of one speed; front-end ones of that speed may differ by
    intent.
    Source: rail-optimised fabrics of HGX and DGX nodes.
    """
    marks: dict[Subject, dict[str, Any]] = given["roce.marks"]
    for speed in sorted({mark["speed"] for mark in marks.values()}):
        peers = {one: mark for one, mark in marks.items() if mark["speed"] == speed}
        if len(peers) < 3:
            continue
        odd: dict[Subject, list[str]] = {}
        for key in ("mtu", "trust", "np", "rp"):
            values = Counter(mark.get(key) for mark in peers.values())
            usual, number = values.most_common(1)[0]
            if 2 * number > len(peers):
                for one, mark in peers.items():
                    if mark.get(key) != usual:
                        odd.setdefault(one, []).append(f"{key} {_said(mark.get(key))}, others {_said(usual)}")
        for one, words in odd.items():
            text = f"{one.id} is not set like its peers at {speed:g} Gb/s: {'; '.join(words)}"
            yield warn(text, subject=one, observed=words)
        if not odd:
            yield ok(f"{len(peers)} RoCE interfaces at {speed:g} Gb/s are set alike", observed=len(peers))


def _said(value: Any) -> str:
    if isinstance(value, tuple):
        return str([number for number, flag in enumerate(value) if flag])
    return "not told" if value is None else str(value)
