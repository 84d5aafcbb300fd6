"""
A small program on the driver API, run on a lab node: figures of each GPU by CUDA's events, as one JSON object.

``h2d``, ``d2h``, ``hbm.copy`` (read and written) and ``p2p`` (to the next GPU) in GB/s; ``launch`` and ``copy.small``
in us, each as [median, 99.9 %]. Arguments: the root that /sys lies under, and ``near`` or ``far`` to run on the CPUs of
each GPU's NUMA node or of the other one.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

SIZE = 256 << 20
PTX = b".version 6.4\n.target sm_70\n.address_size 64\n.visible .entry nothing()\n{ ret; }\n\0"
library = ctypes.CDLL("libcuda.so.1")


def call(name: str, *words: Any) -> None:
    """Call a function, or say which failed."""
    code = getattr(library, name)(*words)
    if code:
        text = ctypes.c_char_p()
        library.cuGetErrorName(code, ctypes.byref(text))
        sys.exit(f"{name}: {(text.value or b'').decode()}")


def made(kind: Any, name: str, *words: Any) -> Any:
    """Call a function that gives something."""
    value = kind()
    call(name, ctypes.byref(value), *words)
    return value


def seconds(act: partial[None], count: int = 1) -> float:
    """Time something by two events."""
    begin, end = (made(ctypes.c_void_p, "cuEventCreate", 0) for _ in range(2))
    call("cuEventRecord", begin, None)
    for _ in range(count):
        act()
    call("cuEventRecord", end, None)
    call("cuEventSynchronize", end)
    milliseconds = made(ctypes.c_float, "cuEventElapsedTime", begin, end)
    for event in (begin, end):
        call("cuEventDestroy_v2", event)
    return float(milliseconds.value / 1e3 / count)


def rate(act: partial[None], counted: int = 1) -> float:
    """Time a copy; returns GB/s."""
    return round(counted * SIZE / seconds(act, 50) / 1e9, 2)


def spectrum(act: partial[None]) -> list[float]:
    """Time something small many times; returns the median and the 99.9 % in us."""
    times = sorted(seconds(act) * 1e6 for _ in range(2000))
    return [round(times[1000], 3), round(times[1998], 3)]


def place(root: Path, address: str, *, far: bool) -> None:
    """Run on the CPUs of a GPU's NUMA node, or of the other one."""
    node = int((root / f"sys/bus/pci/devices/{address}/numa_node").read_text()) ^ far
    runs = (root / f"sys/devices/system/node/node{node}/cpulist").read_text().strip().split(",")
    pairs = [run.partition("-") for run in runs]
    os.sched_setaffinity(0, {cpu for low, _, high in pairs for cpu in range(int(low), int(high) + 1)})


def main(root: Path, how: str) -> None:
    """Measure everything."""
    call("cuInit", 0)
    count = made(ctypes.c_int, "cuDeviceGetCount").value
    size, found, gpus = ctypes.c_size_t(SIZE), {}, []
    for number in range(count):
        device, address = made(ctypes.c_int, "cuDeviceGet", number), ctypes.create_string_buffer(32)
        call("cuDeviceGetPCIBusId", address, 32, device)
        context = made(ctypes.c_void_p, "cuCtxCreate_v2", 0, device)
        gpus.append((address.value.decode(), context, *(made(ctypes.c_uint64, "cuMemAlloc_v2", size) for _ in "ab")))
    for number, (address, context, one, other) in enumerate(gpus):
        call("cuCtxSetCurrent", context)
        if how:
            place(root, address, far=how == "far")
        here = made(ctypes.c_void_p, "cuMemHostAlloc", size, 0)
        module = made(ctypes.c_void_p, "cuModuleLoadData", PTX)
        nothing = made(ctypes.c_void_p, "cuModuleGetFunction", module, b"nothing")
        _, peer, _, there = gpus[(number + 1) % count]
        found[address] = {
            "h2d": rate(partial(call, "cuMemcpyHtoDAsync_v2", one, here, size, None)),
            "d2h": rate(partial(call, "cuMemcpyDtoHAsync_v2", here, one, size, None)),
            "hbm.copy": rate(partial(call, "cuMemcpyDtoDAsync_v2", other, one, size, None), 2),
            "p2p": rate(partial(call, "cuMemcpyPeerAsync", there, peer, one, context, size, None)),
            "launch": spectrum(partial(call, "cuLaunchKernel", nothing, 1, 1, 1, 1, 1, 1, 0, None, None, None)),
            "copy.small": spectrum(partial(call, "cuMemcpyHtoDAsync_v2", one, here, ctypes.c_size_t(4096), None)),
        }
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "")
