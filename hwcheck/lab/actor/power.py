"""
Reboots.

On a node in host form the kernel is told to, by ``b`` in /proc/sysrq-trigger, which the lab's keeper serves: it cuts
the node's power and boots it again. In tree form the lab itself boots the tree.
"""

from __future__ import annotations

import os

from hwcheck.lab.actor.place import Node, ToolError, say

TRIGGER = "/proc/sysrq-trigger"


def run(node: Node, tool: str, words: list[str]) -> int:
    """Be ``reboot`` or ``shutdown``: only what reboots is known."""
    if tool == "shutdown" and not {"-r", "--reboot"} & set(words):
        raise ToolError("the lab's shutdown knows -r only: nobody could switch the node on again")
    if set(words) & {"--help"}:
        say("reboot [OPTIONS...]")
        return 0
    reboot(node)
    return 0


def reboot(node: Node) -> None:
    """Reboot the node; in tree form it has booted when this returns."""
    if node.is_host:
        with open(TRIGGER, "w", encoding="ascii") as file:
            file.write("b")
        return
    lab = node.live("lab")
    environment = {**os.environ, "PYTHONPATH": lab.get("path", "")}
    words = [lab["python"], "-m", "hwcheck.lab.reboot", node.folder]
    status = os.spawnve(os.P_WAIT, words[0], words, environment)  # noqa: S606 - the lab's own interpreter
    if status:
        raise ToolError("the lab could not boot its node", status)
