"""
Build the lab's libcuda, and beside it what lets programs bind themselves to the node's CPUs and memory.

``libcuda.so.1`` has the driver API functions that hwcheck calls and no other, so that a call of another one fails here
as it would with an old driver. ``libplacement.so`` is preloaded: the node shows CPUs and NUMA nodes that the machine
below it does not have.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from hwcheck.lab.compiler import compile_library

SONAME = "libcuda.so.1"
PLACEMENT = "libplacement.so"
_DRIVER = ("driver.c", "memory.c", "stream.c", "figures.c", "link.c", "node.c", "driver.h", "node.h")
_PLACEMENT = ("placement.c", "node.c", "node.h")


def build(cache: Path) -> tuple[Path, Path]:
    """
    Build both libraries, or find them where they were built before.

    Args:
        cache: folder for built libraries.

    Returns:
        Paths of ``libcuda.so.1`` and ``libplacement.so``.

    Raises:
        BuildError: there is no compiler, or it failed.
    """
    load = (resources.files("hwcheck.lab.nvml") / "load.h").read_text(encoding="utf-8")
    driver = compile_library(cache, SONAME, {**_texts(_DRIVER), "load.h": load}, ("m", "pthread", "dl"))
    return driver, compile_library(cache, PLACEMENT, _texts(_PLACEMENT), ("dl",))


def _texts(names: tuple[str, ...]) -> dict[str, str]:
    here = resources.files(__package__)
    return {name: (here / name).read_text(encoding="utf-8") for name in names}
