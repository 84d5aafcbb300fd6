"""One measurement of GPUs under the eyes of NVML and the kernel's log, and a second one where the first is doubtful."""

from hwcheck.sources import load_before, load_figures, load_witness
from hwcheck.sources.cuda import CudaError
from hwcheck.sources.load_figures import FigureError

_DOUBTFUL = 5.0  # percent of spread from which a figure is taken anew, once
_OF_MIDDLE = ("series", "host_p50", "host_p99", "host_p999", "host_max")  # not told again beside the tail
_REACHED = 0.9  # share of its maximum that a clock must have under load


def watched(gpus, test, on, addresses, measure, conditions, unit="GB/s", strangers=None):
    """
    Measure under the eyes of NVML and the kernel's log; once more where the first figure is doubtful.

    Args:
        gpus: the session.
        test: what is measured.
        on: of what.
        addresses: of the GPUs to watch.
        measure: takes the function to call while work is in flight; returns the samples and what it knows of them;
            under ``tails`` the samples of a second figure, of the rare slow ones.
        conditions: known beforehand.
        unit: ``GB/s`` or ``us``.
        strangers: as in :class:`hwcheck.sources.load_witness.GpuWitness`.

    Returns:
        The line, or two.
    """
    if unit == "us":  # what lasts microseconds is disturbed by whoever takes the CPU
        before = load_before.host_before(gpus.context.root)
        conditions = {**conditions, **{key: before[key] for key in ("runaways", "governor") if key in before}}
    try:
        for retested in (False, True):
            gpu = load_witness.GpuWitness(gpus.library, addresses, strangers)
            node = load_witness.NodeWitness(gpus.context)
            samples, more = measure(gpu.look)
            tails = more.pop("tails", None)
            seen = {**conditions, **more, **gpu.told(), **node.told(interrupts=unit == "us")}
            if retested:
                seen["retested"] = True
            if not samples or (load_figures.spread(samples) <= _DOUBTFUL and _clocks_reached(seen)):
                break
        tail = {key: value for key, value in seen.items() if key not in _OF_MIDDLE}
        lines = load_figures.figure(test, on, unit, samples, seen)
        return lines + load_figures.figure(test + ".tail", on, unit, tails, tail) if tails else lines
    except (CudaError, FigureError) as error:
        return load_figures.broken(test, on, error)


def _clocks_reached(seen):
    return all(seen.get(word, 0) >= _REACHED * seen.get(word + "_max", 0) for word in ("sm_clock", "memory_clock"))
