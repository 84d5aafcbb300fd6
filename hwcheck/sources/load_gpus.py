"""
GPUs through the CUDA driver API: contexts, buffers and timers that are given back whatever happens.

Times are those of CUDA's events, recorded on the GPU: what Python takes does not count.
"""

import time

from hwcheck.sources import cuda as cuda_source
from hwcheck.sources import load_binding, load_figures, load_witness
from hwcheck.sources.cuda import CudaError

_NOT_READY = 600  # of cuEventQuery
_PORTABLE = 1  # CU_MEMHOSTALLOC_PORTABLE: pinned for every context
_LOOK_EVERY = 0.005  # seconds between two looks while copies are in flight
_MOST_LOOKS = 4
REPEATS = 9
_WARM_UP, _REPEAT = 0.3, 0.05  # seconds: clocks take a tenth to rise; a repeat long enough for a look
_MOST_COPIES = 2000


class Gpus:
    """
    All GPUs that CUDA shows.

    Attributes:
        cuda: the library.
        devices: (CUDA device, PCI address) in CUDA's order, which is that of the PCI bus.
        library: NVML for witnesses.
    """

    def __init__(self, context):
        self.context = context
        self.cuda = cuda_source.load()
        self.c = self.cuda.c
        self.devices = []
        self.library = load_witness.Library()

    def start(self):
        """
        Initialise CUDA and list the GPUs.

        Raises:
            CudaError: it does not start.
        """
        self.cuda("cuInit", 0)
        count = self.c.c_int()
        self.cuda("cuDeviceGetCount", self.c.byref(count))
        for index in range(count.value):
            device, address = self.c.c_int(), self.c.create_string_buffer(32)
            self.cuda("cuDeviceGet", self.c.byref(device), index)
            self.cuda("cuDeviceGetPCIBusId", address, 32, device)
            self.devices.append((device, spell(address.value.decode("ascii", "replace"))))


def spell(address):
    """Spell a PCI address as the kernel does: four digits of domain, lower case."""
    parts = address.lower().split(":")
    return ":".join([parts[0][-4:].rjust(4, "0"), *parts[1:]]) if len(parts) == 3 else address.lower()


class Work:
    """One context with a stream, two events and whatever is allocated in it; all of it is given back at the end."""

    def __init__(self, gpus, device):
        self.cuda, self.c, self.device = gpus.cuda, gpus.c, device
        self.handle, self.stream = self.c.c_void_p(), self.c.c_void_p()
        self.begin, self.end = self.c.c_void_p(), self.c.c_void_p()
        self._back = []

    def __enter__(self):
        self.cuda("cuCtxCreate_v2", self.c.byref(self.handle), 0, self.device)
        self._back.append(("cuCtxDestroy_v2", self.handle))
        try:
            self._make("cuStreamCreate", "cuStreamDestroy_v2", self.stream, 1)  # 1: beside the default stream
            self._make("cuEventCreate", "cuEventDestroy_v2", self.begin, 0)
            self._make("cuEventCreate", "cuEventDestroy_v2", self.end, 0)
        except CudaError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.cuda.library.cuCtxSetCurrent(self.handle)
        while self._back:  # an error here would hide the one that brought us here; the context takes all along
            name, what = self._back.pop()
            getattr(self.cuda.library, name)(what)

    def _make(self, name, back, handle, flags):
        self.cuda(name, self.c.byref(handle), flags)
        self._back.append((back, handle))

    def current(self):
        """Make this context the thread's own."""
        self.cuda("cuCtxSetCurrent", self.handle)

    def memory(self, size):
        """Allocate memory of the GPU."""
        pointer = self.c.c_uint64()
        self.cuda("cuMemAlloc_v2", self.c.byref(pointer), self.c.c_size_t(size))
        self._back.append(("cuMemFree_v2", pointer))
        return pointer

    def pinned(self, size):
        """Allocate pinned memory of the host, which is taken where this thread is bound to."""
        pointer = self.c.c_void_p()
        self.cuda("cuMemHostAlloc", self.c.byref(pointer), self.c.c_size_t(size), _PORTABLE)
        self._back.append(("cuMemFreeHost", pointer))
        return pointer

    def module(self, text, name):
        """Load a kernel; returns its function."""
        module, function = self.c.c_void_p(), self.c.c_void_p()
        self.cuda("cuModuleLoadData", self.c.byref(module), text)
        self._back.append(("cuModuleUnload", module))
        self.cuda("cuModuleGetFunction", self.c.byref(function), module, name)
        return function

    def fill(self, pointer, size):
        """Write to memory of the GPU, so that it is really there."""
        self.cuda("cuMemsetD8Async", pointer, self.c.c_ubyte(0xA5), self.c.c_size_t(size), self.stream)
        self.cuda("cuStreamSynchronize", self.stream)

    def seconds(self, enqueue, count, look=None):
        """Enqueue something so many times and return how long the GPU took; ``look`` is called while it works."""
        self.cuda("cuEventRecord", self.begin, self.stream)
        for _ in range(count):
            enqueue()
        self.cuda("cuEventRecord", self.end, self.stream)
        if look is not None:
            look()
            for _ in range(_MOST_LOOKS):
                if self.cuda.library.cuEventQuery(self.end) != _NOT_READY:
                    break
                time.sleep(_LOOK_EVERY)
                look()
        self.cuda("cuEventSynchronize", self.end)
        return self.elapsed()

    def elapsed(self):
        """Return the seconds between the two events."""
        milliseconds = self.c.c_float()
        self.cuda("cuEventElapsedTime", self.c.byref(milliseconds), self.begin, self.end)
        return milliseconds.value / 1000


def rates(work, enqueue, size, look, repeats=REPEATS, warm_up=_WARM_UP):
    """
    Measure a copy: warm up for some seconds of the GPU's time until clocks and links are up, then repeat.

    Args:
        work: context to run in.
        enqueue: starts one copy.
        size: bytes that one copy counts.
        look: called while copies are in flight.
        repeats: number of figures.
        warm_up: seconds.

    Returns:
        GB/s of each repeat.
    """
    warm, once = 0.0, work.seconds(enqueue, 1)
    while 0 < once < float("inf") and warm < warm_up:
        once = work.seconds(enqueue, 4) / 4
        warm += 4 * once
    if not 0 < once < float("inf"):
        raise load_figures.FigureError("no figure: a copy of %d bytes took %r s" % (size, once))
    count = max(1, min(_MOST_COPIES, int(_REPEAT / once) + 1))
    return [size * count / work.seconds(enqueue, count, look) / 1e9 for _ in range(repeats)]


def bound_to(gpus, address):
    """Bind this process to the NUMA node of a GPU; returns what the conditions say of it."""
    return load_binding.bind(gpus.context, load_binding.numa_node(gpus.context, address))
