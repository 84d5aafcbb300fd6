"""nccl-tests over several nodes, launched on this one, where a launcher and the program are there."""

import os
import time

from hwcheck.sources import capture, load_binding, program
from hwcheck.sources.source import LOAD, Absent, Context, Instead, Source

_PLACES = ("/usr/local/bin", "/opt/nccl-tests/build", "/usr/local/nccl-tests/build", "/usr/mpi/gcc/openmpi/bin")


def main(order, deadline=600.0, out=1):
    """
    Launch it and send the stream.

    Args:
        order: ``lines``: launcher → command line; ``program``: the word in it that stands for the test's path;
            ``environment`` of the ranks.
        deadline: seconds.
        out: file descriptor of the stream.
    """
    started = time.monotonic()
    context = Context(uid=os.geteuid())
    program.begin(context, out)
    source = Source("load-collective", "nccl-tests", lambda _: choose(order), child=True, deadline=deadline, tier=LOAD)
    capture.run([source], context, out, deadline)
    program.finish(out, started)


def choose(order):
    """
    Return the command line of the first launcher that is there.

    Raises:
        Absent: the test or every launcher is missing; says what would bring it.
    """
    load_binding.end_with_parent()
    test = _found(order["program"])
    if not test:
        raise Absent("%s (nccl-tests, built from NVIDIA/nccl-tests with MPI=1)" % order["program"])
    for launcher, line in order["lines"].items():
        path = _found(launcher)
        if path:
            os.environ.update(order["environment"])
            words = [test if word == order["program"] else word for word in line[1:]]
            return Instead("nccl-tests", (path, *words), launcher)
    raise Absent("%s (package openmpi-bin, or slurm-client)" % " or ".join(order["lines"]))


def _found(name):
    """Return the path of a program, on PATH or where it is usually put; "" when it is nowhere."""
    for folder in (*os.get_exec_path(), *_PLACES):
        path = os.path.join(folder, name)
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    return ""
