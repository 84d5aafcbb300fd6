"""Which tool is asked for."""

from __future__ import annotations

import importlib
import sys

from hwcheck.lab.actor.place import Node, ToolError

LOAD_TOOLS = {
    "nvbandwidth": "nvbandwidth", "all_reduce_perf": "nccl", "dcgmi": "dcgmi", "ib_write_bw": "perftest",
    "ib_send_lat": "perftest",
}  # fmt: skip
"""Tools that measure: a node has them only where it was made with them."""
TOOLS = {
    "systemctl": "systemctl", "reboot": "power", "shutdown": "power", "boot": "boot", "chronyc": "clock",
    "nvidia-smi": "smi", "setpci": "pci", "udevadm": "udev", "dcb": "qos",
    **dict.fromkeys(("modprobe", "rmmod", "modinfo", "lsmod"), "modules"),
    **dict.fromkeys(("sysctl", "systemd-sysctl", "systemd-tmpfiles"), "settings"),
    **dict.fromkeys(("grub-mkconfig", "grub-reboot", "grub-set-default", "grub-editenv", "update-grub"), "loader"),
    **LOAD_TOOLS,
    **dict.fromkeys(("grubby", "grub2-reboot", "grub2-set-default", "grub2-editenv"), "loader"),
}  # fmt: skip
"""Tool → the module that has its ``run(node, tool, words)``, which returns the exit status."""


def main(folder: str, words: list[str]) -> int:
    """
    Be a tool.

    Args:
        folder: of the node.
        words: name of the tool and its arguments.

    Returns:
        Its exit status.
    """
    try:
        module = importlib.import_module("hwcheck.lab.actor." + TOOLS[words[0]])
        return int(module.run(Node(folder), words[0], words[1:]))
    except ToolError as error:
        sys.stderr.write(f"{error}\n")
        return error.status
    except BrokenPipeError:
        return 141
