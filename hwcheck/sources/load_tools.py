"""
Measuring tools of others, where they are installed: what they print keeps its own format.

A tool that is missing is absent, with the package that would bring it. Each runs in the child's place, so that it ends
with the program.
"""

import os

from hwcheck.sources import load_binding
from hwcheck.sources.source import LOAD, Absent, Instead, Source

_PLACES = ("/usr/local/bin", "/usr/local/cuda/bin", "/opt/nccl-tests/build")


def _found(name):
    """Return the path of a program, on PATH or where its package puts it; "" when it is nowhere."""
    for folder in (*os.get_exec_path(), *_PLACES):
        path = os.path.join(folder, name)
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    return ""


def _tool(kind, name, package, *args):
    """Make a function that runs a tool in its own place."""

    def ask(context):  # noqa: ARG001 - all asks take it
        load_binding.end_with_parent()
        path = _found(name)
        if not path:
            raise Absent("%s (%s)" % (name, package))
        return Instead(kind, (path, *args), name)

    return ask


def _all_reduce(context):
    """
    Sum over all GPUs of the node; what NCCL says of its transports stands in the same text.

    Raises:
        Absent: nccl-tests or a GPU is not there.
    """
    count = len([name for name in _names(context.root + "/dev") if name[:6] == "nvidia" and name[6:].isdigit()])
    ask = _tool(
        "nccl-tests", "all_reduce_perf", "nccl-tests, built from NVIDIA/nccl-tests",
        "-b", "1G", "-e", "8G", "-f", "2", "-g", str(count),
    )  # fmt: skip
    answer = ask(context)
    if count == 0:
        raise Absent("a GPU for all_reduce_perf (/dev/nvidia0)")
    os.environ["NCCL_DEBUG"] = "INFO"
    return answer


def _names(folder):
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _source(id, kind, ask, deadline):
    return Source(id, kind, ask, child=True, deadline=deadline, tier=LOAD)


SOURCES = (
    _source(
        "load-nvbandwidth", "nvbandwidth",
        _tool("nvbandwidth", "nvbandwidth", "built from NVIDIA/nvbandwidth"),
        300.0,
    ),
    _source(
        "load-p2pbandwidth", "p2pbandwidth",
        _tool("p2pbandwidth", "p2pBandwidthLatencyTest", "built from NVIDIA/cuda-samples"), 120.0,
    ),
    _source("load-nccl", "nccl-tests", _all_reduce, 300.0),
    _source(
        "load-dcgm", "dcgmi-diag.json",
        _tool(
            "dcgmi-diag.json", "dcgmi", "package datacenter-gpu-manager-4-core, before DCGM 4 datacenter-gpu-manager",
            "diag", "-r", "2", "-j",
        ),
        900.0,
    ),
)  # fmt: skip
