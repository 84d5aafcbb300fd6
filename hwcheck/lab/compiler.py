"""Compile the lab's libraries with the machine's C compiler; what is built is kept under the hash of its sources."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

_FLAGS = ("-O1", "-shared", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror")


class BuildError(Exception):
    """The library could not be built: no compiler, or what it said."""


def compile_library(cache: Path, soname: str, sources: dict[str, str], libraries: tuple[str, ...] = ()) -> Path:
    """
    Build a shared library, or find it where it was built before.

    Args:
        cache: folder for built libraries.
        soname: its name.
        sources: file → text; those that end in ``.c`` are compiled.
        libraries: what it is linked with: ``m`` for ``-lm``.

    Returns:
        Its path.

    Raises:
        BuildError: there is no compiler, or it failed.
    """
    flags = (*_FLAGS, f"-Wl,-soname,{soname}")
    linked = [f"-l{name}" for name in libraries]
    told = "\0".join((*(f"{name}\0{text}" for name, text in sorted(sources.items())), *flags, *linked))
    library = cache / hashlib.sha256(told.encode()).hexdigest()[:16] / soname
    if library.exists():
        return library
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        raise BuildError("no C compiler (cc, gcc or clang) on PATH")
    library.parent.mkdir(parents=True, exist_ok=True)
    for name, text in sources.items():
        (library.parent / name).write_text(text, encoding="utf-8")
    fresh = library.with_suffix(f".{os.getpid()}")  # two set-ups at once: each renames a whole library into place
    files = sorted(name for name in sources if name.endswith(".c"))
    done = subprocess.run(  # noqa: S603 - the machine's compiler on our own sources
        [compiler, *flags, "-o", str(fresh), *files, *linked],
        cwd=library.parent, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    if done.returncode:
        raise BuildError(f"{compiler}: {done.stderr.strip()[:500]}")
    fresh.replace(library)
    return library
