"""Memory: totals, swap, pages taken out of use, error counters of the memory controllers."""

from hwcheck.sources import read
from hwcheck.sources.source import Source

_MC = "/sys/devices/system/edac/mc/mc*/"
_OF_CONTROLLER = ("mc_name", "size_mb", "seconds_since_reset", "ce_count", "ue_count")
_OF_DIMM = ("dimm_label", "dimm_location", "size", "dimm_ce_count", "dimm_ue_count")


def _meminfo(context):
    return read.read(context.root + "/proc/meminfo", 65536)


def _edac(context):
    """Read the counters; memory modules appear as dimm or as rank, as the controller's driver likes."""
    return read.flat(
        context,
        [_MC + name for name in _OF_CONTROLLER]
        + [_MC + part + name for part in ("dimm*/", "rank*/") for name in _OF_DIMM],
    )


SOURCES = (
    Source("proc-meminfo", "proc.meminfo", _meminfo, note="iron"),
    Source("sysfs-edac", "sysfs.edac", _edac),
)
