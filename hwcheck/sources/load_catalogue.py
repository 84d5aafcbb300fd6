"""
The sources of tier load, in the order they run: one after the other, since each would disturb the next.

They change no setting and leave nothing; but they load what they measure, so they are sent only when asked for.
"""

from hwcheck.sources import load_cuda, load_disk, load_host, load_latency, load_peers, load_tools
from hwcheck.sources.source import LOAD, Source

KIND = "hwcheck.load"


def _own(id, ask, deadline):
    return Source(id, KIND, ask, child=True, deadline=deadline, tier=LOAD)


SOURCES = (
    _own("load-cpu-memory", load_host.cpu_memory, 120.0),
    _own("load-jitter", load_host.jitter, 30.0),
    _own("load-hbm", load_cuda.hbm, 120.0),
    _own("load-host-copy", load_cuda.host_copy, 180.0),
    _own("load-peers", load_peers.peers, 240.0),
    _own("load-latency", load_latency.latency, 180.0),
    _own("load-disk", load_disk.disk, 120.0),
    *load_tools.SOURCES,
)
