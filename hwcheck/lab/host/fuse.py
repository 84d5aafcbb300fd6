"""
Attributes served through /dev/fuse: the kernel's own protocol, spoken without a library, for all nodes by one mount.

The mount is one flat folder of numbered files, each of which is bound over the place where a node has the attribute. A
read is answered with the value as it is then, a write with what the kernel would answer. A read that is never answered
leaves its reader in uninterruptible sleep: as near to a hanging driver as can be had without one.

Source: include/uapi/linux/fuse.h, protocol 7.31; all numbers are in the byte order of the machine.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import time
from collections.abc import Callable

from hwcheck.lab.host.attributes import DIE, HANG, Attribute
from hwcheck.lab.host.syscalls import MS_NODEV, MS_NOEXEC, MS_NOSUID, mount

_LOOKUP, _FORGET, _GETATTR, _SETATTR, _OPEN, _READ, _WRITE, _STATFS, _RELEASE = 1, 2, 3, 4, 14, 15, 16, 17, 18
_INIT, _OPENDIR, _READDIR, _RELEASEDIR, _INTERRUPT, _DESTROY, _BATCH_FORGET = 26, 27, 28, 29, 36, 38, 42
_UNANSWERED = frozenset((_FORGET, _BATCH_FORGET, _INTERRUPT))
_EMPTY = frozenset((_RELEASE, _READDIR, _RELEASEDIR, _DESTROY))
_HEADER = struct.Struct("=IIQQIIII")
_REPLY = struct.Struct("=IiQ")
_ATTRIBUTES = struct.Struct("=6Q10I")
_PAGE = 4096
_TRUST = 3600  # seconds the kernel may keep names; a value is asked for each time
_DIRECT_IO = 1
_ROOT = 1
_WRITE_MOST = 1 << 17
_Answer = bytes | None


class FuseServer:
    """
    The folder of attributes.

    Args:
        died: called with a node's name when one of its attributes ends it.
        rebooted: called with a node's name when it asks its kernel to reboot.

    Attributes:
        fd: of the device; readable when there is a request. When it is closed, by whatever, all waiting readers wake.
    """

    def __init__(self, died: Callable[[str], None], rebooted: Callable[[str], None]) -> None:
        self.fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
        self._died = died
        self._rebooted = rebooted
        self._files: dict[int, Attribute] = {}
        self._opened: dict[int, tuple[int, bytes]] = {}
        self._hanging: dict[int, str] = {}
        self._next = _ROOT + 1
        self._handle = 0
        self._started = int(time.time())

    def mount(self, folder: str) -> None:
        """Mount it at a folder; others may use it too."""
        data = f"fd={self.fd},rootmode=40000,user_id=0,group_id=0,allow_other"
        mount("hwcheck-lab", folder, "fuse", MS_NOSUID | MS_NODEV | MS_NOEXEC, data)

    def add(self, attribute: Attribute) -> int:
        """Serve an attribute; returns the name of its file, a number."""
        number = self._next
        self._next += 1
        self._files[number] = attribute
        return number

    def drop(self, node: str) -> None:
        """Serve a node no more, and let go whoever waits for it."""
        for number in [number for number, attribute in self._files.items() if attribute.node.name == node]:
            del self._files[number]
        for unique in [unique for unique, name in self._hanging.items() if name == node]:
            del self._hanging[unique]
            self._reply(unique, -errno.EIO)

    def serve(self) -> None:
        """Answer all requests that are there."""
        while True:
            try:
                request = os.read(self.fd, _WRITE_MOST + _PAGE)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.EINTR):  # taken back before we read it
                    continue
                raise
            self._answer(request)

    def _answer(self, request: bytes) -> None:
        _, opcode, unique, number, *_ = _HEADER.unpack_from(request)
        body = request[_HEADER.size :]
        if opcode in _UNANSWERED:
            return
        if opcode in _EMPTY:
            if opcode == _RELEASE:
                self._opened.pop(struct.unpack_from("=Q", body)[0], None)
            self._reply(unique, 0)
            return
        handler = _HANDLERS.get(opcode)
        if handler is None:
            self._reply(unique, -errno.ENOSYS)
            return
        try:
            answer = handler(self, unique, number, body)
        except OSError as error:
            self._reply(unique, -(error.errno or errno.EIO))
            return
        if answer is not None:
            self._reply(unique, 0, answer)

    def _reply(self, unique: int, error: int, data: bytes = b"") -> None:
        try:
            os.write(self.fd, _REPLY.pack(_REPLY.size + len(data), error, unique) + data)
        except OSError as problem:
            if problem.errno != errno.ENOENT:  # who asked is gone
                raise

    def _attribute(self, number: int) -> Attribute:
        try:
            return self._files[number]
        except KeyError:
            raise OSError(errno.ENOENT, "no such attribute") from None

    def _about(self, number: int) -> bytes:
        if number == _ROOT:
            mode, size = stat.S_IFDIR | 0o555, 0
        else:
            attribute = self._attribute(number)
            mode = stat.S_IFREG | (0o644 if attribute.kind else 0o444)
            size = attribute.file.stat().st_size if attribute.kind == "bytes" else _PAGE
        when = self._started
        return _ATTRIBUTES.pack(number, size, 0, when, when, when, 0, 0, 0, mode, 1, 0, 0, 0, _PAGE, 0)

    def on_init(self, _unique: int, _number: int, body: bytes) -> _Answer:
        """Agree on the protocol."""
        major, minor, ahead, _flags = struct.unpack_from("=4I", body)
        if major != 7 or minor < 23:
            raise OSError(errno.EPROTO, "protocol too old")
        return struct.pack("=4I2H2I2H2I24x", 7, 31, ahead, 0, 16, 12, _WRITE_MOST, 1, 0, 0, 0, 0)

    def on_lookup(self, _unique: int, _number: int, body: bytes) -> _Answer:
        """Find an attribute by its number."""
        name = body.partition(b"\0")[0]
        if not name.isdigit():
            raise OSError(errno.ENOENT, "no such attribute")
        number = int(name)
        return struct.pack("=4Q2I", number, 0, _TRUST, _TRUST, 0, 0) + self._about(number)

    def on_getattr(self, _unique: int, number: int, _body: bytes) -> _Answer:
        """Tell mode and size; a truncation before a write is nothing."""
        return struct.pack("=Q2I", _TRUST, 0, 0) + self._about(number)

    def on_open(self, _unique: int, number: int, body: bytes) -> _Answer:
        """Open, where it may be."""
        attribute = self._attribute(number)
        flags = struct.unpack_from("=I", body)[0]
        if flags & os.O_ACCMODE != os.O_RDONLY and not attribute.kind:
            attribute.node.note("open", attribute.path, "for writing EACCES")
            raise OSError(errno.EACCES, "read only")
        self._handle += 1
        return struct.pack("=Q2I", self._handle, _DIRECT_IO, 0)

    def on_read(self, unique: int, number: int, body: bytes) -> _Answer:
        """Read, or never answer."""
        attribute = self._attribute(number)
        handle, offset, size = struct.unpack_from("=2QI", body)
        behaviour = attribute.node.behaviour(attribute.path, "read")
        if behaviour in (HANG, DIE):
            attribute.node.note("read", attribute.path, behaviour)
            self._hanging[unique] = attribute.node.name
            if behaviour == DIE:
                self._died(attribute.node.name)
            return None
        if attribute.kind == "bytes":
            return attribute.read()[offset : offset + size]
        kept = self._opened.get(handle)  # a value that is read in pieces is one value
        value = kept[1] if kept is not None and offset else attribute.read()
        self._opened[handle] = (number, value)
        return value[offset : offset + size]

    def on_write(self, _unique: int, number: int, body: bytes) -> _Answer:
        """Write."""
        _, offset, size = struct.unpack_from("=2QI", body)
        attribute = self._attribute(number)
        attribute.write(body[40 : 40 + size], offset)
        if attribute.kind == "sysrq" and body[40:41] == b"b":
            self._rebooted(attribute.node.name)
        return struct.pack("=2I", size, 0)

    def on_statfs(self, _unique: int, _number: int, _body: bytes) -> _Answer:
        """Tell nothing of the file system."""
        return bytes(80)

    def on_opendir(self, _unique: int, _number: int, _body: bytes) -> _Answer:
        """Open the folder, which lists nothing."""
        return bytes(16)


_HANDLERS: dict[int, Callable[[FuseServer, int, int, bytes], _Answer]] = {
    _INIT: FuseServer.on_init,
    _LOOKUP: FuseServer.on_lookup,
    _GETATTR: FuseServer.on_getattr,
    _SETATTR: FuseServer.on_getattr,
    _OPEN: FuseServer.on_open,
    _READ: FuseServer.on_read,
    _WRITE: FuseServer.on_write,
    _STATFS: FuseServer.on_statfs,
    _OPENDIR: FuseServer.on_opendir,
}
