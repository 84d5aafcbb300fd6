"""Calls of the kernel that Python 3.11 has no name for; Linux only, by way of the C library."""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
MNT_DETACH = 2
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWPID, CLONE_NEWNET = (
    0x20000,
    0x04000000,
    0x08000000,
    0x20000000,
    0x40000000,
)
PR_SET_PDEATHSIG, PR_CAPBSET_DROP = 1, 24
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    """
    Mount.

    Raises:
        OSError: the kernel refused; the file name is the target.
    """
    result = _libc.mount(
        os.fsencode(source), os.fsencode(target), kind.encode() or None, ctypes.c_ulong(flags), data.encode() or None
    )
    _checked(result, target)


def bind(source: str, target: str, *, writable: bool) -> None:
    """Show a file or folder at another place; not what is mounted below it."""
    mount(source, target, flags=MS_BIND)
    if not writable:
        mount("", target, flags=MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID)


def unmount(target: str) -> None:
    """Take a mount away as soon as nobody uses it."""
    _checked(_libc.umount2(os.fsencode(target), MNT_DETACH), target)


def unshare(flags: int) -> None:
    """Leave namespaces for new ones; a new PID namespace begins with the next child."""
    _checked(_libc.unshare(flags), "unshare")


def enter(fd: int, kind: int) -> None:
    """Enter the namespace behind a descriptor of ``/proc/PID/ns``."""
    _checked(_libc.setns(fd, kind), "setns")


def change_root(root: str) -> None:
    """Make a mounted folder the root and drop the old one."""
    os.chdir(root)
    _checked(_libc.syscall(_PIVOT_ROOT[os.uname().machine], b".", b"."), "pivot_root")
    unmount(".")
    os.chdir("/")


_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}


def die_with_parent() -> None:
    """Have the kernel kill this process when the thread that made it ends."""
    _checked(_libc.prctl(PR_SET_PDEATHSIG, 9, 0, 0, 0), "prctl")


def drop_capabilities(numbers: tuple[int, ...]) -> None:
    """Give up capabilities for this process' future programs, root or not."""
    for number in numbers:
        _checked(_libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0), "prctl")


def make_network() -> int:
    """
    Make a network with nothing but a loopback device, for all nodes of a lab: they reach each other and nobody else.

    Returns:
        Descriptor of its namespace; -1 where the machine allows none.
    """
    home = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        unshare(CLONE_NEWNET)
        raise_loopback()
        return os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1
    finally:
        enter(home, CLONE_NEWNET)
        os.close(home)


def raise_loopback() -> None:
    """Bring up the loopback device of a new network namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))


def started(pid: int) -> str:
    """Return when a process began, in ticks since boot; "" when there is none. A pid alone may be another's by now."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - as the other calls here
            fields = file.read().rpartition(b") ")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in (b"Z", b"X") else fields[19].decode()
