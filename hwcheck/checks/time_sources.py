"""What keeps the system clock: the kernel's own word, the daemons, and what they are configured to follow."""

from __future__ import annotations

from dataclasses import replace

from hwcheck.checks.relation import Answer, Given, Some, fail, ok, relation, skip, warn
from hwcheck.findings import Remedy, Write

_SYNC = Remedy(
    "write",
    "Let exactly one daemon keep the clock: install chrony, name the site's time servers in a drop-in, with rtcsync "
    "and makestep 1.0 3, enable chronyd, and see that chronyc waitsync ends well.",
    role="time_sync",
    disturbs="nothing",
    writes=(Write("unit", "chrony.service", "running"),),
    worked_out="chrony servers = the bound time.servers of the site, where other servers are configured",
)
_HEARD = replace(_SYNC, writes=(), by_hand="A daemon runs; which servers it can reach is a matter of the network.")
_ONE = Remedy(
    "write",
    "Keep one of the time daemons (chrony) and disable the others: systemctl disable --now systemd-timesyncd.",
    role="time_sync",
    disturbs="nothing",
    by_hand="Which daemon the site wants is not known where none of them is chrony.",
    worked_out="unit of each daemon beside chrony = disabled",
)
_CHRONY = "chrony"
_KEEPERS = {
    "chronyd.service": _CHRONY,
    "chrony.service": _CHRONY,
    "systemd-timesyncd.service": "systemd-timesyncd",
    "ntpd.service": "ntpd",
    "ntp.service": "ntpd",
    "ntpsec.service": "ntpsec",
    "openntpd.service": "openntpd",
}
_PTP = "phc2sys"


@relation(
    "time.sync",
    needs=("time.kernel.synchronised",),
    uses=("time.kernel.max_error", "time.kernel.est_error", "time.chrony.leap"),
    remedy=_SYNC,
)
def kernel_clock_is_synchronised(given: Given) -> Answer:
    """
    Something keeps the system clock.

    What it checks: the kernel's own flag; whoever synchronises the clock clears it, and the kernel sets it again when
    nobody does for hours. Then the error bound, which the kernel lets grow by 500 ppm from update to update, and the
    error as the daemon estimates it. Where chrony answers, its own report counts: see time.chrony.

    Why it matters: certificates, scheduler credentials and log correlation over ranks need it. RDMA does not.

    How to fix: run one time daemon with servers that answer.

    Applies to: every node. chrony without rtcsync never clears the flag: that alone is no fault.

    Source: adjtimex(2); chrony's use of STA_UNSYNC.
    """
    synchronised, leap = given["time.kernel.synchronised"], given.maybe("time.chrony.leap")
    if leap is not None and leap != "Not synchronised" and not synchronised:
        return skip("chrony is synchronised but does not tell the kernel (no rtcsync): see time.chrony")
    if leap is not None and not synchronised:
        return skip("the kernel agrees with chrony that the clock is not synchronised: see time.chrony")
    if not synchronised:
        return fail("the clock is not synchronised: no daemon keeps it", observed=False, expected=True)
    bound, error = given.maybe("time.kernel.max_error"), given.maybe("time.kernel.est_error")
    most, much = given.bound("time.kernel_error"), given.bound("time.offset")
    if leap is None and bound is not None and most is not None and bound > most:
        text = f"no time source was heard for long: the clock may be {bound:.3g} s off"
        return warn(text, observed=bound, expected=most, because="time.kernel.max_error", remedy=_HEARD)
    if leap is None and error is not None and much is not None and error > much:
        text = f"the clock is about {error * 1e3:.3g} ms off, as its daemon estimates"
        return warn(text, observed=error, expected=much, because="time.kernel.est_error", remedy=_HEARD)
    return ok("the kernel's clock is synchronised", observed=True)


@relation("time.daemons", needs=(Some("service.active"),), remedy=_ONE)
def one_daemon_keeps_the_clock(given: Given) -> Answer:
    """
    Only one daemon sets the system clock.

    What it checks: which of chrony, systemd-timesyncd, ntpd and their kin are active.

    Why it matters: two daemons pull the clock to and fro, and each reports that all is well.

    How to fix: disable all but one.

    Applies to: nodes whose units were read. phc2sys beside chrony is a conflict only where it sets the system clock and
    not the one of a NIC: that is mentioned.

    Source: chrony FAQ; systemd-timesyncd.service(8).
    """
    active = {unit.id for unit, state in given["service.active"].items() if state == "active"}
    keepers = sorted({_KEEPERS[unit] for unit in active if unit in _KEEPERS})
    ptp = [unit for unit in sorted(active) if unit.startswith(_PTP)]
    if len(keepers) > 1:
        others = sorted(unit for unit in active if _KEEPERS.get(unit, _CHRONY) != _CHRONY)
        stop = tuple(Write("unit", unit, "disabled") for unit in others) if _CHRONY in keepers else ()
        remedy = replace(_ONE, writes=stop, by_hand="" if stop else _ONE.by_hand)
        text = f"{' and '.join(keepers)} are both active"
        return warn(text, observed=", ".join(keepers), expected="one", remedy=remedy)
    if keepers and ptp:
        return skip(f"{keepers[0]} and {ptp[0]} are active: only one of them may set the system clock")
    if keepers or ptp:
        return ok(f"only {(keepers or ptp)[0]} keeps the clock")
    return skip("no time daemon among the units that were read")


@relation("time.servers", needs=("time.configured",), uses=("time.chrony.leap",), remedy=_SYNC)
def time_servers_are_the_sites(given: Given) -> Answer:
    """
    The configured time sources are those of the site.

    What it checks: servers, pools and reference clocks named in chrony's and timesyncd's configuration, which the next
    start follows, against the list under the bound time.servers.

    Why it matters: a fabric network often reaches no public pool: such a node keeps time until its next boot only.

    How to fix: name the site's servers in a drop-in.

    Applies to: sites that list their servers; without a list the names are reported. With chrony there, what is set for
    timesyncd does not count.

    Source: chrony.conf(5), timesyncd.conf(5).
    """
    configured, wanted = given["time.configured"], given.bound("time.servers")
    chrony = [row for row in configured if row["daemon"] == "chrony"]
    rows = chrony or [row for row in configured if row["kind"] != "fallback"] or configured
    names = ", ".join(row["name"] for row in rows[:8])
    if not rows:
        return skip("no time source is named in the files that were read; the daemon may have one built in")
    if not wanted:
        return skip(f"configured time sources: {names}; the site lists none", observed=names)
    others = [row["name"] for row in rows if row["name"] not in wanted]
    if others:
        text = f"configured time sources that the site does not list: {', '.join(others[:8])}"
        remedy = replace(_SYNC, writes=(Write("chrony", "servers", ",".join(map(str, wanted))),))
        return warn(text, observed=names, expected=", ".join(map(str, wanted)), remedy=remedy)
    return ok(f"configured time sources: {names}", observed=names)
