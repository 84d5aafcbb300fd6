"""
A first kernel on each GPU through the CUDA driver library: context, copy, compute, compare. By ctypes; no toolkit.

nvidia-smi can look perfectly healthy on a node where no program starts: this is the smallest program that uses all of
it. It leaves nothing: the compiled kernel is not cached, and the memory and the context are given back.
"""

import os
import time

from hwcheck.sources.source import Absent

LIBRARY = "libcuda.so.1"
COUNT, BLOCK = 1 << 16, 256
PTX = b"""
.version 6.4
.target sm_70
.address_size 64
.visible .entry square_plus_index(.param .u64 data, .param .u32 count)
{
    .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %d<5>;
    ld.param.u64 %d1, [data];
    ld.param.u32 %r1, [count];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra DONE;
    cvta.to.global.u64 %d2, %d1;
    mul.wide.u32 %d3, %r5, 4;
    add.u64 %d4, %d2, %d3;
    ld.global.u32 %r6, [%d4];
    mad.lo.u32 %r7, %r6, %r6, %r5;
    st.global.u32 [%d4], %r7;
DONE:
    ret;
}
\0"""


class CudaError(Exception):
    """A call that did not succeed; says which, and CUDA's name for why."""


def sanity(context):  # noqa: ARG001 - all asks take it
    """
    Yield ``init:``, ``devices:`` and one ``device N ADDRESS: ok`` or ``... CALL: ERROR_NAME (code)`` a GPU.

    Raises:
        Absent: there is no CUDA driver library.
    """
    cuda = load()
    yield b"CUDA sanity of hwcheck\n"
    try:
        cuda("cuInit", 0)
        number = cuda.c.c_int()
        cuda("cuDeviceGetCount", cuda.c.byref(number))
    except CudaError as error:
        yield ("init: %s\n" % error).encode()
        return
    yield ("init: ok\ndevices: %d\n" % number.value).encode()
    for index in range(number.value):
        device, address = cuda.c.c_int(), cuda.c.create_string_buffer(32)
        try:
            cuda("cuDeviceGet", cuda.c.byref(device), index)
            cuda("cuDeviceGetPCIBusId", address, 32, device)
        except CudaError as error:
            yield ("device %d -: %s\n" % (index, error)).encode()
            continue
        where = address.value.decode("ascii", "replace")
        yield ("device %d %s: begins\n" % (index, where)).encode()
        yield ("device %d %s: %s\n" % (index, where, _try(cuda, device))).encode()


def load():
    """
    Load the library, for a process that sees every GPU and leaves no compiled kernel behind.

    Raises:
        Absent: there is no CUDA driver library.
    """
    import ctypes

    os.environ["CUDA_CACHE_DISABLE"] = "1"  # else the compiled kernel stays in the home directory
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    try:
        return Cuda(ctypes, ctypes.CDLL(LIBRARY))
    except OSError as error:
        raise Absent("%s: %s" % (LIBRARY, error)) from None


class Cuda:
    """The library; a call of it is a call of the function, checked."""

    def __init__(self, ctypes, library):
        self.c, self.library = ctypes, library

    def __call__(self, name, *args):
        code = getattr(self.library, name)(*args)
        if code:
            raise CudaError("%s: %s (%d)" % (name, self.word(code), code))

    def word(self, code):
        text = self.c.c_char_p()
        if self.library.cuGetErrorName(code, self.c.byref(text)) or not text.value:
            return "unknown CUDA error"
        return text.value.decode("ascii", "replace")


def _try(cuda, device):
    """Run the kernel on one device; returns ``ok`` with the seconds, or what went wrong."""
    started = time.monotonic()
    handle = cuda.c.c_void_p()
    try:
        cuda("cuCtxCreate_v2", cuda.c.byref(handle), 0, device)
    except CudaError as error:
        return str(error)
    try:
        wrong = _compute(cuda)
    except CudaError as error:
        wrong = str(error)
    try:
        cuda("cuCtxDestroy_v2", handle)
    except CudaError as error:
        wrong = wrong or str(error)
    return wrong or "ok in %.3f s" % (time.monotonic() - started)


def _compute(cuda):
    """Copy numbers there, let the kernel work on them, copy them back and compare; returns what is wrong, or ""."""
    c = cuda.c
    module, function, memory = c.c_void_p(), c.c_void_p(), c.c_uint64()
    cuda("cuModuleLoadData", c.byref(module), PTX)
    cuda("cuModuleGetFunction", c.byref(function), module, b"square_plus_index")
    cuda("cuMemAlloc_v2", c.byref(memory), c.c_size_t(COUNT * 4))
    numbers = (c.c_uint32 * COUNT)(*[(i * 2654435761) & 0xFFFFFFFF for i in range(COUNT)])
    given = list(numbers)
    cuda("cuMemcpyHtoD_v2", memory, numbers, c.c_size_t(COUNT * 4))
    count = c.c_uint32(COUNT)
    args = (c.c_void_p * 2)(c.addressof(memory), c.addressof(count))
    cuda("cuLaunchKernel", function, COUNT // BLOCK, 1, 1, BLOCK, 1, 1, 0, None, args, None)
    cuda("cuCtxSynchronize")
    cuda("cuMemcpyDtoH_v2", numbers, memory, c.c_size_t(COUNT * 4))
    cuda("cuMemFree_v2", memory)
    for index, (before, after) in enumerate(zip(given, numbers)):
        right = (before * before + index) & 0xFFFFFFFF
        if after != right:
            return "wrong result: element %d is %d, not %d" % (index, after, right)
    return ""
