"""
The fast way: still ready, or let the full check say.

Imports nothing that a node's prolog would have to wait for; no options are parsed. The memory is one of exactly this
command line, so the full check that wrote it has already found out which files and which root it is about.
"""

from __future__ import annotations

import os
import stat
import time
from hashlib import sha256

from hwcheck import __version__
from hwcheck.gate.memory import Memory, boot_id_of, clock, folder_of, key_of, number, since_boot

JUMP = 120.0
"""Seconds by which the clock may be set before a remembered date is no longer believed."""

_JUDGES = ("", "checks", "facts", "gate", "knowledge", "parse", "profiles", "sources")


def still_ready(words: list[str]) -> str:
    """
    Look whether a node is as it was at the last full check that passed.

    Args:
        words: the command line behind ``gate``.

    Returns:
        The line to print; "" where only the full check can tell.
    """
    if "--full" in words:
        return ""
    root = root_of(words)
    memory = Memory(folder_of(words), key_of(words), boot_id_of(root))
    passed = memory.told.get("passed")
    if not isinstance(passed, dict) or not memory.boot_id or passed.get("tool") != stamp():
        return ""
    age = since_boot() - number(passed.get("at"))
    trusted = 0 <= age <= number(passed.get("trust")) and abs(clock() - number(memory.told.get("clock"))) <= JUMP
    if not trusted or not number(passed.get("from")) <= time.time() <= number(passed.get("until")):
        return ""
    files, digests = passed.get("files"), passed.get("digests")
    if not isinstance(files, dict) or any(digest_of(path) != digest for path, digest in files.items()):
        return ""
    from hwcheck.gate.watch import look  # noqa: PLC0415 - the sources are loaded only where they are read

    if look(root) != digests:
        return ""
    line = f"ready: {passed.get('line')}; nothing has changed since the full check {int(age // 60)} min ago"
    if "--explain" in words and isinstance(digests, dict):
        line += explained(digests, files, memory)
    return line


def explained(digests: dict[str, str], files: dict[str, str], memory: Memory) -> str:
    """Say what the fast look was about, as lines behind the first one."""
    told = sorted(name for name, digest in digests.items() if len(digest) == 32)
    rows = [
        f"  the same as then: {', '.join(told)}",
        f"  not there, as then: {', '.join(sorted(set(digests) - set(told))) or 'none'}",
        f"  unchanged files: {', '.join(sorted(files))}",
        f"  remembered in {memory.folder}/{memory.name}, of boot {memory.boot_id}",
    ]
    return "\n" + "\n".join(rows)


def root_of(words: list[str]) -> str:
    """Return the root that a command line names; "" for this machine."""
    for at, word in enumerate(words):
        if word == "--live-root" and at + 1 < len(words):
            return words[at + 1].rstrip("/")
        if word.startswith("--live-root="):
            return word[len("--live-root=") :].rstrip("/")
    return ""


def digest_of(path: str) -> str:
    """Digest a file that the decision rests on; why it cannot be read where it cannot."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return f"errno {error.errno}"
    with os.fdopen(fd, "rb") as file:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode):
            return "no file"
        return f"{about.st_uid} {about.st_mode & 0o022:o} {sha256(file.read(16 << 20)).hexdigest()}"


def stamp() -> str:
    """Digest what judges: version, and place, size and time of each file of checks, parsers and profiles."""
    found = sha256(__version__.encode())
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for part in _JUDGES:
        with os.scandir(os.path.join(package, part)) as entries:
            for entry in sorted(entries, key=lambda one: one.name):
                if entry.name.endswith((".py", ".yaml", ".csv", ".json")):
                    about = entry.stat()
                    found.update(f"{part} {entry.name} {about.st_size} {about.st_mtime_ns}\n".encode())
    return found.hexdigest()[:32]
