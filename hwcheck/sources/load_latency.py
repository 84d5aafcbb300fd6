"""
How long the smallest things take on each GPU: an empty kernel, a copy of one page; and how evenly.

The figure is the time between two events around it, as the GPU takes it; beside it stands what the host waited for the
same, round trip. The rare slow one is a figure of its own (``.tail``, P99.9): whatever takes the CPU now and then shows
there and nowhere else. The time series tells when it came.
"""

import time

from hwcheck.sources import load_cuda, load_figures, load_gpus, load_watch

_BATCHES, _BATCH, _WARM_UP = 10, 1000, 500
_PAGE = 4096
PTX = b"""
.version 6.4
.target sm_70
.address_size 64
.visible .entry nothing()
{
    ret;
}
\0"""


def latency(context):
    """Measure launch and small copy of each GPU; yields the lines."""
    return load_cuda.each(context, _latency)


def _latency(gpus, device, address, binding):
    for test, prepare in (("launch", _kernel), ("copy.small", _copy)):

        def measure(look, prepare=prepare):
            with load_gpus.Work(gpus, device) as work:
                once, more = prepare(work)
                return _batches(work, once, look, more)

        yield load_figures.begins(test, address)
        yield load_watch.watched(gpus, test, address, (address,), measure, binding, unit="us")


def _kernel(work):
    function = work.module(PTX, b"nothing")
    return lambda: work.cuda("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, work.stream, None, None), {}


def _copy(work):
    here, there = work.pinned(_PAGE), work.memory(_PAGE)
    size = work.c.c_size_t(_PAGE)
    more = {"size": _PAGE, "counts": "one-way", "memory": "pinned"}
    return lambda: work.cuda("cuMemcpyHtoDAsync_v2", there, here, size, work.stream), more


def _batches(work, once, look, more):
    """
    Do it so many thousand times, one after the other.

    Returns:
        The median of each batch in us, and the conditions: spectrum and series over all, by the GPU's time, the
        spectrum of what the host waited, and the tail of each batch.
    """
    cuda = work.cuda
    for _ in range(_WARM_UP):
        once()
    cuda("cuStreamSynchronize", work.stream)
    medians, tails, times, waits = [], [], [], []
    for _ in range(_BATCHES):
        batch = []
        for _ in range(_BATCH):
            began = time.perf_counter_ns()
            cuda("cuEventRecord", work.begin, work.stream)
            once()
            cuda("cuEventRecord", work.end, work.stream)
            cuda("cuEventSynchronize", work.end)
            waits.append((time.perf_counter_ns() - began) / 1000)
            batch.append(work.elapsed() * 1e6)
        look()  # between batches: in the midst of one NVML itself would be the spike
        medians.append(load_figures.median(batch))
        tails.append(load_figures.percentile(sorted(batch), 0.999))
        times += batch
    spectrum = {
        **load_figures.spectrum(times),
        "tails": tails,
        "series": load_figures.series(times),
        "count": len(times),
    }
    waited = {"host_" + name: value for name, value in load_figures.spectrum(waits).items()}
    return medians, {**more, **spectrum, **waited}
