"""
Build the lab's libnvidia-ml with the machine's C compiler; kept under the hash of its sources.

All functions of NVML are there: those of ``fake.c``, and for every other name of ``names.txt`` a weak stub that answers
NOT_SUPPORTED, so that clients find what they link against and take what is missing for a feature the hardware lacks.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from importlib import resources
from pathlib import Path

SONAME = "libnvidia-ml.so.1"
_FLAGS = ("-O1", "-shared", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror", f"-Wl,-soname,{SONAME}")


class BuildError(Exception):
    """The library could not be built: no compiler, or what it said."""


def build(cache: Path) -> Path:
    """
    Build the library, or find it where it was built before.

    Args:
        cache: folder for built libraries.

    Returns:
        Path of ``libnvidia-ml.so.1``.

    Raises:
        BuildError: there is no compiler, or it failed.
    """
    here = resources.files(__package__)
    sources = {name: (here / name).read_text(encoding="utf-8") for name in ("fake.c", "structs.h", "names.txt")}
    digest = hashlib.sha256("\0".join((*sources.values(), *_FLAGS)).encode()).hexdigest()[:16]
    library = cache / digest / SONAME
    if library.exists():
        return library
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        raise BuildError("no C compiler (cc, gcc or clang) on PATH")
    library.parent.mkdir(parents=True, exist_ok=True)
    (library.parent / "fake.c").write_text(sources["fake.c"], encoding="utf-8")
    (library.parent / "structs.h").write_text(sources["structs.h"], encoding="utf-8")
    (library.parent / "stubs.c").write_text(stubs(sources["names.txt"].split()), encoding="utf-8")
    fresh = library.with_suffix(f".{os.getpid()}")  # two set-ups at once: each renames a whole library into place
    done = subprocess.run(  # noqa: S603 - the machine's compiler on our own sources
        [compiler, *_FLAGS, "-o", str(fresh), "fake.c", "stubs.c"],
        cwd=library.parent, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    if done.returncode:
        raise BuildError(f"{compiler}: {done.stderr.strip()[:500]}")
    fresh.replace(library)
    return library


def stubs(names: list[str]) -> str:
    """Write C for functions that answer NOT_SUPPORTED; weak, so that one of fake.c takes its place."""
    rows = [f"STUB int {name}(void) {{ return 3; }}" for name in names]
    return '#define STUB __attribute__((weak, visibility("default")))\n' + "\n".join(rows) + "\n"
