"""
Measurements between two nodes against the rate of their link, and which end a slow one is likely to be due to.

A node sees only its own pairs: one that is well with somebody else is not at fault for being slow with this partner.
What only a look at all nodes can tell, :mod:`hwcheck.fleet.pairs` says.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hwcheck.baselines import doubts
from hwcheck.baselines.culprit import Met, blame, common_end
from hwcheck.baselines.validity import Doubt
from hwcheck.checks.relation import Answer, Given, Some, fail, ok, relation, skip, unknown, warn
from hwcheck.facts import Subject
from hwcheck.findings import Remedy, Urgency

CHECK = "baseline.pair"
_SHARES = {"rdma.write": "baseline.pair.rdma", "tcp": "baseline.pair.tcp"}
"""Test → bound that holds the share of the link's rate which it must reach; others are told."""
_MOST = {"tcp": "baseline.pair.tcp.most"}
"""Test → bound: the link rate up to which it says something of the link and not of the CPUs."""
_SLOW = Remedy(
    "act",
    "Check rate, width and errors of the port (ibstat, mlxlink -c), the PCIe link of the adapter (lspci -vv: LnkSta "
    "against LnkCap) and, with GPU memory, ACS and IOMMU; then cable and switch port; then measure again.",
    disturbs="network",
)


@dataclass(slots=True)
class _Pair:
    """A pair while it is judged; ``slow`` is None where its figure does not decide."""

    subject: Subject
    record: dict[str, Any]
    answer: Answer | None = None
    slow: bool | None = None
    text: str = ""
    expected: str = ""


@relation(
    CHECK,
    needs=(Some("result.pair"), Some("result.conditions")),
    urgency=Urgency.MAINTENANCE,
    remedy=_SLOW,
)
def pairs_reach_the_rate_of_their_link(given: Given) -> Iterator[Answer]:
    """
    What two nodes send each other reaches the rate of the link between them.

    What it checks: bandwidth between this node and each of its partners against the share of the link's rate that the
    profile demands; the rate is the most that any port of this adapter position has, so that a port that came up too
    slow shows.

    Why it matters: a link that trained down, a bad cable or an adapter in a narrow slot holds up every job that spans
    nodes, and no counter need say so.

    How to fix: see the remedy. A node that is slow with each of its partners is at fault itself; one that is slow with
    a single partner and well with others only warns and names the partner.

    Applies to: measurements of ``hwcheck baseline run`` between nodes. A condition that was seen false (port not
    active, another process on the adapter, not bound to its NUMA node, CPUs busy, GPUDirect or the expected transport
    not used, too few samples) makes a figure unknown; so does an end that went away. Latencies and the first message
    against the rest are told, and TCP on links that CPUs cannot fill.

    Source: bounds ``baseline.pair.*`` of the profile, each with its own.
    """
    conditions = given["result.conditions"]
    pairs = [
        _judge(given, subject, record, conditions.get(subject)) for subject, record in given["result.pair"].items()
    ]
    rails: dict[tuple[str, str], list[_Pair]] = defaultdict(list)
    for pair in pairs:
        if pair.slow is None:
            assert pair.answer is not None  # noqa: S101 - what does not decide has its answer
            yield pair.answer
        else:
            rails[pair.record["test"], pair.record["rail"]].append(pair)
    me = common_end((pair.record["client"], pair.record["server"]) for pair in pairs)
    for some in rails.values():
        yield from _of_rail(some, me)


def _judge(given: Given, subject: Subject, record: dict[str, Any], conditions: dict[str, Any] | None) -> _Pair:
    """Hold a figure against its link; a slow one waits for the others of its rail."""
    pair = _Pair(subject, record)
    test, value = record["test"], record["value"]
    name = f"{test} from {record['client']} to {record['server']}{_at(record)}"
    common: dict[str, Any] = {"subject": subject, "observed": value}
    if conditions is None:
        pair.answer = unknown(f"{name}: under which conditions it was measured is not told", **common)
        return pair
    if value is None:
        pair.answer = unknown(f"{name}: no figure: {conditions.get('error', 'it was not told')}", **common)
        return pair
    pair.text = f"{name}: {value:.6g} {record['unit']}{_told(conditions)}"
    share, rate = given.bound(_SHARES.get(test, "")), conditions.get("link_rate") or _slower(conditions)
    most = given.bound(_MOST.get(test, ""))
    if share is None or not rate:
        why = "" if test not in _SHARES else "; the rate of the link is not known"
        pair.answer = skip(f"{pair.text}{why}", **common)
    elif most is not None and rate > most:
        pair.answer = skip(f"{pair.text}; at {rate:g} Gb/s the CPUs decide, not the link", **common)
    elif found := _doubts(test, subject, conditions):
        seen = "; ".join(doubt.text for doubt in found)
        pair.answer = unknown(f"{pair.text}; does not count ({found[0].name}): {seen}", **common)
    else:
        pair.slow = value < share * rate
        pair.expected = f">= {share * rate:.6g} Gb/s"
        pair.text += f", {'below' if pair.slow else 'at least'} {share:.0%} of {rate:g} Gb/s"
    return pair


def _of_rail(pairs: list[_Pair], me: str) -> Iterator[Answer]:
    """Answer for the pairs of one rail and test."""
    met = [_met(pair) for pair in pairs]
    partners = {one.partner(me) for one in met} if me else set()
    mine = bool(me) and (any(one.slow and one.marked == me for one in met) or (
        len(partners) > 1 and all(one.slow for one in met)
    ))  # fmt: skip
    others = {found.nodes[0] for found in blame(met) if found.kind == "node" and found.nodes[0] != me}
    for pair, one in zip(pairs, met, strict=True):
        common: dict[str, Any] = {
            "subject": pair.subject, "observed": pair.record["value"], "expected": pair.expected,
        }  # fmt: skip
        partner = one.partner(me) if me else ""
        if not pair.slow:
            yield ok(pair.text, **common)
        elif mine:
            why = f"the port of {me} is slower than others" if one.marked == me else f"{me} is slow with every partner"
            yield fail(f"{pair.text}; {why}", **common)
        elif partner and (partner in others or one.marked == partner):
            yield warn(f"{pair.text}; likely due to {partner} or the way to it, not to {me}", **common)
        else:
            either = one.marked or f"either end: {one.one} or {one.other}; measure each with a third node"
            yield fail(f"{pair.text}; likely due to {either}", **common)


def _met(pair: _Pair) -> Met:
    return Met(pair.record["client"], pair.record["server"], bool(pair.slow), pair.record["marked"])


def _doubts(test: str, subject: Subject, conditions: dict[str, Any]) -> list[Doubt]:
    """List the conditions of a pair that were seen false."""
    found = doubts(test, subject.id.partition("@")[2], conditions)
    for end in ("client", "server"):
        state = conditions.get(f"{end}_state", "ACTIVE")
        if state != "ACTIVE":
            found.append(Doubt("port", f"the port of {conditions[end]} was {state}"))
    if conditions.get("rdma_users"):
        found.append(Doubt("foreign process", f"an RDMA device was in use ({', '.join(conditions['rdma_users'][:3])})"))
    if conditions.get("numa_bound") is False and not any(doubt.name == "numa" for doubt in found):
        found.append(Doubt("numa", "an end was not bound to the NUMA node of its adapter"))
    return found


def _slower(conditions: dict[str, Any]) -> float:
    rates = [conditions[key] for key in ("client_rate", "server_rate") if conditions.get(key, 0) > 0]
    return min(rates, default=0.0)


def _at(record: dict[str, Any]) -> str:
    return "" if record["rail"] in ("", "host") else f" (adapter at {record['rail']})"


def _told(conditions: dict[str, Any]) -> str:
    parts = [f"{conditions['qps']} queue pairs"] if "qps" in conditions else []
    parts += [f"{conditions['streams']:g} streams"] if "streams" in conditions else []
    parts += ["GPU memory"] if conditions.get("memory") == "gpu" else []
    if "ratio" in conditions:
        parts.append(f"first message; {conditions['steady_us']:.4g} us after it, ratio {conditions['ratio']:.3g}")
    return f" ({', '.join(parts)})" if parts else ""
