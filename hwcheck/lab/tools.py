"""What lies beside the tree of a lab node: its tools, the state of its NVML, its library."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from hwcheck.lab import live, shims
from hwcheck.lab.compiler import BuildError
from hwcheck.lab.cuda import build as cuda
from hwcheck.lab.gpu_state import nvml_state
from hwcheck.lab.machine import Machine
from hwcheck.lab.nvml.attributes import change_state, write_state
from hwcheck.lab.nvml.build import build


def give_library(cache: Path, folder: Path) -> str:
    """Give a node the lab's libraries: NVML, CUDA and what places its programs; returns why not."""
    try:
        libraries = build(cache), *cuda.build(cache)
    except BuildError as error:
        return str(error)
    own = folder / "lib"
    own.mkdir()
    for library in libraries:
        shutil.copyfile(library, own / library.name)
    (own / "nvml-state").symlink_to("../nvml")
    return ""


def environment(folder: Path) -> dict[str, str]:
    """Return PATH, library path and preloads with which a node's tools, NVML, CUDA and CPUs are found."""
    library = folder / "lib"
    found = {"PATH": f"{folder / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}
    if library.is_dir():
        found |= {"LD_LIBRARY_PATH": str(library), "LD_PRELOAD": str(library / cuda.PLACEMENT)}
    return found


def write(folder: Path, machine: Machine, before: Machine | None = None, unread: set[str] | None = None) -> None:
    """
    Write tools, NVML state and live files anew.

    Args:
        folder: of the node.
        machine: what it is now.
        before: what it was; then only what differs is written, and what was done on the node stays.
        unread: units whose files were changed on the node, and that its systemd has not read since.
    """
    tools = folder / "bin"
    tools.mkdir(exist_ok=True)
    scripts, old = shims.shims(machine), shims.shims(before) if before else {}
    for old_tool in [tool for tool in tools.iterdir() if tool.name not in scripts]:
        old_tool.unlink()
    for name in [name for name in scripts if scripts[name] != old.get(name)]:
        (tools / name).write_text(scripts[name], encoding="utf-8")
        (tools / name).chmod(0o755)
    state = folder / "nvml"
    if before is None:
        for faults in [state / "faults", *state.glob("gpu*/faults")]:
            shutil.rmtree(faults, ignore_errors=True)
        write_state(state, nvml_state(machine))
    else:
        change_state(state, nvml_state(before), nvml_state(machine))
    for gpu in machine.gpus:
        (state / f"gpu{gpu.index}/contexts").mkdir(exist_ok=True)
    for path, text in machine.nvml_faults.items():
        (state / path).parent.mkdir(parents=True, exist_ok=True)
        (state / path).write_text(text + "\n", encoding="utf-8")
    live.write(folder, live.files(machine), live.files(before) if before else None, unread)
