"""Copies between all ordered pairs of GPUs that reach each other, as peers; one pair after the other."""

import contextlib

from hwcheck.sources import load_binding, load_figures, load_gpus, load_watch, load_witness
from hwcheck.sources.cuda import CudaError

_SIZE = 256 << 20
_REPEATS, _WARM_UP = 5, 0.05
_ALREADY = 704  # CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED


def peers(context):
    """Measure the matrix; the first GPU of a pair writes to the second. Yields a line a pair."""
    load_binding.end_with_parent()
    gpus = load_gpus.Gpus(context)
    try:
        gpus.start()
        pairs = [
            (one, two) for one in gpus.devices for two in gpus.devices if one is not two and _reach(gpus, one, two)
        ]
    except CudaError as error:
        yield load_figures.line({"init": str(error)})
        return
    with contextlib.ExitStack() as stack:
        matrix = _Matrix(gpus, stack)
        for one, two in pairs:
            on = "%s>%s" % (one[1], two[1])
            yield load_figures.begins("p2p", on)
            yield matrix.line(on, one, two)


def _reach(gpus, one, two):
    able = gpus.c.c_int()
    gpus.cuda("cuDeviceCanAccessPeer", gpus.c.byref(able), one[0], two[0])
    return bool(able.value)


class _Matrix:
    """
    The contexts and buffers of all GPUs, made when first needed and kept: to make two for each of 56 pairs takes half
    a minute. Who else is on the GPUs is therefore asked once, before the first.
    """

    def __init__(self, gpus, stack):
        self.gpus, self.stack, self.ready = gpus, stack, {}
        everyone = load_witness.GpuWitness(gpus.library, [address for _, address in gpus.devices])
        self.strangers = everyone.strangers

    def line(self, on, one, two):
        """Measure one pair."""

        def measure(look):
            (work, source, _), (there, _, target) = self._of(one), self._of(two)
            work.current()
            code = self.gpus.cuda.library.cuCtxEnablePeerAccess(there.handle, 0)
            if code not in (0, _ALREADY):
                raise CudaError("cuCtxEnablePeerAccess: %s (%d)" % (self.gpus.cuda.word(code), code))
            size = self.gpus.c.c_size_t(_SIZE)

            def copy():
                self.gpus.cuda("cuMemcpyPeerAsync", target, there.handle, source, work.handle, size, work.stream)

            found = load_gpus.rates(work, copy, _SIZE, look, _REPEATS, _WARM_UP)
            return found, {"size": _SIZE, "counts": "one-way", "p2p": True}

        addresses = (one[1], two[1])
        return load_watch.watched(self.gpus, "p2p", on, addresses, measure, {}, strangers=self.strangers)

    def _of(self, gpu):
        """Return the context of a GPU with a buffer to read from and one to write to."""
        device, address = gpu
        if address not in self.ready:
            work = self.stack.enter_context(load_gpus.Work(self.gpus, device))
            buffers = [work.memory(_SIZE) for _ in range(2)]
            for buffer in buffers:
                work.fill(buffer, _SIZE)
            self.ready[address] = (work, *buffers)
        return self.ready[address]
