"""
What the next kernel takes from a lab node's own files: its arguments, from the boot loader, and the driver's version.

What user space makes of the other files (parameters, modules, rules, units) is its own act, after the kernel has
started: :mod:`hwcheck.lab.actor.boot`.
"""

from __future__ import annotations

import re
from pathlib import Path

from hwcheck.lab import kernel_boot
from hwcheck.lab.actor import loader
from hwcheck.lab.actor.place import Node as Place
from hwcheck.lab.machine import Machine
from hwcheck.lab.platforms import boot_up


def apply(machine: Machine, folder: Path) -> None:
    """Let a machine's kernel start from the files of a node's folder."""
    kernel = machine.kernel
    kernel.arguments = kernel.next_arguments = loader.arguments(Place(str(folder))) or kernel.arguments
    kernel.log[1] = (0.0, f"Command line: {kernel.arguments}")
    modules = folder / f"root/lib/modules/{kernel.release}/updates/dkms"
    for name in kernel.module_files:
        kernel.module_files[name] = _module_version(modules / f"{name}.ko") or kernel.module_files[name]
    kernel_boot.start(machine)
    boot_up(machine)


def _module_version(path: Path) -> str:
    try:
        found = re.search(rb"version=([\d.]+)\0", path.read_bytes())
    except OSError:
        return ""
    return found[1].decode() if found else ""
