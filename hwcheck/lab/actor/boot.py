"""What a node's user space does at boot, in the order of the real one, before anybody can log in."""

from __future__ import annotations

from hwcheck.lab.actor import modules, process, settings, udev
from hwcheck.lab.actor.jobs import Manager
from hwcheck.lab.actor.place import Node, ToolError

_FABRIC = {"fabric_state": "2", "fabric_status": "0", "fabric_health": "0x0", "fabric_summary": "0"}
_MANAGER = "nvidia-fabricmanager.service"
_TARGETS = ("sysinit.target", "basic.target", "multi-user.target", "graphical.target")


def run(node: Node, _tool: str, _words: list[str]) -> int:
    """Boot: the kernel has started, and its files are what they are after that."""
    boot(node)
    return 0


def boot(node: Node) -> None:
    """Apply what the node's files say, and start what is enabled."""
    with node.locked():
        units_forgotten(node)
        modules.at_boot(node)
        settings.sysctls(node)
        wants = udev.apply(node, "add", udev.devices(node), starts=False)
        settings.tmpfiles(node)
        units(node, wants)


def units_forgotten(node: Node) -> None:
    """Let nothing run yet: systemd has read no unit, and the GPUs are as their driver found them."""
    for name in node.live_names("loaded"):
        node.forget(f"loaded/{name}")
    manager = Manager(node)
    for name in node.live_names("units"):
        process.end(node, name, int(manager.state(name)["MainPID"]))
        node.forget(f"units/{name}")
    for gpu in node.gpus():
        node.set_nvml(f"gpu{gpu}/persistence", "0")
        if node.live(f"daemons/{_MANAGER}"):
            for key, value in _FABRIC.items():
                node.set_nvml(f"gpu{gpu}/{key}", value)


def units(node: Node, wants: list[str]) -> None:
    """
    Start the enabled units: the lab's daemons in their order, then all others in the order of their After=.

    Args:
        node: of them.
        wants: units that rules of udev want beside.
    """
    manager = Manager(node)
    wanted = [*enabled(node), *wants]
    for name in [name for name in node.live_names("daemons") if name in wanted] + _in_order(manager, wanted):
        try:
            manager.start(name)
        except ToolError:
            continue  # failed; its state says so


def enabled(node: Node) -> list[str]:
    """Return the units that a boot starts."""
    found: dict[str, None] = {}
    for target in _TARGETS:
        for folder in ("/etc/systemd/system", "/run/systemd/system"):
            for kind in ("wants", "requires"):
                found |= dict.fromkeys(node.names(f"{folder}/{target}.{kind}"))
    return [name for name in found if name.endswith(".service")]


def _in_order(manager: Manager, names: list[str]) -> list[str]:
    """Order units so that each comes after those that it names in After=."""
    done: dict[str, None] = {}

    def add(name: str, seen: tuple[str, ...]) -> None:
        if name in done or name in seen or not manager.knows(name):
            return
        for other in manager.unit(name).words("Unit.After"):
            if other in names:
                add(other, (*seen, name))
        done[name] = None

    for name in names:
        add(name, ())
    return list(done)
