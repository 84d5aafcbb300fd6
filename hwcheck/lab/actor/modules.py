"""
Kernel modules: modprobe, rmmod, modinfo, lsmod, and what becomes of devices when their driver goes and comes.

Sources: modprobe(8), modprobe.d(5), modules-load.d(5). A driver of NVIDIA that is loaded again knows nothing of what
was set: clocks, limits, modes; mlx5 has the defaults of RoCE again. A module that is in use stays: EBUSY.
"""

from __future__ import annotations

import contextlib
import shlex

from hwcheck.lab.actor import gpu, process, qos, settings, udev
from hwcheck.lab.actor.place import Node, ToolError, say

_NEEDS = {
    "nvidia_uvm": ("nvidia",), "nvidia_modeset": ("nvidia",), "nvidia_drm": ("nvidia_modeset",),
    "nvidia_peermem": ("nvidia", "ib_core"), "gdrdrv": ("nvidia",), "mlx5_ib": ("mlx5_core", "ib_uverbs"),
    "ib_uverbs": ("ib_core",), "ib_umad": ("ib_core",),
}  # fmt: skip
_HOLDERS = {"nvidia": "/dev/nvidia", "nvidia_uvm": "/dev/nvidia-uvm", "gdrdrv": "/dev/gdrdrv"}
_LOADED = "/proc/modules"
_SIZES = {"nvidia": 14_000_000, "mlx5_core": 2_600_000}
_UNITS = {"nvidia": ("nvidia-fabricmanager.service", "nvidia-dcgm.service")}
"""Units that keep a module in use beside those that hold its device files."""


def plain(name: str) -> str:
    """Return a module's name as /sys/module has it."""
    return name.rpartition("/")[2].partition(".ko")[0].replace("-", "_")


def loaded(node: Node) -> dict[str, str]:
    """Return what is loaded: name → its row of /proc/modules."""
    return {row.split()[0]: row for row in node.text(_LOADED).splitlines()}


def file_of(node: Node, name: str) -> str:
    """Return the file of a module for this kernel; "" for none."""
    folder = f"/lib/modules/{node.text('/proc/sys/kernel/osrelease')}"
    for row in node.text(f"{folder}/modules.dep").splitlines():
        path = row.partition(":")[0]
        if plain(path) == plain(name):
            return path if path.startswith("/") else f"{folder}/{path}"
    return ""


def fields(node: Node, path: str) -> dict[str, list[str]]:
    """Return the fields of a module's file."""
    try:
        with open(node.real(path), "rb") as file:
            parts = file.read().split(b"\0")
    except OSError:
        return {}
    found: dict[str, list[str]] = {}
    for part in parts:
        key, sign, value = part.decode("utf-8", "replace").partition("=")
        if sign and key.isidentifier():
            found.setdefault(key, []).append(value)
    return found


def load(node: Node, name: str) -> None:
    """
    Load a module, and what it needs before it.

    Raises:
        ToolError: this kernel has none of that name, or a file says not to.
    """
    name = plain(name)
    if name in loaded(node):
        return
    if name not in node.live("modules") and not file_of(node, name):
        release = node.text("/proc/sys/kernel/osrelease")
        raise ToolError(f"modprobe: FATAL: Module {name} not found in directory /lib/modules/{release}")
    for other in _NEEDS.get(name, ()):
        load(node, other)
    version = "".join(fields(node, file_of(node, name)).get("version", [])[:1])
    mark = " (OE)" if version else ""
    rows = loaded(node) | {name: f"{name} {_SIZES.get(name, 100_000)} 0 - Live 0x0000000000000000{mark}"}
    _write_loaded(node, rows)
    here = f"/sys/module/{name}"
    if version:
        node.put(f"{here}/version", version)
    for leaf, text in (("taint", "OE" if version else "\n"), ("initstate", "live"), ("refcnt", "0")):
        node.put(f"{here}/{leaf}", text)
    if name == "nvidia":
        gpu.driver_loads(node, version)
    elif name == "mlx5_core":
        qos.reset(node)
    udev.apply(node, "add", [one for one in udev.devices(node) if _is_of(node, one, name)])


def _is_of(node: Node, device: udev.Device, driver: str) -> bool:
    links = (node.link(f"{device.path}/driver"), node.link(f"{device.path}/device/driver"))
    return driver in [link.rpartition("/")[2] for link in links]


def unload(node: Node, name: str) -> None:
    """
    Unload a module.

    Raises:
        ToolError: it is not there, or in use.
    """
    name = plain(name)
    known = loaded(node)
    if name not in known:
        raise ToolError(f"modprobe: FATAL: Module {name} is not found.")
    users = [other for other in known if name in _NEEDS.get(other, ())]
    if users:
        raise ToolError(f"modprobe: FATAL: Module {name} is in use by: {' '.join(users)}")
    units = [unit for unit in _UNITS.get(name, ()) if node.live(f"units/{unit}").get("ActiveState") == "active"]
    if units or (name in _HOLDERS and process.holders(node, _HOLDERS[name])):
        raise ToolError(f"modprobe: FATAL: Module {name} is in use.")
    del known[name]
    _write_loaded(node, known)
    node.remove(f"/sys/module/{name}")
    if name == "nvidia":
        gpu.driver_goes(node)


def _write_loaded(node: Node, rows: dict[str, str]) -> None:
    node.put(_LOADED, "\n".join(rows.values()))


def at_boot(node: Node) -> None:
    """Load what modules-load.d and the kernel's arguments name."""
    names = [row.strip() for path in settings.files(node, "modules-load.d") for row in node.text(path).splitlines()]
    names += [row.strip() for row in node.text("/etc/modules").splitlines()]
    words = [word.partition("=")[2] for word in node.text("/proc/cmdline").split()]
    names += [name for word in words if word.startswith("modules-load=") for name in word.split(",")]
    for name in names:
        if name and name[0] not in "#;":
            with contextlib.suppress(ToolError):
                load(node, name)


def forbidden(node: Node, name: str) -> bool:
    """Tell whether a file of modprobe.d puts ``/bin/false`` in place of loading a module, or the like."""
    rows = [shlex.split(row, comments=True) for path in settings.files(node, "modprobe.d")
            for row in node.text(path).splitlines()]  # fmt: skip
    return any(row[0] == "install" and plain(row[1]) == plain(name) for row in rows if len(row) > 2)


def run(node: Node, tool: str, words: list[str]) -> int:
    """Be ``modprobe``, ``rmmod``, ``modinfo`` or ``lsmod``."""
    names = [word for word in words if not word.startswith("-") and "=" not in word]
    if tool == "lsmod":
        say("Module                  Size  Used by")
        for row in loaded(node).values():
            say(f"{row.split()[0]:<23} {row.split()[1]:>7}  {row.split()[2]}")
        return 0
    if tool == "modinfo":
        return _modinfo(node, words)
    if {"-n", "--dry-run", "--show"} & set(words):
        return 0
    with node.locked():
        for name in names:
            if tool == "rmmod" or {"-r", "--remove"} & set(words):
                try:
                    unload(node, name)
                except ToolError as error:
                    text = str(error)
                    raise ToolError(
                        text.replace("modprobe: FATAL:", "rmmod: ERROR:") if tool == "rmmod" else text
                    ) from None
            elif forbidden(node, name):
                raise ToolError(f"modprobe: ERROR: ../libkmod/libkmod-module.c:1047 command_do() Error running install "
                                f"command for {name}: retcode 1")  # fmt: skip
            else:
                load(node, name)
    return 0


def _modinfo(node: Node, words: list[str]) -> int:
    field = words[words.index("-F") + 1] if "-F" in words[:-1] else ""
    names = [word for word in words if not word.startswith("-") and word != field]
    for name in names:
        path = file_of(node, name)
        if not path and plain(name) in node.live("modules"):
            path = "(builtin)" if node.live("modules")[plain(name)] == "builtin" else f"/lib/modules/{plain(name)}.ko"
        if not path:
            raise ToolError(f"modinfo: ERROR: Module {name} not found.")
        found = {"filename": [path], **fields(node, path), "parm": node.live("parameters").get(plain(name), "").split()}
        for key, values in found.items():
            for value in values:
                if not field:
                    say(f"{key + ':':<16}{value}")
                elif key == field:
                    say(f"{value}:lab" if key == "parm" else value)
    return 0
