"""
Kernel modules: whether this kernel has one, whether it is loaded, and what modprobe.d(5) says of it.

Source: modprobe.d(5), modinfo(8); files of all folders are read sorted by name, one in /etc masks the same name
elsewhere. ``-`` and ``_`` are the same in a module's name.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from .place import Place, WriteError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_FOLDERS = ("modprobe.d", "modules-load.d")
_ROOTS = ("/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib")
BUILT_IN = "(builtin)"


def plain(module: str) -> str:
    """Return a module's name as /sys/module has it."""
    return module.replace("-", "_")


def is_loaded(place: Place, module: str) -> bool:
    """Tell whether a module is in the running kernel."""
    return place.exists(f"/sys/module/{plain(module)}")


def file_of(place: Place, module: str) -> str:
    """
    Return the file of a module for the running kernel, ``(builtin)`` for one that is part of it.

    Raises:
        WriteError: this kernel has no such module.
    """
    try:
        return place.run(["modinfo", "-F", "filename", module], 20.0).strip()
    except WriteError as error:
        release = (place.text("/proc/sys/kernel/osrelease") or "").strip()
        raise WriteError(f"the running kernel {release} has no module {module} ({error})") from None


def lines(place: Place, folder: str) -> Iterator[tuple[str, str]]:
    """Go through the lines of all files of a folder (modprobe.d, modules-load.d) in their order: file and line."""
    for path in place.drop_ins(*(f"{root}/{folder}/*.conf" for root in _ROOTS)):
        text = (place.text(path) or "").replace("\\\n", " ")
        for line in text.splitlines():
            if line.strip() and line.strip()[0] not in "#;":
                yield path, line.strip()


def options(line: str) -> tuple[str, dict[str, str]]:
    """Return module and parameters of an ``options`` line; "" for any other."""
    words = line.split(None, 2)
    if len(words) < 3 or words[0] != "options":
        return "", {}
    try:
        pairs = [word.partition("=") for word in shlex.split(words[2])]
    except ValueError:
        return "", {}
    return plain(words[1]), {name: value for name, _, value in pairs}


def forbidden(place: Place, module: str) -> str:
    """Return the file that puts a command of its own in place of loading a module (``install M /bin/false``)."""
    for path, line in lines(place, "modprobe.d"):
        words = line.split(None, 2)
        if len(words) == 3 and words[0] == "install" and plain(words[1]) == plain(module):
            return path
    return ""
