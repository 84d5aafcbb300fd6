"""
Command lines of units (ExecStart= and its like), run for real.

On a node in host form they run on the node. In tree form nothing but the node's own tools and a few harmless programs
is run, with the paths in their arguments led below the node's root: the machine beside it stays untouched.
"""

from __future__ import annotations

import os

from hwcheck.lab.actor.place import LOCKED, Node

_HARMLESS = frozenset(("sh", "bash", "echo", "true", "false", "sleep", "test", "cat", "printf", "env"))
_BELOW = frozenset(("mkdir", "rm", "touch", "tee", "rmdir"))
"""Programs that are run in tree form where all that they are told lies below the node's root."""
_TOPS = ("sys", "proc", "etc", "run", "var", "lib", "boot", "dev")
_BEFORE = " '\"=>:;(\t"
_PREFIXES = "-@:+!"
_SECONDS = 90.0


def run(node: Node, line: str, settings: list[str]) -> int:
    """
    Run one command line.

    Args:
        node: of the unit.
        line: as in the unit; ``-`` before it makes a failure none.
        settings: of ``Environment=``.

    Returns:
        Exit status; 203 when the program is not there, as systemd has it.
    """
    import shlex  # noqa: PLC0415 - only for units that run something
    import subprocess  # noqa: PLC0415

    forgiven = "-" in line[: len(line) - len(line.lstrip(_PREFIXES))]
    words = shlex.split(line.lstrip(_PREFIXES))
    environment = {"PATH": _path(node), "LANG": "C.UTF-8", LOCKED: "1"}
    environment |= dict(word.split("=", 1) for setting in settings for word in shlex.split(setting) if "=" in word)
    words = [word for plain in words for word in expanded(plain, environment)]
    if not node.is_host and words:
        words = [_program(node, words[0], words[1:]), *(_below(node, word) for word in words[1:])]
    if not words or not words[0]:
        return 0 if forgiven else 203
    try:
        done = subprocess.run(  # noqa: S603 - what a unit of the node says, on the node
            words, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SECONDS,
            check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return 0 if forgiven else 203
    node.keep("last-output", done.stdout + done.stderr)
    return 0 if forgiven else done.returncode


def expanded(word: str, environment: dict[str, str]) -> list[str]:
    """Fill in ``$NAME`` (split) and ``${NAME}`` where the unit sets the name; ``$$`` is ``$``."""
    if word.startswith("$") and word[1:].strip("{}") in environment and word.isascii():
        value = environment[word[1:].strip("{}")]
        return [value] if word.startswith("${") else value.split()
    return [word.replace("$$", "$")]


def _path(node: Node) -> str:
    usual = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return usual if node.is_host else f"{node.folder}/bin:{usual}"


def _program(node: Node, word: str, rest: list[str]) -> str:
    """Return what is run for a program in tree form: the node's tool, or one that can do no harm; "" for no such."""
    name = word.rpartition("/")[2]
    tool = f"{node.folder}/bin/{name}"
    if os.access(tool, os.X_OK):
        return tool
    is_below = all(one.startswith("-") or _below(node, one).startswith(node.tree + "/") for one in rest)
    if name in _HARMLESS or (name in _BELOW and is_below):
        return name
    own = node.tree + word
    return own if word.startswith("/") and os.access(own, os.X_OK) else ""


def _below(node: Node, word: str) -> str:
    """Lead the node's paths in an argument below its root, those in a shell's text too."""
    for top in _TOPS:
        name, at = f"/{top}/", 0
        while (at := word.find(name, at)) >= 0:
            if at == 0 or word[at - 1] in _BEFORE:
                word = word[:at] + node.tree + word[at:]
                at += len(node.tree)
            at += 1
    return word
