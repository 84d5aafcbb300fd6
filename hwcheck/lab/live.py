"""
What stands behind the tools of a lab node: the actor's code, and the live files that it acts on.

``live/`` holds what no file of a real node shows: which processes are the lab's daemons, what chrony has, where
irqbalance puts interrupts. Rendered from the machine, changed by the tools, made anew by a boot.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from hashlib import sha256
from importlib import resources
from pathlib import Path

from hwcheck.lab import smi, tree_rdma
from hwcheck.lab.actor.jobs import Manager
from hwcheck.lab.actor.place import LIVE
from hwcheck.lab.actor.place import Node as Place
from hwcheck.lab.actor.unit_file import on_disk
from hwcheck.lab.devices import Nic
from hwcheck.lab.machine import Machine
from hwcheck.lab.platforms import build, figures
from hwcheck.lab.render import File, Planter
from hwcheck.lab.tree_kernel import PARAMETERS

FOLDER = "actor"
_MAIN = """import os, sys
from hwcheck.lab.actor.main import main
sys.exit(main(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), sys.argv[1:]))
"""
_PACKAGE = "hwcheck/lab/actor"
_COMPILE = "import compileall, sys\ncompileall.compile_dir(sys.argv[1], quiet=2, invalidation_mode={})"
_UNCHECKED = "__import__('py_compile').PycInvalidationMode.UNCHECKED_HASH"
_LOADABLE = ("mlx5_core", "mlx5_ib", "ib_core", "ib_uverbs", "ib_umad", "gdrdrv", "nouveau")
_BUILT_IN = ("nvme", "tcp_cubic")
Files = dict[str, str]
"""Name below the live folder → text."""


def python() -> str:
    """Return the interpreter that the tools of a node use: the one that is there in a node in host form."""
    return "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable


def tool(name: str) -> str:
    """Return the script of a tool that acts."""
    return f'#!/bin/sh\nexec {python()} -ISB "${{0%/*}}/../{FOLDER}" {name} "$@"\n'


def install(cache: Path, folder: Path) -> None:
    """
    Put the actor's code into a node's folder, compiled: a tool then starts within some milliseconds.

    Args:
        cache: folder for what all nodes share.
        folder: of the node.
    """
    source = resources.files("hwcheck.lab.actor")
    texts = {entry.name: entry.read_bytes() for entry in source.iterdir() if entry.name.endswith(".py")}
    digest = sha256(b"\0".join(text for _, text in sorted(texts.items())) + python().encode()).hexdigest()[:16]
    made = cache / f"actor-{digest}"
    if not made.exists():
        fresh = cache / f"actor-{digest}.{os.getpid()}"
        (fresh / _PACKAGE).mkdir(parents=True)
        for above in ("hwcheck", "hwcheck/lab"):
            (fresh / above / "__init__.py").touch()
        (fresh / "__main__.py").write_text(_MAIN, encoding="utf-8")
        for name, text in texts.items():
            (fresh / _PACKAGE / name).write_bytes(text)
        subprocess.run(  # noqa: S603 - the node's interpreter on our own sources
            [python(), "-ISB", "-c", _COMPILE.format(_UNCHECKED), str(fresh)], check=False, timeout=60
        )
        try:
            fresh.rename(made)
        except OSError:  # another set-up was quicker
            shutil.rmtree(fresh)
    shutil.copytree(made, folder / FOLDER, copy_function=os.link)


def files(machine: Machine) -> Files:
    """Return the live files of a machine."""
    found = {
        "lab": _rows(
            python=sys.executable, path=os.pathsep.join(sys.path),
            arch=machine.arch, params=PARAMETERS.replace("\n", "\\n"),
            **{key: machine.versions.get(key, "") for key in ("fabric-manager", "imex")},
        ),
        "modules": _rows(**dict.fromkeys(_LOADABLE, "file"), **dict.fromkeys(_BUILT_IN, "builtin")),
        "parameters": _rows(nvidia=" ".join(f"NVreg_{row.partition(':')[0]}" for row in PARAMETERS.splitlines())),
        "load": _rows(**load_of(machine)),
        "smi.xml": smi.query_xml(machine), "qos": _rows(**_qos(machine)),
        **{f"dcb/{nic.netdev}": f"dscp={_dscp(nic)}\n" for nic in machine.nics},
        "chrony": _rows(
            leap=machine.clock.leap, offset=f"{machine.clock.offset:.9f}", stratum=machine.clock.stratum,
            reference=machine.clock.reference, first=machine.clock.servers[0], servers=" ".join(machine.clock.servers),
        ),
        "irqs": _rows(**{str(irq): cpu for nic in machine.nics for irq, cpu in nic.irqs.items()}),
        "fabric": _healthy_fabric(machine),
    }  # fmt: skip
    held = " ".join(f"/dev/nvidia{gpu.index}" for gpu in machine.gpus)
    for name, service in machine.services.items():
        holds = held if name == "nvidia-persistenced" else ""
        found[f"daemons/{name}.service"] = _rows(comm=name[:15], devices=holds)
        found[f"units/{name}.service"] = _rows(
            ActiveState=service.active, SubState=service.sub, MainPID=service.pid, NRestarts=service.restarts,
            ExecMainStatus=0, Result=service.result,
        )  # fmt: skip
    return found


def load_of(machine: Machine) -> dict[str, float]:
    """Return what the platform reaches under load; the keys are those of ``load`` in its figures."""
    found: dict[str, float] = figures(machine.platform)["load"]
    return found


def _dscp(nic: Nic) -> str:
    """Return the DSCP map of an adapter; none where it takes the priority from the VLAN tag."""
    return f"{nic.traffic_class >> 2}:3 48:6" if nic.trust == "dscp" else ""


def _qos(machine: Machine) -> dict[str, str]:
    """Return what a load of the adapters' driver sets: path → value with ``|`` for the end of a line; and the maps."""
    found = {nic.netdev: _dscp(nic) for nic in machine.nics}
    tree = Planter()
    tree_rdma.plant(machine, tree)
    for path, entry in tree.tree.items():
        if isinstance(entry, File) and any(part in path for part in ("/qos/", "/ecn/", "/tc/", "/rdma_cm/")):
            found[path] = entry.content.decode().rstrip("\n").replace("\n", "|")
    return found


def _rows(**rows: object) -> str:
    return "".join(f"{key}={value}\n" for key, value in rows.items())


def _healthy_fabric(machine: Machine) -> str:
    """Return what a GPU has once the fabric manager has brought it up."""
    state = build(machine.platform, machine.name, system=machine.os).gpus[0].state
    keys = ("fabric_state", "fabric_status", "fabric_health", "fabric_summary")
    return _rows(**{key: state[key] for key in keys if key in state})


def stale(folder: Path) -> set[str]:
    """Return the units whose files were changed on the node, and that its systemd has not read since."""
    manager = Manager(Place(str(folder)))
    return {name for name in manager.node.live_names("loaded") if manager.is_stale(name)}


def write(folder: Path, wanted: Files, before: Files | None = None, unread: set[str] | None = None) -> None:
    """
    Write live files, and let systemd read its units.

    Args:
        folder: of the node.
        wanted: all of them.
        before: as they were rendered before; then only what differs is written.
        unread: units that systemd shall not read now.
    """
    place = Place(str(folder))
    if before is None:
        shutil.rmtree(folder / LIVE, ignore_errors=True)
    (folder / LIVE).mkdir(exist_ok=True)
    changed = {name: text for name, text in wanted.items() if before is None or before.get(name) != text}
    for name, text in changed.items():
        place.keep(name, text)
    for name in [name.removeprefix("daemons/") for name in wanted if name.startswith("daemons/")]:
        if name not in (unread or ()) or f"units/{name}" in changed:
            place.keep(f"loaded/{name}", on_disk(place, name))
