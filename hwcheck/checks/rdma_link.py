"""RDMA links and modules as mlxlink sees them, and the growth of error counters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hwcheck.checks.relation import Answer, Given, fail, ok, relation, skip, warn
from hwcheck.facts.names.rdma import COUNTERS, HW_COUNTERS
from hwcheck.findings import Remedy, Urgency

_CABLE = Remedy(
    "hands",
    "Clean and reseat the cable or transceiver at both ends, then exchange it with one of a good port: the fault that "
    "moves with it is the module's, the one that stays is the port's. Clear the counters (mlxlink --pc) before.",
    disturbs="network",
)
_MODULE = Remedy(
    "hands",
    "Check the airflow at the module and the module itself: mlxlink -d DEVICE -m; reseat or replace the transceiver.",
    disturbs="network",
)
_FATAL = ("link_downed", "local_link_integrity_errors", "excessive_buffer_overrun_errors", "rnr_nak_retry_err")
_FINE = "no issue"
DAY = 24 * 60


@relation(
    "rdma.link_state",
    needs=("rdma.link.state",),
    uses=("rdma.link.phys_state", "rdma.link.recommendation", "rdma.link.speed", "rdma.link.width"),
    urgency=Urgency.NOW,
    remedy=_CABLE,
)
def link_is_active(given: Given) -> Answer:
    """
    A link that mlxlink was asked for is Active.

    What it checks: mlxlink's State.
    Why it matters: who asks mlxlink for a port means it to carry traffic; the recommendation tells why it does not.
    How to fix: follow the recommendation; as a rule reseat or exchange the cable or transceiver.
    Applies to: links that mlxlink was asked for.
    Source: NVIDIA MFT user manual, mlxlink.
    """
    state = given["rdma.link.state"]
    names = ("rdma.link.phys_state", "rdma.link.speed", "rdma.link.width")
    seen = ", ".join((state, *filter(None, map(given.maybe, names))))
    if state.lower() == "active":
        return ok(f"link is {seen}", observed=seen)
    advice = given.maybe("rdma.link.recommendation")
    text = f"link is not Active: {seen}{f'; mlxlink says: {advice}' if advice else ''}"
    return warn(text, observed=seen, expected="Active")


@relation("rdma.link_advice", needs=("rdma.link.recommendation",), urgency=Urgency.NOW, remedy=_CABLE)
def link_has_no_issue(given: Given) -> Answer:
    """
    The NIC's firmware sees no issue with the link.

    What it checks: mlxlink's Recommendation is that no issue was observed.
    Why it matters: firmware names what the state alone hides: bad signal integrity, an unplugged cable, a module of the
    wrong kind.
    How to fix: follow the recommendation; as a rule clean, reseat or exchange the cable or transceiver.
    Applies to: links that mlxlink was asked for.
    Source: NVIDIA MFT user manual, mlxlink; public outputs of healthy 400G links.
    """
    advice = given["rdma.link.recommendation"]
    if _FINE in advice.lower():
        return ok(f"mlxlink: {advice}", observed=advice)
    signal = "signal integrity" in advice.lower()
    return (fail if signal else warn)(f"mlxlink sees an issue: {advice}", observed=advice)


@relation(
    "rdma.link_errors",
    any_of=("rdma.link.effective_ber", "rdma.link.effective_errors"),
    uses=("rdma.link.effective_ber", "rdma.link.effective_errors"),
    urgency=Urgency.MAINTENANCE,
    remedy=_CABLE,
)
def link_errors_are_corrected(given: Given) -> Answer:
    """
    Error correction leaves (almost) no errors on the link.

    What it checks: the effective bit error rate, of errors left after error correction, is below the bounds, whatever
    the number of errors says: the counter may have been cleared a moment ago. Without a rate, the number of errors is
    0. Raw errors are not judged: PAM4 links always have them, in the billions.
    Why it matters: what correction leaves is sent again, which stalls every rail of a collective.
    How to fix: clean, reseat or exchange the cable or transceiver.
    Applies to: links whose counters mlxlink was asked for (-c).
    Source: bounds rdma.effective_ber_healthy and rdma.effective_ber_limit of the profile.
    """
    errors, rate = given.maybe("rdma.link.effective_errors"), given.maybe("rdma.link.effective_ber")
    if rate is None:
        if errors == 0:
            return ok("no errors are left after error correction", observed=0)
        return skip(f"{errors} errors after correction, but no bit error rate to judge them by", observed=errors)
    left = "an unknown number of" if errors is None else errors or "no"
    text = f"{left} errors are left after correction, effective BER {rate:.2g}"
    more: dict[str, Any] = {"observed": rate, "because": "rdma.link.effective_ber"}
    limit, healthy = given.bound("rdma.effective_ber_limit"), given.bound("rdma.effective_ber_healthy")
    if limit is not None and rate > limit:
        return fail(text, expected=f"at most {limit:g}", urgency=Urgency.NOW, **more)
    if healthy is not None and rate > healthy:
        return warn(text, expected=f"below {healthy:g}", **more)
    return ok(text, **more) if healthy is not None else skip(text, **more)


@relation(
    "rdma.link_flaps",
    needs=("rdma.link.downs",),
    uses=("rdma.link.minutes",),
    compares=("rdma.link.downs",),
    urgency=Urgency.MAINTENANCE,
    remedy=_CABLE,
)
def link_stays_up(given: Given) -> Answer:
    """
    The link does not go down again and again.

    What it checks: mlxlink's link down counter is 0; else it is set against the time since the counters were cleared,
    or against an earlier reading.
    Why it matters: each flap stops the collectives of a whole job; a few downs in months are maintenance and reboots.
    How to fix: clean, reseat or exchange the cable or transceiver; look at the switch port's log.
    Applies to: links whose counters mlxlink was asked for (-c).
    Source: bound rdma.flaps_per_day of the profile.
    """
    downs, minutes = given["rdma.link.downs"], given.maybe("rdma.link.minutes")
    before = given.previous("rdma.link.downs")
    if before is not None and downs > before:
        return warn(f"link went down {downs - before} times since the earlier reading", observed=downs, expected=before)
    if downs == 0:
        return ok("the link never went down since the counters were cleared", observed=0)
    bound = given.bound("rdma.flaps_per_day")
    if minutes and bound is not None:
        days = max(minutes / DAY, 1)
        if downs / days >= bound:
            text = f"link went down {downs} times in {days:.3g} days"
            return warn(text, observed=downs, expected=f"below {bound} a day")
    return skip(f"link went down {downs} times since the counters were cleared; no growth is known", observed=downs)


@relation("rdma.raw_ber", needs=("rdma.link.raw_ber",), urgency=Urgency.MAINTENANCE, remedy=_CABLE)
def raw_error_rate(given: Given) -> Answer:
    """
    The raw bit error rate leaves error correction room to work.

    What it checks: the bit error rate before correction is not above the bound.
    Why it matters: a link near the limit of its error correction drops packets with the next degree of heat.
    How to fix: clean, reseat or exchange the cable or transceiver.
    Applies to: links whose counters mlxlink was asked for (-c).
    Source: bound rdma.raw_ber_limit of the profile.
    """
    rate, limit = given["rdma.link.raw_ber"], given.bound("rdma.raw_ber_limit")
    if limit is None:
        return skip(f"raw BER is {rate:.2g}; no bound is known", observed=rate)
    if rate > limit:
        return warn(f"raw BER is {rate:.2g}", observed=rate, expected=f"at most {limit:g}")
    return ok(f"raw BER is {rate:.2g}, as is normal before correction", observed=rate, expected=f"at most {limit:g}")


@relation(
    "rdma.module",
    needs=("rdma.module.sensors",),
    urgency=Urgency.MAINTENANCE,
    remedy=_MODULE,
)
def module_in_range(given: Given) -> Answer:
    """
    Temperature, voltage, currents and light of the module are in the module's own range.

    What it checks: each sensor of the module against the limits that the module itself carries.
    Why it matters: a hot module or weak light shows before errors do.
    How to fix: airflow, a clean and well-seated connector, or another transceiver.
    Applies to: modules with sensors. Passive copper has none: the zeros that mlxlink prints there are left out.
    Source: the limits printed by mlxlink -m, from the module's memory.
    """
    bad = [
        f"{sensor['name']} {value:g} outside {sensor['low']:g} to {sensor['high']:g}"
        for sensor in given["rdma.module.sensors"]
        for value in sensor["values"]
        if not sensor["low"] <= value <= sensor["high"]
    ]
    if bad:
        return warn(f"module out of its range: {'; '.join(bad[:4])}", observed=bad)
    return ok("all sensors of the module are in range", observed=len(given["rdma.module.sensors"]))


@relation(
    "rdma.counters",
    any_of=tuple(f"rdma.counter.{name}" for name in (*COUNTERS, *HW_COUNTERS)),
    uses=tuple(f"rdma.counter.{name}" for name in (*COUNTERS, *HW_COUNTERS)),
    compares=tuple(f"rdma.counter.{name}" for name in _FATAL),
    urgency=Urgency.NOW,
    remedy=_CABLE,
)
def counters_do_not_grow(given: Given) -> Iterator[Answer]:
    """
    Error counters of a port do not grow.

    What it checks: counters whose growth is fatal, against an earlier reading of the same boot. One reading shows no
    growth: counters run since the driver was loaded. link_downed at 255 is an old 8-bit counter at its ceiling.
    Why it matters: a link that goes down, or buffers that overrun, stop a job; what happened months ago does not.
    How to fix: clean, reseat or exchange the cable or transceiver; for rnr_nak_retry_err look at the peer.
    Applies to: ports with counters, from the second look at a node in one boot.
    Source: NVSentinel nic-health-monitor documentation, fatal counters.
    """
    saturated = given.maybe("rdma.counter.link_downed") == 255
    if saturated:
        yield skip("link_downed stands at 255, the ceiling of an 8-bit counter: history, it cannot grow", observed=255)
    judged = 0
    for name in _FATAL:
        fact = f"rdma.counter.{name}"
        now, before = given.maybe(fact), given.previous(fact)
        if now is None or before is None or now < before:
            continue
        judged += 1
        if now > before:
            text = f"{name} grew by {now - before} since the earlier reading"
            yield fail(text, observed=now, expected=before, because=fact)
        else:
            yield ok(f"{name} did not grow", observed=now, because=fact)
    if not judged and not saturated:
        yield skip("one reading of a counter shows no growth; the next check in this boot compares with it")


@relation("rdma.port_mtu", needs=("rdma.port.mtu", "rdma.port.mtu.max"))
def port_mtu(given: Given) -> Answer:
    """
    A port uses the largest MTU it can.

    What it checks: the active MTU against the largest one, as ibv_devinfo prints both.
    Why it matters: small packets cost message rate and CPU; both ends and all switches between must agree on it.
    How to fix: nothing where the fabric is made for the smaller one; 4096 on Ethernet needs a netdev MTU of 4200.
    Applies to: every port. A smaller MTU is told and not judged: a netdev MTU of 1500 gives 1024 on healthy nodes.
    Source: rdma-core, ibv_devinfo; NVIDIA driver documentation, MTU of RoCE.
    """
    active, most = given["rdma.port.mtu"], given["rdma.port.mtu.max"]
    text = f"active MTU is {active} of {most}"
    if active >= most:
        return ok(text, observed=active, expected=most)
    return skip(f"{text}; whether the fabric is made for more is not told", observed=active)
