"""
Files of settings that are applied at boot: sysctl.d and tmpfiles.d.

Source: sysctl.d(5), tmpfiles.d(5): files of all folders sorted by name, one in /etc hides the same name elsewhere; of
sysctls the last assignment wins, of tmpfiles lines of the same path the first.
"""

from __future__ import annotations

import contextlib
import shlex

from hwcheck.lab.actor import attribute
from hwcheck.lab.actor.place import Node, ToolError, say

FOLDERS = ("/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib")
_INTERFACES = "net/ipv4/conf/"


def files(node: Node, kind: str) -> list[str]:
    """Return the files of a kind (``sysctl.d``) in the order in which they are read."""
    suffix = ".rules" if kind.endswith("rules.d") else ".conf"
    found: dict[str, str] = {}
    for folder in FOLDERS:
        for name in node.names(f"{folder}/{kind}"):
            if name.endswith(suffix):
                found.setdefault(name, f"{folder}/{kind}/{name}")
    return [found[name] for name in sorted(found)]


def sysctls(node: Node) -> None:
    """Set the kernel's parameters as systemd-sysctl does: patterns first, each key by its last assignment."""
    patterns: dict[str, str] = {}
    exact: dict[str, str] = {}
    paths = files(node, "sysctl.d")
    if not any(path.endswith("/99-sysctl.conf") for path in paths):
        paths.append("/etc/sysctl.conf")
    for path in paths:
        for row in node.text(path).splitlines():
            name, sign, value = row.strip().lstrip("-").partition("=")
            if sign and row.strip()[:1] not in ("#", ";"):
                place = "/proc/sys/" + _slashed(name.strip())
                (patterns if "*" in place else exact)[place] = value.strip()
    for pattern, value in patterns.items():
        for place in node.expand(pattern):
            if place not in exact:
                set_sysctl(node, place, value)
    for place, value in exact.items():
        set_sysctl(node, place, value)


def _slashed(name: str) -> str:
    """Return a parameter's path; where a slash comes first, dots and slashes are as they are in the path."""
    first = next((sign for sign in name if sign in "./"), ".")
    return name if first == "/" else name.translate({ord("."): "/", ord("/"): "."})


def set_sysctl(node: Node, path: str, value: str) -> bool:
    """Write a parameter; one that the kernel does not have, or a value that it does not take, changes nothing."""
    try:
        attribute.write(node, path, value)
    except OSError:
        return False
    return True


def tmpfiles(node: Node) -> None:
    """Write what ``w`` lines say; make the folders of ``d`` lines."""
    seen: dict[str, str] = {}
    for path in files(node, "tmpfiles.d"):
        for row in node.text(path).splitlines():
            words = row.split(None, 6)
            if len(words) > 6 and words[0][:1] == "w":
                seen.setdefault(_plain(words[1]), words[6])
    for pattern, value in seen.items():
        for place in node.expand(pattern):
            with contextlib.suppress(OSError):
                attribute.write(node, place, _plain(value).replace("\\\\", "\\"))


def _plain(text: str) -> str:
    return text.strip("\"'").replace("%%", "%")


def run(node: Node, tool: str, words: list[str]) -> int:
    """Be ``systemd-tmpfiles --create``, ``systemd-sysctl``, or ``sysctl``."""
    if tool == "systemd-tmpfiles":
        tmpfiles(node)
        return 0
    if tool == "systemd-sysctl" or "--system" in words:
        sysctls(node)
        return 0
    return _sysctl(node, words)


def _sysctl(node: Node, words: list[str]) -> int:
    status = 0
    only = bool({"-n", "--values"} & set(words))
    for word in [word for word in words if not word.startswith("-")]:
        name, sign, value = word.partition("=")
        path = "/proc/sys/" + _slashed(name)
        if not node.exists(path):
            raise ToolError(f"sysctl: cannot stat {path}: No such file or directory", 255)
        if sign and not set_sysctl(node, path, value):
            raise ToolError(f'sysctl: setting key "{name}": Invalid argument', 255)
        said = node.text(path)
        say(said if only else f"{name} = {said}")
    return status


def shell_words(text: str) -> list[str]:
    """Split as a shell does; what it could not read is no word."""
    try:
        return shlex.split(text, comments=True)
    except ValueError:
        return []
