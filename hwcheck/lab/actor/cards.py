"""The GPUs of the node as a CUDA program finds them: load tools of the lab measure by the lab's own libcuda."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Callable
from typing import Any

from hwcheck.lab.actor.place import Node, ToolError

_SIZE = 256 << 20
_COPIES = 16


class Cards:
    """
    All GPUs, with a context and two buffers each.

    Attributes:
        addresses: PCI addresses in CUDA's order.

    Raises:
        ToolError: CUDA does not start; the text is its error's name.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        try:
            self._library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise ToolError(str(error)) from None
        self._size = ctypes.c_size_t(_SIZE)
        self._call("cuInit", 0)
        self.addresses: list[str] = []
        self._cards: list[tuple[Any, Any, Any, Any]] = []
        for number in range(self._made(ctypes.c_int, "cuDeviceGetCount").value):
            address = ctypes.create_string_buffer(32)
            self._call("cuDeviceGetPCIBusId", address, 32, number)
            self.addresses.append(address.value.decode())
            context = self._made(ctypes.c_void_p, "cuCtxCreate_v2", 0, number)
            self._bind(self.addresses[-1])
            buffers = [self._made(ctypes.c_uint64, "cuMemAlloc_v2", self._size) for _ in range(2)]
            here = self._made(ctypes.c_void_p, "cuMemHostAlloc", self._size, 0)
            self._cards.append((context, *buffers, here))

    def to_device(self, card: int) -> float:
        """Return GB/s from the host's memory near a GPU."""
        _, there, _, here = self._cards[card]
        return self._rate(card, lambda: self._call("cuMemcpyHtoDAsync_v2", there, here, self._size, None))

    def to_host(self, card: int) -> float:
        """Return GB/s to the host's memory near a GPU."""
        _, there, _, here = self._cards[card]
        return self._rate(card, lambda: self._call("cuMemcpyDtoHAsync_v2", here, there, self._size, None))

    def inside(self, card: int) -> float:
        """Return GB/s of a copy within a GPU, bytes counted once."""
        _, one, other, _ = self._cards[card]
        return self._rate(card, lambda: self._call("cuMemcpyDtoDAsync_v2", other, one, self._size, None))

    def to_peer(self, card: int, peer: int) -> float:
        """Return GB/s from a GPU to another one."""
        context, one, _, _ = self._cards[card]
        target, there, _, _ = self._cards[peer]
        words = (there, target, one, context, self._size, None)
        return self._rate(card, lambda: self._call("cuMemcpyPeerAsync", *words))

    def slowest_pair(self) -> float:
        """Return the least GB/s of neighbours in a ring of all GPUs."""
        count = len(self._cards)
        return min((self.to_peer(card, (card + 1) % count) for card in range(count)), default=0.0)

    def _bind(self, address: str) -> None:
        """Run on the CPUs next to a GPU, as these tools do; where that is refused the figure shows it."""
        runs = [
            run.partition("-") for run in self._node.text(f"/sys/bus/pci/devices/{address}/local_cpulist").split(",")
        ]
        cpus = {cpu for low, _, high in runs if low.isdigit() for cpu in range(int(low), int(high or low) + 1)}
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, cpus)

    def _rate(self, card: int, act: Callable[[], None]) -> float:
        self._call("cuCtxSetCurrent", self._cards[card][0])
        begin, end = (self._made(ctypes.c_void_p, "cuEventCreate", 0) for _ in range(2))
        self._call("cuEventRecord", begin, None)
        for _ in range(_COPIES):
            act()
        self._call("cuEventRecord", end, None)
        self._call("cuEventSynchronize", end)
        taken = self._made(ctypes.c_float, "cuEventElapsedTime", begin, end)
        return float(_COPIES * _SIZE / taken.value / 1e6)

    def _made(self, kind: Any, name: str, *words: Any) -> Any:
        value = kind()
        self._call(name, ctypes.byref(value), *words)
        return value

    def _call(self, name: str, *words: Any) -> None:
        code = getattr(self._library, name)(*words)
        if code:
            text = ctypes.c_char_p()
            self._library.cuGetErrorName(code, ctypes.byref(text))
            raise ToolError(f"{(text.value or b'').decode()} in {name}")
