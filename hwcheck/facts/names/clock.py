"""The kernel's clock, its hardware clocks, and what time daemons are configured to follow. chrony and PTP: host.py."""

from hwcheck.facts.registry import declare

declare(
    "node",
    """
    time.kernel.synchronised | bool  |   | the kernel takes its clock for synchronised (STA_UNSYNC is not set); some daemon says so
    time.kernel.max_error    | float | s | bound of the error; grows by 500 ppm from one update to the next, 16 s and more is unsynchronised
    time.kernel.est_error    | float | s | error as estimated by the daemon
    time.kernel.tai          | int   | s | TAI minus UTC as the kernel knows it; 0 when nobody told it
    time.clocksource         | str   |   | what the kernel counts time by: tsc, kvm-clock, arch_sys_counter, hpet
    time.clocksource.others  | tuple |   | clock sources it could use
    time.configured          | tuple |   | time sources that the configuration names, followed after the next start: records of daemon, kind (server, pool, peer, refclock, fallback), name
    time.configured.rtcsync  | bool  |   | chrony is configured to tell the kernel that the clock is synchronised
    """,  # noqa: E501 - one name a line, for search and for explain
)
declare(
    "clock",
    """
    time.phc.name     | str   |    | name of the hardware clock's driver
    time.phc.offset   | int   | ns | hardware clock minus system clock; 37 s where it keeps TAI
    time.phc.delay    | int   | ns | how long reading the hardware clock took; half of it is the uncertainty
    """,
)
