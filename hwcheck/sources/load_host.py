"""
What the host gives: memory bandwidth of each NUMA node, and how evenly one of its CPUs runs.

Standard library alone, so the figures are those of ``memmove`` and of Python's clock; they compare nodes of a fleet
with each other and with their past, not with STREAM.
"""

import os
import signal
import time

from hwcheck.sources import load_before, load_binding, load_figures, load_witness
from hwcheck.sources.load_figures import FigureError

_BUFFER = 32 << 20  # bytes that one process copies at a time: more than its share of any cache
_MOST_PROCESSES = 64
_SHARE = 4  # of the memory that is free at most one part in so many is taken
_REPEATS, _REPEAT = 7, 0.3  # seconds
_STRETCHES, _STRETCH, _WINDOW = 10, 0.3, 0.001
_CPU = "/sys/devices/system/cpu/"


def cpu_memory(context):
    """
    Measure how fast the CPUs of each NUMA node copy within its memory; what is read and written counts both.

    One core alone cannot saturate a memory controller, so a process for each two CPUs (threads of a core share its
    path) copies a buffer of its own. Yields the lines.
    """
    load_binding.end_with_parent()
    allowed = len(os.sched_getaffinity(0))
    for node in load_binding.nodes_with_cpus(context):
        on = "numa%d" % node
        yield load_figures.begins("cpu.memory", on)
        witness = load_witness.NodeWitness(context)
        conditions = load_before.host_before(context.root)
        pid, reader = _fork(lambda write, node=node: _node(context, node, allowed, write))
        try:
            told = _read_all(reader)
        finally:
            os.close(reader)
            os.waitpid(pid, 0)
        try:
            binding, samples = _understood(told)
            conditions.update(binding, counts="read+write", size=_BUFFER, **witness.told())
            yield load_figures.figure("cpu.memory", on, "GB/s", samples, conditions)
        except FigureError as error:
            yield load_figures.broken("cpu.memory", on, error)


def _understood(told):
    """
    Read what the child of a NUMA node wrote: binding and samples.

    Raises:
        FigureError: it wrote why there are none, or nothing.
    """
    import json

    try:
        record = json.loads(told or b"{}")
    except ValueError:
        record = {}
    if "samples" not in record:
        raise FigureError(record.get("error", "the processes that copy ended without a figure"))
    return record["binding"], record["samples"]


def _node(context, node, allowed, write):
    """Bind this process and those it starts to a node, let them copy, and write binding and samples."""
    binding = load_binding.bind(context, node)
    cpus = load_binding.cpus_of(context, node) or range(allowed)
    room = load_before.available_memory(context.root) // (_SHARE * 2 * _BUFFER)
    count = max(1, min(len(cpus) // 2, allowed, _MOST_PROCESSES, room))
    workers = []
    for _ in range(count):
        go_reader, go = os.pipe()
        pid, reader = _fork(lambda write, go_reader=go_reader: _copy(go_reader, write))
        os.close(go_reader)
        workers.append((pid, reader, go))
    binding["threads"] = count
    samples = []
    for turn in range(_REPEATS + 1):  # the first one warms up: pages, clocks
        for _, _, go in workers:
            os.write(go, b"g")
        rates = [os.read(reader, 64) for _, reader, _ in workers]
        if not all(rates):
            write(load_figures.line({"error": "a process that copies ended early (memory?)"}))
            return
        if turn:
            samples.append(sum(float(rate.split()[0]) for rate in rates))
    for pid, _, _ in workers:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    write(load_figures.line({"binding": binding, "samples": samples}))


def _copy(go, write):
    """Copy a buffer to another for a while each time a byte comes; write GB/s."""
    import ctypes

    source, target = ctypes.create_string_buffer(_BUFFER), ctypes.create_string_buffer(_BUFFER)
    ctypes.memset(source, 0xA5, _BUFFER)  # touched here, so it is in this node's memory
    ctypes.memset(target, 0x5A, _BUFFER)
    while os.read(go, 1):  # until it is killed
        began, copied = time.perf_counter(), 0
        while time.perf_counter() - began < _REPEAT:
            ctypes.memmove(target, source, _BUFFER)
            copied += 2 * _BUFFER
        write(b"%.6f\n" % (copied / (time.perf_counter() - began) / 1e9))


def _fork(work):
    """Run a function in a child of this process's group; returns its pid and a pipe of what it writes."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return pid, reader
    status = 1
    try:
        load_binding.end_with_parent()
        os.close(reader)
        work(lambda data: os.write(writer, data))
        status = 0
    finally:
        os._exit(status)


def _read_all(reader):
    parts = []
    while True:
        part = os.read(reader, 65536)
        if not part:
            return b"".join(parts)
        parts.append(part)


def jitter(context):
    """
    Measure how long a CPU is taken away from a program that only looks at the clock.

    Of each millisecond the longest gap between two looks counts; the figure is the one that 99 % do not exceed. On an
    isolated CPU where the node has some, else on the last one: the first ones serve most interrupts. Yields the lines.
    """
    load_binding.end_with_parent()
    yield load_figures.begins("os.jitter", "")
    witness = load_witness.NodeWitness(context)
    conditions = load_before.host_before(context.root)
    isolated = load_binding.numbers(load_before.first_line(context.root + _CPU + "isolated"))
    cpu = (isolated or sorted(os.sched_getaffinity(0)))[-1]
    try:
        os.sched_setaffinity(0, [cpu])
        conditions["where"] = "CPU %d%s" % (cpu, ", isolated" if isolated else "")
    except OSError as error:
        conditions["where"] = "any CPU (binding to CPU %d: %s)" % (cpu, error.strerror)
    gaps = [_stretch() for _ in range(_STRETCHES)]
    every = [gap for stretch in gaps for gap in stretch]
    samples = [load_figures.percentile(sorted(stretch), 0.99) for stretch in gaps]
    conditions.update(
        load_figures.spectrum(every),
        series=load_figures.series(every),
        count=len(every),
        **witness.told(interrupts=True),
    )
    try:
        yield load_figures.figure("os.jitter", "", "us", samples, conditions)
    except FigureError as error:
        yield load_figures.broken("os.jitter", "", error)


def _stretch():
    """Return the longest gap of each window of a stretch, in us."""
    clock, window, found = time.perf_counter_ns, int(_WINDOW * 1e9), []
    last = clock()
    for _ in range(int(_STRETCH / _WINDOW)):
        end, longest = last + window, 0
        while last < end:
            now = clock()
            if now - last > longest:  # noqa: PLR1730 - a call of max takes as long as the gaps that are looked for
                longest = now - last
            last = now
        found.append(longest / 1000)
    return found
