"""
Proof that nobody works on this node: no process has a GPU or an RDMA device open, and no job step runs.

Source: the links below /proc/PID/fd; Slurm's ``slurmstepd: [JOB.STEP]`` in /proc/PID/cmdline. Daemons of the driver and
of monitoring hold devices open all the time and are no work.
"""

from __future__ import annotations

import os

from .place import Place

_DEVICES = ("/dev/nvidia", "/dev/infiniband/uverbs", "/dev/gdrdrv")
_DAEMONS = (
    "nvidia-persiste", "nv-fabricmanage", "nvidia-imex", "nv-hostengine", "dcgm-exporter", "nvsm_core", "nvidia-smi",
    "gpud", "node_exporter", "telegraf", "opensm", "ibacm",
)  # fmt: skip
"""As /proc/PID/comm has them: 15 characters."""


def workers(place: Place, also: tuple[str, ...] = ()) -> list[str]:
    """
    Say who works here.

    Args:
        place: of the node.
        also: more names that are no work.

    Returns:
        One line each: process id, name, what it holds; empty when nobody does.
    """
    if place.is_image:
        return []
    found = []
    proc = f"{place.root}/proc"
    mine = {str(os.getpid()), str(os.getppid())} if not place.root else set()
    for pid in sorted(filter(str.isdigit, os.listdir(proc)), key=int):
        if pid in mine:
            continue
        name = (_text(f"{proc}/{pid}/comm") or _name_in_stat(f"{proc}/{pid}")).strip()
        line = _text(f"{proc}/{pid}/cmdline").replace("\0", " ").strip()
        if line.startswith("slurmstepd: ["):
            found.append(f"{pid} {line[:60]}")
            continue
        if name in _DAEMONS or name in also:
            continue
        held = _held(f"{proc}/{pid}/fd")
        if held:
            found.append(f"{pid} {name or '?'} has {', '.join(held[:3])} open")
    return found


def holders(place: Place, *, everybody: bool) -> list[str]:
    """
    Say who has a GPU open, monitoring and daemons of the driver too when ``everybody`` counts.

    Returns:
        One line each: process id, name, what it holds.
    """
    found = []
    proc = f"{place.root}/proc"
    for pid in sorted(filter(str.isdigit, os.listdir(proc)), key=int):
        name = (_text(f"{proc}/{pid}/comm") or _name_in_stat(f"{proc}/{pid}")).strip()
        held = [one for one in _held(f"{proc}/{pid}/fd") if one.startswith("/dev/nvidia")]
        if held and (everybody or name not in _DAEMONS):
            found.append(f"{pid} {name or '?'} has {', '.join(held[:3])} open")
    return found


def _held(folder: str) -> list[str]:
    try:
        names = os.listdir(folder)
    except OSError:
        return []  # ended meanwhile
    held = set()
    for name in names:
        try:
            target = os.readlink(f"{folder}/{name}")
        except OSError:
            continue
        if target.startswith(_DEVICES):
            held.add(target)
    return sorted(held)


def _text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(4096).decode("utf-8", "replace")
    except OSError:
        return ""


def _name_in_stat(process: str) -> str:
    stat = _text(f"{process}/stat")
    return stat[stat.find("(") + 1 : stat.rfind(")")] if "(" in stat else ""
