"""
udev of a node: rules of simple forms, applied when devices appear and by ``udevadm trigger``.

Source: udev(7). Understood: matches of ACTION, SUBSYSTEM, KERNEL, DRIVER(S), ATTR and ATTRS with shell patterns and
``|``; assignments of ATTR, of RUN (``%k`` the device's name, ``$attr{...}`` no), TAG, and ENV{SYSTEMD_WANTS}, whose
units are started. Any other match makes a rule match nothing, so that nothing happens that udev would not do.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from fnmatch import fnmatchcase

from hwcheck.lab.actor import attribute, oneshot, settings
from hwcheck.lab.actor.jobs import Manager
from hwcheck.lab.actor.place import Node, ToolError, say

_CLASSES = {
    "pci": "/sys/bus/pci/devices", "net": "/sys/class/net", "infiniband": "/sys/class/infiniband",
    "cpu": "/sys/devices/system/cpu", "nvme": "/sys/class/nvme", "module": "/sys/module",
}  # fmt: skip
RULES = "udev/rules.d"


@dataclass(frozen=True)
class Device:
    """One device: where it is, its kernel name, its subsystem."""

    path: str
    name: str
    subsystem: str


def devices(node: Node, subsystem: str = "") -> list[Device]:
    """Return the devices of the subsystems that rules of nodes are about."""
    found = []
    for kind, folder in _CLASSES.items():
        if subsystem in ("", kind):
            names = [name for name in node.names(folder) if kind != "cpu" or name[3:].isdigit()]
            found += [Device(f"{folder}/{name}", name, kind) for name in names]
    return found


def parse(line: str) -> list[tuple[str, str, str]]:
    """Return key, sign and value of each part of a rule; empty for what is none."""
    parts, at = [], 0
    while at < len(line):
        start = line.find('"', at)
        if start < 0:
            break
        end = start + 1
        while end < len(line) and line[end] != '"':
            end += 2 if line[end] == "\\" else 1
        head = line[at:start].strip(" ,\t")
        sign = next((one for one in ("==", "!=", "+=", "-=", ":=", "=") if head.rstrip("ei").endswith(one)), "")
        if not sign:
            return []
        parts.append((head.rstrip("ei")[: -len(sign)].strip(), sign, line[start + 1 : end]))
        at = end + 1
    return parts


def lines(node: Node) -> list[list[tuple[str, str, str]]]:
    """Return the rules of all files, in order; lines that go on are joined."""
    found = []
    for path in settings.files(node, RULES):
        text = node.text(path).replace("\\\n", " ")
        found += [parse(row) for row in text.splitlines() if row.strip()[:1] not in ("#", "")]
    return found


def apply(node: Node, action: str, chosen: list[Device], *, starts: bool = True) -> list[str]:
    """
    Let devices appear.

    Args:
        node: of the devices.
        action: ``add``, ``change``, ``bind``, ``move``.
        chosen: the devices.
        starts: whether wanted units are started here.

    Returns:
        The units that rules want, in order.
    """
    rules = lines(node)
    wants: dict[str, None] = {}
    for device in chosen if rules else []:
        for rule in rules:
            if all(_fits(node, device, action, *part) for part in rule if part[1] in ("==", "!=")):
                _assign(node, device, rule, wants)
    if starts:
        manager = Manager(node)
        for unit in wants:
            with contextlib.suppress(ToolError):
                manager.restart(unit) if manager.is_active(unit) else manager.start(unit)
    return list(wants)


def _fits(node: Node, device: Device, action: str, key: str, sign: str, pattern: str) -> bool:
    name, _, leaf = key.rstrip("}").partition("{")
    if name == "ATTRS":
        value = _attribute(node, device, leaf)
    elif name == "ATTR":
        value = node.text(f"{device.path}/{leaf}", "\0")
    elif name in ("DRIVER", "DRIVERS"):
        here = node.link(f"{device.path}/driver") or node.link(f"{device.path}/device/driver")
        value = here.rpartition("/")[2]
    else:
        value = {"ACTION": action, "SUBSYSTEM": device.subsystem, "SUBSYSTEMS": device.subsystem,
                 "KERNEL": device.name, "KERNELS": device.name}.get(name, "\0")  # fmt: skip
    if value == "\0":
        return False
    return any(fnmatchcase(value, one) for one in pattern.split("|")) is (sign == "==")


def _attribute(node: Node, device: Device, leaf: str) -> str:
    """Return an attribute of a device or of what it hangs on."""
    for place in (device.path, f"{device.path}/device"):
        if node.exists(f"{place}/{leaf}"):
            return node.text(f"{place}/{leaf}")
    return "\0"


def _assign(node: Node, device: Device, rule: list[tuple[str, str, str]], wants: dict[str, None]) -> None:
    for key, sign, text in rule:
        if sign in ("==", "!="):
            continue
        value = _filled(text, device)
        name, _, leaf = key.rstrip("}").partition("{")
        if name == "ATTR":
            with contextlib.suppress(OSError):
                attribute.write(node, f"{device.path}/{leaf}", value)
        elif name == "RUN" and leaf in ("", "program"):
            oneshot.run(node, value, [])
        elif key == "ENV{SYSTEMD_WANTS}":
            wants |= dict.fromkeys(value.split())


def _filled(text: str, device: Device) -> str:
    place = device.path.removeprefix("/sys")
    signs = {
        "%%": "\0", "$$": "\1", "%k": device.name, "$kernel": device.name, "%n": _number(device), "%S": "/sys",
        "%p": place, "$devpath": place,
    }  # fmt: skip
    for sign, value in signs.items():
        text = text.replace(sign, value)
    return text.replace("\0", "%").replace("\1", "$")


def _number(device: Device) -> str:
    stem = device.name.rstrip("0123456789")
    return device.name[len(stem) :]


def run(node: Node, _tool: str, words: list[str]) -> int:
    """Be ``udevadm``: control and settle do nothing that shows, trigger lets devices appear again."""
    verb = next((word for word in words if not word.startswith("-")), "")
    if verb in ("control", "settle"):
        return 0
    if verb != "trigger":
        raise ToolError(f"udevadm: the lab knows control, settle and trigger, not {verb}")
    options = dict(_option(word) for word in words if word.startswith("-"))
    chosen = devices(node, options.get("--subsystem-match", options.get("-s", "")))
    name = options.get("--sysname-match", options.get("-y", "*"))
    pairs = [pair.partition("=") for key, pair in options.items() if key in ("--attr-match", "-a")]
    kept = [one for one in chosen if fnmatchcase(one.name, name)
            and all(fnmatchcase(node.text(f"{one.path}/{key}"), value) for key, _, value in pairs)]  # fmt: skip
    if "--dry-run" in options:
        say("\n".join(one.path for one in kept))
        return 0
    with node.locked():
        apply(node, options.get("--action", options.get("-c", "change")), kept)
    return 0


def _option(word: str) -> tuple[str, str]:
    if word.startswith("--"):
        key, _, value = word.partition("=")
        return key, value
    return word[:2], word[2:].lstrip("=")
