"""
What follows when an attribute of the kernel is written, and what makes the kernel refuse it.

Sources: drivers/pci/pcie/aspm.c (policy and the files of links; EPERM where the firmware keeps control),
Documentation/admin-guide/pm/intel_pstate.rst (the preference is fixed while the governor is performance).
"""

from __future__ import annotations

import errno

from hwcheck.lab.actor import pci
from hwcheck.lab.actor.attribute import refusal
from hwcheck.lab.actor.place import Node

POLICY = "/sys/module/pcie_aspm/parameters/policy"
_FADT, _OFFSET, _NO_ASPM = "/sys/firmware/acpi/tables/FACP", 109, 0x10
_L0S, _L1 = 1, 2
_GOVERNOR, _PREFERENCE = "scaling_governor", "energy_performance_preference"


def firmware_keeps_aspm(node: Node) -> bool:
    """Tell whether the kernel must not touch ASPM: the firmware says so, or an argument."""
    if "pcie_aspm=off" in node.text("/proc/cmdline").split():
        return True
    try:
        with open(node.real(_FADT), "rb") as file:
            return bool(file.read()[_OFFSET] & _NO_ASPM)
    except (OSError, IndexError):
        return False


def refuse(node: Node, path: str, text: str) -> None:
    """
    Refuse what the kernel would refuse, whatever the text.

    Raises:
        OSError: it does.
    """
    if path == POLICY and firmware_keeps_aspm(node):
        raise refusal(errno.EPERM)
    if path.endswith(_PREFERENCE) and text != "performance":
        folder = path.rpartition("/")[0]
        is_intel = node.text(f"{folder.rpartition('/')[0]}/policy0/scaling_driver") == "intel_pstate"
        if is_intel and node.text(f"{folder}/{_GOVERNOR}") == "performance":
            raise refusal(errno.EBUSY)


def follow(node: Node, path: str, text: str) -> None:
    """Change what else shows a new value."""
    folder, _, name = path.rpartition("/")
    if path == POLICY and text == "performance":
        for address in pci.addresses(node):
            set_aspm(node, address, _L0S | _L1, 0)
            for leaf in ("l0s_aspm", "l1_aspm"):
                if node.exists(f"{pci.DEVICES}/{address}/link/{leaf}"):
                    node.put(f"{pci.DEVICES}/{address}/link/{leaf}", "0")
    elif folder.endswith("/link") and name in ("l0s_aspm", "l1_aspm"):
        address, bit = folder.split("/")[-2], _L1 if name == "l1_aspm" else _L0S
        for end in (address, pci.above(node, address)):
            if end:
                set_aspm(node, end, bit, bit if text == "1" else 0)
    elif name == _GOVERNOR and node.exists(f"{folder}/{_PREFERENCE}"):
        _prefer(node, folder, text)
    elif name == "nr_hugepages" and path.startswith("/sys/kernel"):
        node.put(f"{folder}/free_hugepages", text)
        node.put("/proc/sys/vm/nr_hugepages", text)


def _prefer(node: Node, folder: str, governor: str) -> None:
    """Fix the preference under performance and give the old one back after, as intel_pstate does (epp_saved)."""
    saved = f"preference/{folder.rpartition('/')[2]}"
    if governor == "performance":
        if not node.live_text(saved):
            node.keep(saved, node.text(f"{folder}/{_PREFERENCE}"))
        node.put(f"{folder}/{_PREFERENCE}", "performance")
    elif node.live_text(saved):
        node.put(f"{folder}/{_PREFERENCE}", node.live_text(saved))
        node.forget(saved)


def set_aspm(node: Node, address: str, mask: int, bits: int) -> None:
    """Set ASPM bits of a function's Link Control register; a function that is gone keeps its ones."""
    space = pci.Space(node, address)
    at = space.at(pci.LINK_CONTROL)
    if at and space.read(0, 2) != 0xFFFF:
        space.write(at, 2, bits, mask)
