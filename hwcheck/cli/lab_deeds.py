"""What ``hwcheck lab`` does; read only when it is asked for, so that the other verbs start quickly."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

from hwcheck.errors import UsageError
from hwcheck.lab import nodes
from hwcheck.lab.cures import cured
from hwcheck.lab.faults import catalogue
from hwcheck.lab.host.attributes import TABLE
from hwcheck.lab.host.faults import HOST_FAULTS, put, take
from hwcheck.lab.host.lab import HostLab, HostLabError, missing
from hwcheck.lab.nodes import Node
from hwcheck.lab.platforms import PLATFORMS


def _home(arguments: argparse.Namespace) -> Path:
    try:
        return arguments.dir.absolute() if arguments.dir else nodes.default_home()
    except RuntimeError as error:
        raise UsageError("this user has no home folder: --dir names a folder for the lab") from error


def up(arguments: argparse.Namespace) -> int:
    """Make nodes, in the best form that this machine allows, and say how to judge them."""
    home = _home(arguments)
    lacks = [] if arguments.form == "tree" else missing()
    if arguments.form == "host" and lacks:
        raise UsageError("the host form needs " + "; ".join(lacks))
    host = arguments.form != "tree" and not lacks
    of_host = [fault for fault in arguments.fault if fault in HOST_FAULTS]
    if of_host and not host:
        raise UsageError(f"{', '.join(of_host)}: only nodes in host form can have that")
    platforms = arguments.platform or [PLATFORMS[0]]
    others = [fault for fault in arguments.fault if fault not in of_host]
    wanted = [
        Node(home / f"{arguments.name}-{number + 1}", platforms[number % len(platforms)], others, os=arguments.os)
        for number in range(arguments.number)
    ]
    for node in wanted:
        nodes.refuse(home, node)  # all of them before the first is made
    made: list[Node] = []
    for one in wanted:
        node, no_library = nodes.up(home, one.name, one.platform, others, arguments.os, tuple(arguments.tool))
        for fault in of_host:
            put(node.folder, fault)
        made.append(node)
    if no_library:
        print(f"no NVML library ({no_library}): the GPUs are shown by nvidia-smi alone")
    if host:
        _start(home, made)
    else:
        _say_tree(home, made, "asked for" if arguments.form == "tree" else "the host form needs " + "; ".join(lacks))
    return 0


def _start(home: Path, made: list[Node]) -> None:
    lab = HostLab(home)
    groups: dict[str, list[str]] = {}
    for node in made:
        groups.setdefault(node.platform.replace("-", "_"), []).append(node.name)
    try:
        failed = lab.up([node.name for node in made], groups)
    except HostLabError as error:
        raise UsageError(f"{error}; --form tree needs nothing of that") from error
    if failed:
        raise UsageError("; ".join(f"{name} did not start: {said}" for name, said in failed.items()))
    names = ", ".join(
        f"{name} ({address})" for name, address in lab.running().items() if name in {n.name for n in made}
    )
    print(f"host form, each node with its own sshd: {names}")
    print(f"judge them:   hwcheck check -i {shlex.quote(str(lab.inventory))}")


def _say_tree(home: Path, made: list[Node], why: str) -> None:
    print(f"tree form ({why}): {', '.join(node.name for node in made)}")
    option = "" if home == nodes.default_home() else f" --dir {shlex.quote(str(home))}"
    root = shlex.quote(str(made[0].root))
    print(f"judge one:    hwcheck lab{option} shell {made[0].name} -- hwcheck check --live-root {root}")


def down(arguments: argparse.Namespace) -> int:
    """Take nodes away."""
    home = _home(arguments)
    chosen = [nodes.named(home, name) for name in dict.fromkeys(arguments.node)] or list(nodes.nodes(home))
    if not chosen:
        print(f"no lab nodes in {home}")
    running = HostLab(home).running()
    if all(name in [node.name for node in chosen] for name in running):
        HostLab(home).down()
    elif stop := [node.name for node in chosen if node.name in HostLab(home).hosted()]:
        HostLab(home).forget(stop)
    for node in chosen:
        nodes.down(home, node)
        print(f"{node.name} is gone")
    return 0


def list_nodes(arguments: argparse.Namespace) -> int:
    """Print what there is."""
    home = _home(arguments)
    found, running = list(nodes.nodes(home)), HostLab(home).running()
    hosted = HostLab(home).hosted()
    for node in found:
        form = f"host form, {hosted[node.name]}" if node.name in hosted else "tree form"
        form += "" if node.name in running or node.name not in hosted else " without power"
        gone = cured(node)
        faults = [*(f"{name} (cured)" if name in gone else name for name in node.faults), *_of_host(node)]
        of_rhel = "" if node.os == "ubuntu" else f" ({node.os})"
        what = f"{node.name}  {node.platform}{of_rhel}  {form}, boot {node.boot + 1}"
        print(f"{what}  {', '.join(faults) or 'healthy'}  {node.root}")
    if not found:
        print(f"no lab nodes in {home}; hwcheck lab up makes one")
    return 0


def _of_host(node: Node) -> list[str]:
    return [f for f in HOST_FAULTS if HOST_FAULTS[f].does in _behaviours(node, f)]


def _behaviours(node: Node, name: str) -> list[str]:
    try:
        table = json.loads((node.folder / TABLE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return list(table.get(HOST_FAULTS[name].path, {}).values())


def faults(arguments: argparse.Namespace) -> int:
    """Print what can be broken."""
    del arguments
    for name, fault in catalogue().items():
        where = "all" if len(fault.platforms) == len(PLATFORMS) else ", ".join(fault.platforms)
        after = "stays after a reboot" if fault.stays else "a reboot cures it"
        mended = f"{fault.fix}: {fault.how}" if fault.how else fault.fix
        print(f"{name:<24} {fault.text} [{where}; {after}; {mended}]")
    for name, host_fault in HOST_FAULTS.items():
        print(f"{name:<24} {host_fault.says} [host form only]")
    return 0


def break_node(arguments: argparse.Namespace) -> int:
    """Break a node."""
    home = _home(arguments)
    node = nodes.load(home, arguments.node)
    running = node.name in HostLab(home).hosted()
    wanted = list(dict.fromkeys(arguments.fault))
    of_host = [fault for fault in wanted if fault in HOST_FAULTS]
    if of_host and not running:
        raise UsageError(f"{', '.join(of_host)}: only nodes in host form can have that")
    nodes.refuse_faults(node, [fault for fault in wanted if fault not in of_host])
    for fault in wanted:
        if fault in of_host:
            put(node.folder, fault)
            print(f"{node.name}: {HOST_FAULTS[fault].says}")
            continue
        changed = nodes.break_node(node, fault)
        what = f"{len(changed)} {'files' if len(changed) > 1 else 'file'}" if changed else "what NVML and the tools say"
        print(f"{node.name}: {catalogue()[fault.partition(':')[0]].text} ({what} changed)")
    _again(home, node, running=running)
    return 0


def mend(arguments: argparse.Namespace) -> int:
    """Make a node healthy again."""
    home = _home(arguments)
    node = nodes.load(home, arguments.node)
    running = node.name in HostLab(home).hosted()
    had = [*nodes.mend(node), *_of_host(node)]
    for fault in HOST_FAULTS:
        take(node.folder, fault)
    _again(home, node, running=running)
    print(f"{node.name} is healthy" + (f"; it had {', '.join(had)}" if had else ""))
    return 0


def reboot(arguments: argparse.Namespace) -> int:
    """Reboot a node."""
    home = _home(arguments)
    node = nodes.load(home, arguments.node)
    had = node.faults
    if node.name in HostLab(home).running():
        _order(HostLab(home).reboot, node)
        node = nodes.load(home, arguments.node)
        gone = [fault for fault in had if fault not in node.faults]
    else:
        gone = nodes.reboot(node)
        _again(home, node, running=node.name in HostLab(home).hosted())  # one that has lost power
    healed = cured(node)
    parts = {
        "gone": gone, "cured by its own files": healed, "still there": [one for one in node.faults if one not in healed]
    }  # fmt: skip
    told = [f"{what}: {', '.join(names)}" for what, names in parts.items() if names]
    print("; ".join([f"{node.name} has booted", *told]))
    return 0


def _again(home: Path, node: Node, *, running: bool) -> None:
    """Let a node in host form start from its changed files."""
    if running:
        _order(HostLab(home).restart, node)


def _order(order: Callable[[list[str]], dict[str, str]], node: Node) -> None:
    """Give an order for one node to the keeper."""
    try:
        failed = order([node.name])
    except HostLabError as error:
        raise UsageError(str(error)) from error
    if failed:
        raise UsageError(f"{node.name} did not start: {failed[node.name]}")


def demo(arguments: argparse.Namespace) -> int:
    """Run the whole loop on four nodes of its own."""
    from hwcheck.cli.lab_demo import run  # noqa: PLC0415 - only this deed needs it

    return run(arguments.form, arguments.output)


def shell(arguments: argparse.Namespace) -> int:
    """Become a command with the tools and NVML of a node."""
    node = nodes.load(_home(arguments), arguments.node)
    words = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    environment = {**os.environ, **node.environment(), "HWCHECK_LAB_ROOT": str(node.root)}
    if not words:
        words = [os.environ.get("SHELL") or "/bin/sh"]
        print(f"tools and NVML of {node.name}; its files are in $HWCHECK_LAB_ROOT; exit ends", file=sys.stderr)
    sys.stdout.flush()
    try:
        os.execvpe(words[0], words, environment)  # noqa: S606 - what the user typed, no shell
    except OSError as error:
        raise UsageError(f"cannot run {words[0]}: {error.strerror}") from error
