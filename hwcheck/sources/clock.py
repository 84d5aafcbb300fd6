"""Time: kernel clock, clock source, chrony, PTP clocks and daemons, what the next boot would start."""

import os

from hwcheck.sources import read
from hwcheck.sources.source import DEEP, Absent, Denied, Source

_NAMES = (
    "offset", "freq", "maxerror", "esterror", "status", "constant", "precision", "tolerance", "tv_sec", "tv_usec",
    "tick", "ppsfreq", "jitter", "shift", "stabil", "jitcnt", "calcnt", "errcnt", "stbcnt", "tai",
)  # fmt: skip
_LAYOUT = "@I4qi3q2qq2qi5qi"
"""struct timex of 64-bit Linux: modes, then the fields above; the native alignment of C."""


def _adjtimex(context):
    """
    Ask the kernel for the state of its clock; modes is 0, so that nothing is set and no privilege is needed.

    A root of another node has no clock of its own.
    """
    if context.root:
        raise Absent("the clock of another root")
    import ctypes
    import struct

    buffer = ctypes.create_string_buffer(512)
    state = ctypes.CDLL(None, use_errno=True).adjtimex(buffer)
    if state < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "adjtimex")
    values = struct.unpack_from(_LAYOUT, buffer)[1:]
    rows = ["state=%d" % state] + ["%s=%d" % row for row in zip(_NAMES, values)]
    return ("\n".join(rows) + "\n").encode()


def _hardware(context):
    return read.flat(
        context,
        [
            "/sys/devices/system/clocksource/clocksource0/" + name
            for name in ("current_clocksource", "available_clocksource")
        ]
        + ["/sys/class/ptp/ptp*/" + name for name in ("clock_name", "max_adjustment", "n_vclocks")],
    )


def _configuration(context):
    """Read the configuration of chrony and timesyncd, which may start at the next boot; key files are never read."""
    return read.sections(
        context,
        (
            "/etc/chrony.conf", "/etc/chrony.d/*.conf", "/etc/chrony/chrony.conf", "/etc/chrony/conf.d/*.conf",
            "/etc/chrony/sources.d/*.sources", "/run/chrony-dhcp/*.sources", "/usr/lib/systemd/timesyncd.conf.d/*.conf",
            "/etc/systemd/timesyncd.conf", "/etc/systemd/timesyncd.conf.d/*.conf",
        ),
        65536,
    )  # fmt: skip


_OFFSET = 0x43403D05
"""PTP_SYS_OFFSET: _IOW('=', 5, 832 bytes); the driver fills the same buffer. A read, in spite of its direction."""
_SAMPLES = 5


def _hardware_clocks(context):
    """Compare each PTP hardware clock with the system clock; the sample with the shortest reading time counts."""
    paths = read.expand(context.root, "/dev/ptp*")
    if not paths:
        raise Absent("/dev/ptp*")
    lines = []
    for path in paths:
        try:
            fd = os.open(context.root + path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except PermissionError:
            raise Denied(path) from None
        try:
            lines.append("%s: %s\n" % (path, _compare(fd)))
        except OSError as error:
            lines.append("%s: !error %s\n" % (path, error.strerror))
        finally:
            os.close(fd)
    return "".join(lines).encode()


def _compare(fd):
    import fcntl
    import struct

    buffer = bytearray(832)
    struct.pack_into("@I", buffer, 0, _SAMPLES)
    fcntl.ioctl(fd, _OFFSET, buffer, True)
    stamps = [
        s * 10**9 + ns for s, ns in (struct.unpack_from("@qI", buffer, 16 + 16 * i) for i in range(2 * _SAMPLES + 1))
    ]
    delay, offset = min(
        (stamps[i + 2] - stamps[i], stamps[i + 1] - (stamps[i] + stamps[i + 2]) // 2) for i in range(0, 2 * _SAMPLES, 2)
    )
    return "offset from CLOCK_REALTIME is %dns, read in %dns" % (offset, delay)


_PMC = ("pmc", "-u", "-b", "0", "GET TIME_STATUS_NP", "GET CURRENT_DATA_SET", "GET PORT_DATA_SET")

SOURCES = (
    Source("adjtimex", "adjtimex", _adjtimex, note="iron"),
    Source("sysfs-time", "sysfs.time", _hardware, note="iron"),
    Source("time-conf", "time.conf", _configuration, note="iron"),
    Source(
        "chronyc-tracking", "chronyc.tracking", argv=("chronyc", "-n", "-c", "tracking"), deadline=6.0, note="recorded"
    ),
    Source(
        "chronyc-sources",
        "chronyc.sources",
        argv=("chronyc", "-n", "-c", "sources"),
        tier=DEEP,
        deadline=6.0,
        note="recorded",
    ),
    Source("pmc", "pmc", argv=_PMC, tier=DEEP, deadline=5.0, note="recorded"),
    Source("phc-offset", "phc.offset", _hardware_clocks, tier=DEEP, child=True, deadline=5.0),
)
