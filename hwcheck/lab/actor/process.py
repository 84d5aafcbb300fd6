"""Processes of the lab's daemons: folders below /proc that come and go with their unit."""

from __future__ import annotations

import contextlib
import os

from hwcheck.lab.actor.place import HAND, NODE, Node

_FIRST = 4200
_MOST = 4_194_304
_TICKS = 100
_CGROUP = "/sys/fs/cgroup/system.slice"
LIMITS = (
    "Limit                     Soft Limit           Hard Limit           Units     \n"
    "Max open files            {files:<20} {files:<20} files     \n"
    "Max locked memory         {memlock:<20} {memlock:<20} bytes     \n"
)


def begin(node: Node, unit: str, about: dict[str, str], limits: dict[str, str]) -> int:
    """
    Let a daemon run.

    Args:
        node: of it.
        unit: name with suffix; its cgroup gets the process.
        about: ``comm``, ``command``, and ``devices`` that it holds open; words separated by blanks.
        limits: ``LimitMEMLOCK``, ``LimitNOFILE``, ``CPUAffinity``, ``NUMAMask`` as systemctl shows them.

    Returns:
        Its process id.
    """
    pid = _free(node)
    here = f"/proc/{pid}"
    uptime = node.text("/proc/uptime").split(".")[0]
    started = int(uptime or 0) * _TICKS
    comm = about.get("comm", unit.rpartition(".")[0])[:15]
    node.put(f"{here}/stat", f"{pid} ({comm}) S 1 " + "0 " * 17 + f"{started} " + "0 " * 30)
    node.put(f"{here}/comm", comm)
    node.put(f"{here}/cmdline", about.get("command", comm).replace(" ", "\0") + "\0")
    allowed = {"Cpus_allowed_list": limits.get("CPUAffinity", ""), "Mems_allowed_list": limits.get("NUMAMask", "")}
    rows = "".join(f"{name}:\t{value.replace(' ', ',')}\n" for name, value in allowed.items() if value)
    node.put(f"{here}/status", f"Name:\t{comm}\n{rows}voluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n")
    shown = {key: "unlimited" if value == "infinity" else value for key, value in limits.items()}
    node.put(
        f"{here}/limits", LIMITS.format(files=shown.get("LimitNOFILE", 1024), memlock=shown.get("LimitMEMLOCK", 0))
    )
    os.makedirs(node.real(f"{here}/fd"), exist_ok=True)
    for number, device in enumerate(about.get("devices", "").split()):
        node.make_link(f"{here}/fd/{number + 3}", device)
    node.put(f"{_CGROUP}/{unit}/cgroup.procs", str(pid))
    _show(node, pid)
    return pid


def end(node: Node, unit: str, pid: int) -> None:
    """Let a daemon's process be gone."""
    node.remove(f"{_CGROUP}/{unit}/cgroup.procs")
    node.remove(f"{_CGROUP}/{unit}")
    if pid:
        if node.is_host:
            with contextlib.suppress(OSError):
                os.unlink(f"/proc/{pid}")
        node.remove(f"/proc/{pid}")


def _show(node: Node, pid: int) -> None:
    """Show a new process in the /proc of a node in host form, which is links to the tree."""
    if node.is_host and node.tree == HAND:
        with contextlib.suppress(FileExistsError):
            os.symlink(f"{NODE}/root/proc/{pid}", f"/proc/{pid}")


def _free(node: Node) -> int:
    """Return the next process id; as in the kernel none comes again soon."""
    last = int(node.live("pids").get("last", _FIRST))
    pid = last + 7
    while node.exists(f"/proc/{pid}") or pid >= _MOST:
        pid = _FIRST if pid >= _MOST else pid + 1
    node.keep("pids", {"last": str(pid)})
    return pid


def holders(node: Node, devices: str) -> list[str]:
    """Return the processes that have a device of that beginning open: ``1200 (nvidia-persiste)``."""
    found = []
    for pid in filter(str.isdigit, node.names("/proc")):
        if any(node.link(f"/proc/{pid}/fd/{name}").startswith(devices) for name in node.names(f"/proc/{pid}/fd")):
            stat = node.text(f"/proc/{pid}/stat")
            found.append(f"{pid} {stat[stat.find('(') : stat.rfind(')') + 1]}")
    return found
