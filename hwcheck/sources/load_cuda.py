"""
Copies of each GPU: within its memory, to and from the host.

Each result is sent as soon as it is there. A GPU on which a call fails is told with CUDA's error, the others go on.
"""

import os

from hwcheck.sources import load_binding, load_figures, load_gpus, load_watch
from hwcheck.sources.cuda import CudaError

_LARGE, _SMALL = 1 << 30, 64 << 20  # bytes of a buffer: as large as is free, halved down to the small one
_PINNED = 256 << 20


def hbm(context):
    """Measure copies within the memory of each GPU; a byte that is read and written counts twice."""
    return each(context, _hbm)


def host_copy(context):
    """Measure copies from and to pinned memory of the GPU's own NUMA node."""
    return each(context, _host_copy)


def each(context, measure):
    """Start CUDA and measure one GPU after the other; yields the lines."""
    load_binding.end_with_parent()
    gpus = load_gpus.Gpus(context)
    try:
        gpus.start()
    except CudaError as error:
        yield load_figures.line({"init": str(error)})
        return
    free = os.sched_getaffinity(0)
    for device, address in gpus.devices:
        binding = load_gpus.bound_to(gpus, address)
        yield from measure(gpus, device, address, binding)
        load_binding.release(free)


def _hbm(gpus, device, address, binding):
    def measure(look):
        with load_gpus.Work(gpus, device) as work:
            size, (one, other) = _buffers(work, 2)
            copy = _call(work, "cuMemcpyDtoDAsync_v2", other, one, size)
            return load_gpus.rates(work, copy, 2 * size, look), {"size": size, "counts": "read+write"}

    yield load_figures.begins("hbm.copy", address)
    yield load_watch.watched(gpus, "hbm.copy", address, (address,), measure, binding)


def _host_copy(gpus, device, address, binding):
    for test in ("h2d", "d2h"):

        def measure(look, test=test):
            with load_gpus.Work(gpus, device) as work:
                size, (there,) = _buffers(work, 1, _PINNED)
                here = work.pinned(size)
                if test == "h2d":
                    copy = _call(work, "cuMemcpyHtoDAsync_v2", there, here, size)
                else:
                    copy = _call(work, "cuMemcpyDtoHAsync_v2", here, there, size)
                return load_gpus.rates(work, copy, size, look), {"size": size, "counts": "one-way", "memory": "pinned"}

        yield load_figures.begins(test, address)
        yield load_watch.watched(gpus, test, address, (address,), measure, binding)


def _buffers(work, count, largest=_LARGE):
    """Allocate buffers as large as there is room for; returns their size and the buffers, written to."""
    size = largest
    while True:
        try:
            found = [work.memory(size) for _ in range(count)]
        except CudaError as error:
            if "OUT_OF_MEMORY" not in str(error) or size <= _SMALL:
                raise
            size //= 2
            continue
        for buffer in found:
            work.fill(buffer, size)
        return size, found


def _call(work, name, target, source, size):
    """Make the function that starts one copy."""
    cuda, length, stream = work.cuda, work.c.c_size_t(size), work.stream
    return lambda: cuda(name, target, source, length, stream)
