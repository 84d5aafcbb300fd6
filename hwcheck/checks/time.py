"""Clocks: chrony, PTP daemons, PTP management answers."""

from __future__ import annotations

from typing import Any

from hwcheck.checks.relation import Answer, Given, fail, ok, relation, skip, warn
from hwcheck.findings import Remedy, Urgency

_CHRONY = Remedy(
    "act",
    "Find a time source that answers: chronyc sources -v; allow UDP 123 to the server, see that the server itself has "
    "an upstream (or local stratum 10) and serves this subnet; then chronyc makestep on the drained node.",
    role="time_sync",
    disturbs="nothing",
)
_LOCAL = "7F7F0101"
_UNSYNCHRONISED = 16
"""Stratum that NTP gives to a clock which follows nothing; chrony prints 0 for its own."""


@relation(
    "time.chrony",
    any_of=(
        "time.chrony.leap", "time.chrony.stratum", "time.chrony.refid", "time.chrony.offset", "time.chrony.error",
    ),
    uses=("time.chrony.root_delay", "time.chrony.root_dispersion", "time.kernel.synchronised"),
    remedy=_CHRONY,
)  # fmt: skip
def chrony_synchronised(given: Given) -> Answer:
    """
    The system clock follows a time source, closely enough.

    What it checks: in this order: the daemon answers; leap status, stratum and reference id say that it is
    synchronised, and not to its own local clock; the error bound |offset| + root dispersion + root delay / 2; the
    offset.

    Why it matters: certificates, scheduler credentials and log correlation over ranks need it. RDMA does not.

    How to fix: a source that answers; a clock far off needs one makestep while no job runs.

    Applies to: nodes that use chrony. A daemon that never synchronised reports offset 0.000000000: the offset is asked
    last.

    Source: chrony's tracking report; RFC 5905 (stratum 16 is unsynchronised); etcd warns above 1 s of skew.
    """
    error = given.maybe("time.chrony.error")
    if error and given.maybe("time.kernel.synchronised"):
        return skip(f"chronyd does not run ({error}), but something else keeps the clock: see time.sync")
    if error:
        return fail(f"chronyd does not run: {error}", observed=error, because="time.chrony.error")
    unsynchronised = _unsynchronised(given)
    if unsynchronised:
        return unsynchronised
    return _bounds(given)


def _unsynchronised(given: Given) -> Answer | None:
    leap, stratum, refid = (given.maybe(f"time.chrony.{name}") for name in ("leap", "stratum", "refid"))
    if leap == "Not synchronised":
        return fail(f"the clock is not synchronised (leap status {leap})", observed=leap, because="time.chrony.leap")
    if stratum is not None and not 0 < stratum < _UNSYNCHRONISED:
        text = f"the clock is not synchronised (stratum {stratum})"
        return fail(text, observed=stratum, because="time.chrony.stratum")
    if refid == "00000000":
        return fail("the clock is not synchronised (no reference)", observed=refid, because="time.chrony.refid")
    if refid == _LOCAL:
        text = "chrony follows its own local clock (7F7F0101), no time source"
        return fail(text, observed=refid, because="time.chrony.refid")
    return None


def _bounds(given: Given) -> Answer:
    offset, delay, dispersion = (
        given.maybe(f"time.chrony.{name}") for name in ("offset", "root_delay", "root_dispersion")
    )
    state = [given.maybe(f"time.chrony.{name}") for name in ("leap", "stratum", "refid")]
    if offset is None or None in state:
        return skip("the tracking report is not complete: offset, leap status, stratum or reference id is not there")
    bound = abs(offset) + (dispersion or 0.0) + (delay or 0.0) / 2
    most, much = given.bound("time.error"), given.bound("time.offset")
    if most is None or much is None:
        return skip(f"the clock is {_apart(offset)} NTP time; no bound is known")
    more: dict[str, Any] = {"observed": offset, "because": "time.chrony.offset"}
    if bound > most:
        return fail(f"the clock may be {_length(bound)} off (at most {_length(most)})", expected=most, **more)
    if abs(offset) > much:
        return warn(f"the clock is {_apart(offset)} NTP time (at most {_length(much)})", expected=much, **more)
    return ok(f"synchronised, the clock is {_apart(offset)} NTP time", expected=much, **more)


def _length(seconds: float) -> str:
    """Say a time in the unit a person would take: 2.5 ms, 310 ns, 37 s."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if abs(seconds) >= size:
            return f"{_digits(abs(seconds) / size)} {unit}"
    return f"{_digits(abs(seconds) * 1e9)} ns"


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _apart(offset: float) -> str:
    """Say an offset and its direction: 22.1 ms slow of."""
    return f"{_length(offset)} {'slow' if offset < 0 else 'fast'} of" if offset else "0 ns from"


@relation("time.sources", needs=("time.chrony.sources",), uses=("time.chrony.leap",), remedy=_CHRONY)
def chrony_sources(given: Given) -> Answer:
    """
    At least one time source answers and is selected.

    What it checks: the marks of ``chronyc sources``: ``*`` is selected; reach 0 means that none of the last eight
    requests was answered.

    Why it matters: with no source the clock drifts by seconds a day.

    How to fix: reach the server, give it an upstream.

    Applies to: nodes that use chrony. That a source is "online" in ``chronyc activity`` proves nothing.

    Source: chrony's sources report.
    """
    sources = given["time.chrony.sources"]
    if not sources:
        return fail("chrony has no time source", observed=0)
    selected = [source["name"] for source in sources if source["state"] == "*"]
    reached = sum(source["reach"] > 0 for source in sources)
    if selected:
        return ok(f"time source {selected[0]} is selected, {reached} of {len(sources)} sources answer")
    if reached == 0:
        return fail(f"none of {len(sources)} time sources answers (reach 0)", observed=0, expected="at least 1")
    return warn(f"no time source is selected; {reached} of {len(sources)} answer", observed=reached)


@relation(
    "time.ptp",
    needs=("time.ptp.state", "time.ptp.faults"),
    uses=("time.ptp.without_sync", "time.ptp.cause"),
    urgency=Urgency.MAINTENANCE,
    remedy=Remedy(
        "hands",
        "Look for the cause of the link change (cable, transceiver, driver reset) at that time in the kernel log; "
        "ptp4l itself needs no change.",
        disturbs="network",
    ),
)
def ptp_state(given: Given) -> Answer:
    """
    The PTP port is locked to its master.

    What it checks: the last port state in the ptp4l log, and how often the port was FAULTY before.

    Why it matters: between a fault and the next SLAVE state the clock runs free. One fault that healed is a warning
    with a duration; judging by the first FAULTY line would be a false alarm.

    How to fix: find what took the link down.

    Applies to: nodes that run ptp4l. A port that is MASTER serves others and is no fault.

    Source: IEEE 1588 port states; linuxptp ptp4l log.
    """
    state, faults = given["time.ptp.state"], given["time.ptp.faults"]
    cause = given.maybe("time.ptp.cause")
    why = f" ({cause})" if cause else ""
    if state == "FAULTY":
        return fail(f"the PTP port is FAULTY{why}", observed=state, expected="SLAVE", urgency=Urgency.NOW)
    if state not in ("SLAVE", "MASTER", "GRAND_MASTER", "PASSIVE"):
        return warn(f"the PTP port is {state}, not locked to a master", observed=state, expected="SLAVE")
    if faults:
        gap = given.maybe("time.ptp.without_sync") or 0.0
        text = f"the PTP port is {state} again after {faults} fault{'s' * (faults > 1)}{why}, {gap:.0f} s without sync"
        return warn(text, observed=faults, expected=0, because="time.ptp.faults")
    return ok(f"the PTP port is {state}", observed=state)


@relation(
    "time.ptp_offset",
    any_of=("time.ptp.offset", "time.pmc.offset"),
    scope="clock",
    uses=("time.pmc.steps_removed", "time.pmc.gm_present", "time.ptp.state"),
    remedy=Remedy(
        "act",
        "Check that ptp4l reaches the right master (pmc PARENT_DATA_SET, path delay) and uses hardware timestamps; "
        "37 s of offset is a missing UTC offset.",
        role="time_sync",
        disturbs="nothing",
    ),
)
def ptp_offset(given: Given) -> Answer:
    """
    A PTP clock is close to its master.

    What it checks: the offset of each clock that answered, or the last one logged since its last change of state. A
    clock with stepsRemoved 0 is the master: its 0.0 says nothing about others.

    Why it matters: who runs PTP wants better than a microsecond; a fixed large offset means that a clock is steered by
    nobody, or by the wrong master.

    How to fix: look at the master and at the timestamping mode.

    Applies to: nodes that use PTP.

    Source: linuxptp; common goal for hardware clocks, see the bound.
    """
    pmc = given.maybe("time.pmc.offset")
    offset = given.maybe("time.ptp.offset") if pmc is None else pmc
    if pmc is not None:
        steps = given.maybe("time.pmc.steps_removed")
        if steps == 0 or (steps is None and not given.maybe("time.pmc.gm_present")):
            return skip("this clock is the master itself (stepsRemoved 0), or does not say that it has one")
    if given.maybe("time.ptp.state") in ("MASTER", "GRAND_MASTER"):
        return skip("this port is the master itself")
    much, most = given.bound("time.ptp_offset"), given.bound("time.error")
    if much is None or most is None:
        return skip(f"{_length(offset / 1e9)} from the PTP master; no bound is known")
    if abs(offset) > most * 1e9:
        return fail(f"{_length(offset / 1e9)} from the PTP master", observed=offset, expected=much)
    if abs(offset) > much:
        text = f"{_length(offset / 1e9)} from the PTP master (at most {_length(much / 1e9)})"
        return warn(text, observed=offset, expected=much)
    return ok(f"{_length(offset / 1e9)} from the PTP master", observed=offset, expected=much)
