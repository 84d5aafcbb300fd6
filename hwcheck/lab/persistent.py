"""
What the next boot takes from a lab node's own files: kernel arguments, from the boot loader, and what is installed.

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
    _packages(machine, folder / "root")
    kernel_boot.start(machine)
    boot_up(machine)


def _packages(machine: Machine, root: Path) -> None:
    """Take versions of what is installed: an upgrade that was made before the boot is there after it."""
    library = root / f"usr/lib/{machine.arch}-linux-gnu/libnvidia-ml.so.1"
    if library.is_symlink():
        machine.libraries = str(library.readlink()).partition(".so.")[2]
    try:
        text = (root / "var/lib/dpkg/status").read_text(encoding="utf-8")
    except FileNotFoundError:
        return
    for name, version in re.findall(r"^Package: (\S+)\n(?:.+\n)*?Version: (\S+)", text, re.MULTILINE):
        if name in machine.packages:
            machine.packages[name] = version
        for tool, package in (("fabric-manager", "nvidia-fabricmanager"), ("imex", "nvidia-imex")):
            if name.startswith(package):
                machine.versions[tool] = version.partition("-")[0]


def _module_version(path: Path) -> str:
    try:
        found = re.search(rb"version=([\d.]+)\0", path.read_bytes())
    except OSError:
        return ""
    return found[1].decode() if found else ""
