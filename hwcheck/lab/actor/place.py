"""Where a lab node's files are, seen from the node itself (host form) or from beside it (tree form)."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
from collections.abc import Iterator

NODE = "/run/hwcheck-lab"
HAND = "/run/hwcheck-lab-hand"
"""The node's tree once more, writable: the hand of kernel and devices, which no program of the node uses."""
LIVE = "live"
LOCKED = "HWCHECK_LAB_LOCKED"


class ToolError(Exception):
    """A tool fails; the text is what it says on stderr."""

    def __init__(self, text: str, status: int = 1) -> None:
        super().__init__(text)
        self.status = status


class Node:
    """
    The node that a tool acts on.

    Args:
        folder: of the node, with ``root``, ``nvml`` and ``live``.

    Attributes:
        is_host: whether this runs on the node itself, where the kernel's attributes answer as attributes do.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.is_host = folder == NODE and os.path.isdir(HAND)
        self.tree = HAND if self.is_host else folder + "/root"

    # ------------------------------------------------------------------------------------------------------- files

    def real(self, path: str) -> str:
        """Return where a path of the node is here; /run of a node in host form is in memory, not in its tree."""
        return path if self.is_host and path.startswith("/run/") else self.tree + path

    def text(self, path: str, otherwise: str = "") -> str:
        """Return a file's text without white space at its end."""
        try:
            with open(self.real(path), encoding="utf-8", errors="replace") as file:
                return file.read().rstrip()
        except OSError:
            return otherwise

    def put(self, path: str, text: str) -> None:
        """Write a file in place, so that a mount upon it shows it; folders above it are made."""
        target = self.real(path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if os.path.islink(target) and not os.path.exists(target):
            os.unlink(target)
        with open(target, "w", encoding="utf-8") as file:
            file.write(text if text.endswith("\n") or not text else text + "\n")

    def exists(self, path: str) -> bool:
        """Tell whether there is something, a link that leads nowhere too."""
        return os.path.lexists(self.real(path))

    def names(self, path: str) -> list[str]:
        """List a folder, sorted; empty where there is none."""
        try:
            return sorted(os.listdir(self.real(path)))
        except OSError:
            return []

    def link(self, path: str) -> str:
        """Return where a link leads; "" for what is none."""
        try:
            return os.readlink(self.real(path))
        except OSError:
            return ""

    def make_link(self, path: str, target: str) -> None:
        """Put a link in place of what is there."""
        real = self.real(path)
        os.makedirs(os.path.dirname(real), exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(real)
        os.symlink(target, real)

    def remove(self, path: str) -> None:
        """Take a file or folder away; what the kernel still shows stays, empty."""
        real = self.real(path)
        if os.path.isdir(real) and not os.path.islink(real):
            for name in os.listdir(real):
                self.remove(f"{path}/{name}")
            with contextlib.suppress(OSError):
                os.rmdir(real)
            return
        try:
            os.unlink(real)
        except FileNotFoundError:
            pass
        except OSError:  # a mount of its own
            with contextlib.suppress(OSError), open(real, "w", encoding="utf-8"):
                pass

    def expand(self, pattern: str) -> list[str]:
        """Return the paths of a shell pattern, sorted, as the node spells them."""
        if not any(sign in pattern for sign in "*?["):
            return [pattern] if self.exists(pattern) else []
        import glob  # noqa: PLC0415 - 5 ms that most acts do not need

        base = "" if self.is_host and pattern.startswith("/run/") else self.tree
        return sorted(path[len(base) :] for path in glob.glob(glob.escape(base) + pattern))

    # -------------------------------------------------------------------------------------- what the lab knows beside

    def live(self, name: str) -> dict[str, str]:
        """Return rows ``key=value`` of a live file."""
        rows = self.live_text(name).splitlines()
        return dict(row.split("=", 1) for row in rows if "=" in row)

    def live_text(self, name: str) -> str:
        """Return a live file."""
        try:
            with open(f"{self.folder}/{LIVE}/{name}", encoding="utf-8") as file:
                return file.read()
        except OSError:
            return ""

    def live_names(self, name: str) -> list[str]:
        """List a folder of live files."""
        try:
            return sorted(os.listdir(f"{self.folder}/{LIVE}/{name}"))
        except OSError:
            return []

    def keep(self, name: str, rows: dict[str, str] | str) -> None:
        """Write a live file."""
        text = rows if isinstance(rows, str) else "".join(f"{key}={value}\n" for key, value in rows.items())
        path = f"{self.folder}/{LIVE}/{name}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def change(self, name: str, **rows: str) -> None:
        """Change rows of a live file."""
        self.keep(name, {**self.live(name), **rows})

    def forget(self, name: str) -> None:
        """Take a live file away."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{self.folder}/{LIVE}/{name}")

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Act alone: two tools at once would tear the live files apart. What a unit runs is part of its act."""
        if os.environ.get(LOCKED):
            yield
            return
        fd = os.open(f"{self.folder}/{LIVE}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    # --------------------------------------------------------------------------------------------------------- GPUs

    def gpus(self) -> list[int]:
        """Return the numbers of the GPUs that NVML knows."""
        try:
            names = os.listdir(self.folder + "/nvml")
        except OSError:
            return []
        return sorted(int(name[3:]) for name in names if name.startswith("gpu") and name[3:].isdigit())

    def nvml(self, name: str) -> str:
        """Return an attribute of the lab's NVML: ``driver_version``, ``gpu0/persistence``; "" for none."""
        try:
            with open(f"{self.folder}/nvml/{name}", encoding="utf-8") as file:
                return file.read().strip()
        except OSError:
            return ""

    def set_nvml(self, name: str, value: str | None) -> None:
        """Set an attribute of the lab's NVML, or take it away."""
        path = f"{self.folder}/nvml/{name}"
        if value is None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            return
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(value + "\n")


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(text + "\n")
