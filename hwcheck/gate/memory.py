"""
What the gate remembers of a node between two looks: one small file, tied to a boot and to one way of asking.

A file that another user could have written is not read: its folder and the file itself must belong to this user, nobody
else may write them, and no link is followed. What is not understood is as good as none. Both only cost a full check.
"""

from __future__ import annotations

import json
import os
import stat
import time
from hashlib import sha256

FORMAT = "hwcheck.gate/1"
MOST = 1 << 20
FOLDER = "/run/hwcheck"


class Memory:
    """
    The remembered state for one way of asking.

    Args:
        folder: where it lies.
        key: of :func:`key_of`.
        boot_id: of the node now; what another boot left is forgotten.

    Attributes:
        told: what is remembered; empty when there is nothing.
        trouble: why a file was not believed or cannot be kept; "" where all is well.
    """

    def __init__(self, folder: str, key: str, boot_id: str) -> None:
        self.folder, self.key, self.boot_id = folder, key, boot_id
        self.name = f"gate-{key}.json"
        self.told: dict[str, object] = {}
        self.trouble = ""
        self.ended = False
        try:
            self._load()
        except FileNotFoundError:
            pass
        except (OSError, ValueError, RecursionError) as error:
            why = getattr(error, "strerror", None) or (error if type(error) is ValueError else "it is not understood")
            self.trouble = f"{folder}/{self.name} is not believed: {why}"

    def _load(self) -> None:
        folder = self._open_folder()
        try:
            fd = os.open(self.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        finally:
            os.close(folder)
        with os.fdopen(fd, "rb") as file:
            about = os.fstat(fd)
            if not stat.S_ISREG(about.st_mode) or about.st_nlink != 1:
                raise ValueError("it is no plain file of its own")
            _own(about, "it")
            told = json.loads(file.read(MOST))
        if not isinstance(told, dict) or told.get("format") != FORMAT or told.get("key") != self.key:
            raise ValueError("it is of another format")
        self.ended = told.get("boot_id") != self.boot_id
        self.told = {} if self.ended else told

    def _open_folder(self) -> int:
        fd = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            _own(os.fstat(fd), "its folder")
        except ValueError:
            os.close(fd)
            raise
        return fd

    def keep(self, **told: object) -> None:
        """
        Keep these in place of what was remembered; a place where that cannot be is trouble that is told, no error.

        Args:
            told: JSON values by name.
        """
        self.told = {"format": FORMAT, "key": self.key, "boot_id": self.boot_id, "clock": clock(), **told}
        begun = f".{self.name}.{os.getpid()}"
        try:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            folder = self._open_folder()
            try:
                fd = os.open(begun, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder)
                with os.fdopen(fd, "w", encoding="utf-8") as file:
                    json.dump(self.told, file)
                os.rename(begun, self.name, src_dir_fd=folder, dst_dir_fd=folder)
            finally:
                os.close(folder)
        except (OSError, ValueError) as error:
            self.trouble = f"nothing can be remembered in {self.folder}: {getattr(error, 'strerror', None) or error}"


def _own(about: os.stat_result, what: str) -> None:
    if about.st_uid != os.geteuid():
        raise ValueError(f"{what} belongs to user {about.st_uid}")
    if about.st_mode & 0o022:
        raise ValueError(f"{what} can be written by others (mode {about.st_mode & 0o7777:o})")


def key_of(words: list[str], node: str = "") -> str:
    """Name one way of asking: the command line without what changes no answer, the folder it runs in, a node."""
    parts = [*(word for word in words if word not in ("--explain", "--full")), "\0", os.getcwd(), node]
    return sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:24]


def folder_of(words: list[str]) -> str:
    """
    Return where this user's memory lies: ``--state``, ``/run/hwcheck`` of root, or the XDG state folder.

    A root of its own (``--live-root``) is no matter of this machine's /run.
    """
    for at, word in enumerate(words):
        if word == "--state" and at + 1 < len(words):
            return os.path.abspath(words[at + 1])
        if word.startswith("--state="):
            return os.path.abspath(word[len("--state=") :])
    if os.geteuid() == 0 and not any(word.startswith("--live-root") for word in words):
        return FOLDER
    home = os.environ.get("XDG_STATE_HOME", "")
    return (home if home.startswith("/") else os.path.expanduser("~/.local/state")) + "/hwcheck/gate"


def boot_id_of(root: str) -> str:
    """Return the boot id of the node below a root; "" when it does not tell."""
    try:
        with open(root + "/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read(64).strip()
    except (OSError, ValueError):
        return ""


def since_boot() -> float:
    """Return seconds since the boot of this machine; no set clock moves it."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def clock() -> float:
    """Return when this machine booted as its clock has it: it moves only when somebody sets the clock."""
    return time.time() - since_boot()


def number(value: object) -> float:
    """Return a remembered number; 0 for anything else."""
    return float(value) if isinstance(value, int | float) else 0.0
