"""
Where a node's files are: the running node, or an image below another root.

Paths are resolved as the node itself would: an absolute link in an image stays in the image. Files are replaced whole
(temporary file beside it, fsync, rename), so that a kill leaves the old bytes or the new ones. Attributes of the kernel
are written with one write, as ``echo`` does.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import secrets
import stat
import subprocess
import sys
from typing import Any

CAP = 4 << 20
_HOPS = 40
_TEMPORARY = ".hwcheck-"
_DYING = 2.0
_GET_FLAGS, _FIXED = 0x80086601, 0x30
"""FS_IOC_GETFLAGS of 64-bit Linux, and FS_IMMUTABLE_FL with FS_APPEND_FL: linux/fs.h."""
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class WriteError(Exception):
    """Something on the node could not be done; the text says what and why."""


class Place:
    """
    A node's files.

    Args:
        root: ``/``, or the folder where an image is mounted; nothing is run and no attribute is written there.
        live: below the root is a running node's file system (a container's host, a lab node), and its programs are the
            first on PATH.

    Attributes:
        is_image: whether this is no running node.
    """

    def __init__(self, root: str = "/", *, live: bool = False) -> None:
        self.root = os.path.abspath(root or "/").rstrip("/")
        self.is_image = bool(self.root) and not live

    def real(self, path: str) -> str:
        """
        Return where a path of the node is here.

        Raises:
            WriteError: the path is not absolute, or its links run in a ring.
        """
        if not path.startswith("/") or "\0" in path:
            raise WriteError(f"not an absolute path: {path!r}")
        if not self.root:
            return path
        done: list[str] = []
        todo = path.split("/")[::-1]
        hops = 0
        while todo:
            part = todo.pop()
            if part in ("", "."):
                continue
            if part == "..":
                del done[-1:]
                continue
            try:
                target = os.readlink("/".join([self.root, *done, part]))
            except OSError:
                done.append(part)
                continue
            hops += 1
            if hops > _HOPS:
                raise WriteError(f"links run in a ring: {path}")
            if target.startswith("/"):
                done = []
            todo.extend(target.split("/")[::-1])
        return "/".join([self.root, *done])

    def read(self, path: str) -> bytes | None:
        """
        Return the first 4 MiB of a file or attribute; None when there is none.

        Raises:
            OSError: it is there and cannot be read.
        """
        try:
            fd = os.open(self.real(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                return None
            parts = []
            left = CAP
            while left > 0:
                part = os.read(fd, min(left, 1 << 16))
                if not part:
                    break
                parts.append(part)
                left -= len(part)
            return b"".join(parts)
        finally:
            os.close(fd)

    def text(self, path: str) -> str | None:
        """Return a file as text without its last line feed; None when there is none."""
        data = self.read(path)
        return None if data is None else data.decode("utf-8", "replace").rstrip("\n")

    def bytes_as_text(self, path: str) -> str | None:
        """Return a file as text from which :func:`change.file_change` makes the same bytes, whatever they are."""
        data = self.read(path)
        return None if data is None else data.decode("utf-8", "surrogateescape")

    def exists(self, path: str) -> bool:
        """Tell whether there is a file, folder or attribute."""
        return os.path.exists(self.real(path))

    def expand(self, pattern: str) -> list[str]:
        """Return the paths of a shell pattern, sorted, as the node spells them."""
        base = self.root
        return sorted(path[len(base) :] for path in glob.glob(glob.escape(base) + pattern))

    def drop_ins(self, *patterns: str) -> list[str]:
        """Return files by name, whatever their folder; a name that an earlier pattern has masks the later ones."""
        files: dict[str, str] = {}
        for pattern in patterns:
            for path in self.expand(pattern):
                files.setdefault(path.rpartition("/")[2], path)
        return [files[name] for name in sorted(files)]

    def is_writable(self, path: str) -> str:
        """Say why nothing can be written at a path; "" when it can."""
        folder = self.real(path)
        while not os.path.isdir(folder):
            folder = os.path.dirname(folder)
        try:
            system = os.statvfs(folder)
        except OSError as error:
            return f"{path}: {error.strerror}"
        if system.f_flag & os.ST_RDONLY:
            return f"{path}: the file system is read-only"
        if system.f_bavail == 0 or (system.f_files and system.f_favail == 0):
            return f"{path}: no space left on the file system"
        fixed = next((one for one in (self.real(path), folder) if _is_immutable(one)), "")
        return f"{path}: somebody has made {fixed[len(self.root) :]} immutable (chattr +i)" if fixed else ""

    def stat(self, path: str) -> dict[str, int]:
        """Return mode and owner of a file."""
        found = os.lstat(self.real(path))
        return {"mode": stat.S_IMODE(found.st_mode), "uid": found.st_uid, "gid": found.st_gid}

    def is_link(self, path: str) -> bool:
        """Tell whether the last part of a path is a symbolic link."""
        folder, _, name = path.rpartition("/")
        return os.path.islink(f"{self.real(folder or '/')}/{name}")

    def replace(self, path: str, data: bytes, mode: int, uid: int, gid: int) -> None:
        """
        Put a file in place, whole or not at all; folders above it are made.

        Raises:
            OSError: refused; the old file is untouched.
        """
        try:
            self._replace(self.real(path), data, mode, uid, gid)
        except OSError as error:
            raise OSError(error.errno, error.strerror, path) from error

    @staticmethod
    def _replace(target: str, data: bytes, mode: int, uid: int, gid: int) -> None:
        folder = os.path.dirname(target)
        os.makedirs(folder, mode=0o755, exist_ok=True)
        temporary = f"{folder}/{_TEMPORARY}{secrets.token_hex(6)}"
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(fd, view) :]
                os.fchown(fd, uid, gid)
                os.fchmod(fd, mode)
                os.fsync(fd)
            finally:
                os.close(fd)
            os.rename(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        _sync(folder)

    def remove(self, path: str) -> None:
        """Take a file away, and the folder of a drop-in with its last file."""
        target = self.real(path)
        os.unlink(target)
        folder = os.path.dirname(target)
        if folder.endswith(".service.d"):
            with contextlib.suppress(OSError):
                os.rmdir(folder)
                folder = os.path.dirname(folder)
        _sync(folder)

    def set_value(self, path: str, text: str) -> None:
        """
        Write an attribute of the kernel with one write.

        Raises:
            OSError: refused by the kernel or the driver (EPERM, EINVAL, EBUSY, EIO ...).
        """
        fd = os.open(self.real(path), os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)  # as the shell's ``>`` does
        try:
            os.write(fd, text.encode() + b"\n")
        finally:
            os.close(fd)

    def run(self, words: list[str], seconds: float = 60.0) -> str:
        """
        Run a program of the node without a shell, and return what it printed.

        Raises:
            WriteError: it is not there, failed, or took too long.
        """
        if self.is_image:
            raise WriteError(f"{words[0]} is not run for an image")
        try:
            started = subprocess.Popen(  # noqa: S603 - fixed words; what comes from a plan is one argument, no shell's
                words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env={"PATH": os.environ.get("PATH", _PATH) if self.root else _PATH, "LC_ALL": "C"},
            )  # fmt: skip
        except FileNotFoundError:
            raise WriteError(f"{words[0]} is not installed") from None
        except OSError as error:
            raise WriteError(f"{words[0]} cannot be run: {words_of(error)}") from None
        try:
            out, err = started.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            started.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                started.communicate(timeout=_DYING)  # in state D it stays, and is not waited for
            raise WriteError(f"{' '.join(words)} took more than {seconds:g} s") from None
        if started.returncode:
            said = " ".join((err or out).decode("utf-8", "replace").split())[-300:]
            raise WriteError(f"{' '.join(words)} ended with {started.returncode}: {said}")
        return out.decode("utf-8", "replace")

    def boot_id(self) -> str:
        """Return the id of this boot; "" for an image."""
        return "" if self.is_image else (self.text("/proc/sys/kernel/random/boot_id") or "").strip()

    def owner(self) -> tuple[int, int]:
        """Return whom hwcheck's own files belong to: root, or who works on a file system elsewhere."""
        return (os.geteuid(), os.getegid()) if self.root else (0, 0)


def words_of(error: BaseException) -> str:
    """Say what went wrong, with the name of the error that the kernel gave."""
    if isinstance(error, OSError) and error.errno is not None:
        import errno  # noqa: PLC0415 - only for what went wrong

        what = f" ({error.filename})" if error.filename else ""
        return f"{errno.errorcode.get(error.errno, error.errno)}: {error.strerror}{what}"
    return str(error) or type(error).__name__


def _is_immutable(path: str) -> bool:
    """Tell whether nobody, root included, may replace a file, or what is in a folder."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        flags = fcntl.ioctl(fd, _GET_FLAGS, bytes(8))
    except OSError:
        return False  # the file system keeps no such flags
    finally:
        os.close(fd)
    return bool(int.from_bytes(flags[:4], sys.byteorder) & _FIXED)


def _sync(folder: str) -> None:
    """Make a rename or removal outlive a loss of power."""
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


Json = dict[str, Any]
