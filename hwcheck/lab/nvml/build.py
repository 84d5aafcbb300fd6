"""
Build the lab's libnvidia-ml.

All functions of NVML are there: those of ``fake.c``, and for every other name of ``names.txt`` a weak stub that answers
NOT_SUPPORTED, so that clients find what they link against and take what is missing for a feature the hardware lacks.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from hwcheck.lab.compiler import compile_library

SONAME = "libnvidia-ml.so.1"


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
    sources = {name: (here / name).read_text(encoding="utf-8") for name in ("fake.c", "structs.h", "load.h")}
    names = (here / "names.txt").read_text(encoding="utf-8").split()
    return compile_library(cache, SONAME, {**sources, "stubs.c": stubs(names)})


def stubs(names: list[str]) -> str:
    """Write C for functions that answer NOT_SUPPORTED; weak, so that one of fake.c takes its place."""
    rows = [f"STUB int {name}(void) {{ return 3; }}" for name in names]
    return '#define STUB __attribute__((weak, visibility("default")))\n' + "\n".join(rows) + "\n"
