"""
The configuration space of a PCI function, as far as settings lie in it: capabilities found, words read and written.

Source: PCI Express base specification: capability list from 0x34 (where bit 4 of the status word says there is one),
extended capabilities from 0x100; the kernel's sysfs-bus-pci ``config``, of which only root gets more than 64 bytes.
Reads are small on purpose: each byte is a slow register read.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterator

from .place import Place, WriteError

ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
EXPRESS, ACCESS_CONTROL = 0x10, 0x000D
_FOLDER = "/sys/bus/pci/devices"
_GONE = b"\xff\xff\xff\xff"


def folder(address: str) -> str:
    """Return the folder of a function."""
    return f"{_FOLDER}/{address}"


@contextlib.contextmanager
def _opened(place: Place, address: str, flags: int) -> Iterator[int]:
    """
    Open the configuration space of a function that answers.

    Raises:
        WriteError: there is no such function, or only root could read it.
        OSError: ENODEV: it reads as all ones, that is, it fell off the bus.
    """
    path = f"{folder(address)}/config"
    if not place.exists(path):
        raise WriteError(f"there is no PCI function {address} here")
    fd = os.open(place.real(path), flags | os.O_CLOEXEC)
    try:
        head = os.pread(fd, 4, 0)
        if head == _GONE:
            raise OSError(errno.ENODEV, f"{address} reads as all ones: it no longer answers on its bus")
        if len(os.pread(fd, 1, 0xFF)) < 1:
            raise WriteError(f"{address}: only root reads more than 64 bytes of the configuration space")
        yield fd
    finally:
        os.close(fd)


def find(place: Place, address: str, capability: int, *, extended: bool = False) -> int | None:
    """
    Return where a capability is; None when the function has none.

    Raises:
        WriteError, OSError: the function cannot be read.
    """
    with _opened(place, address, os.O_RDONLY) as fd:
        return _extended(fd, capability) if extended else _plain(fd, capability)


def word(place: Place, address: str, offset: int) -> int:
    """Return the word of 16 bits at an offset; raises as :func:`find`."""
    with _opened(place, address, os.O_RDONLY) as fd:
        return _word(fd, offset)


def put(place: Place, address: str, offset: int, mask: int, bits: int) -> None:
    """Write some bits of a word, and no others; raises as :func:`find`."""
    with _opened(place, address, os.O_RDWR) as fd:
        fresh = _word(fd, offset) & ~mask | bits & mask
        os.pwrite(fd, fresh.to_bytes(2, "little"), offset)


def above(place: Place, address: str) -> str:
    """Return the bridge right above a function; "" when it is on a root bus."""
    parts = os.path.realpath(place.real(folder(address))).split("/")
    return parts[-2] if len(parts) > 1 and ADDRESS.fullmatch(parts[-2]) else ""


def below(place: Place, address: str) -> list[str]:
    """Return the functions right below a bridge."""
    here = os.path.realpath(place.real(folder(address)))
    return sorted(name for name in os.listdir(here) if ADDRESS.fullmatch(name))


def _word(fd: int, offset: int) -> int:
    data = os.pread(fd, 2, offset)
    if len(data) < 2:
        raise WriteError(f"the configuration space ends before 0x{offset:x}")
    return int.from_bytes(data, "little")


def _plain(fd: int, capability: int) -> int | None:
    if not _word(fd, 0x06) & 0x10:
        return None
    place, seen = os.pread(fd, 1, 0x34)[0] & 0xFC, 0
    while place >= 0x40 and seen < 48:
        head = _word(fd, place)
        if head & 0xFF == capability:
            return place
        place, seen = head >> 8 & 0xFC, seen + 1
    return None


def _extended(fd: int, capability: int) -> int | None:
    place, seen = 0x100, 0
    while 0x100 <= place <= 0xFFC and seen < 64:
        head = int.from_bytes(os.pread(fd, 4, place), "little")
        if head in (0, 0xFFFFFFFF):
            return None
        if head & 0xFFFF == capability:
            return place
        place, seen = head >> 20, seen + 1
    return None
