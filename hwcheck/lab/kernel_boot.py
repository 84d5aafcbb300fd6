"""
What a kernel makes of its arguments at boot, before user space starts.

Source: Documentation/admin-guide/kernel-parameters.txt; drivers/pci/pci.c for ``disable_acs_redir`` (clears Request
Redirect, Completion Redirect and Egress Control) and ``config_acs`` (seven digits, bit 6 first, ``x`` leaves a bit).
"""

from __future__ import annotations

from hwcheck.lab.devices import Function
from hwcheck.lab.machine import Machine

REDIRECTS = 0x04 | 0x08 | 0x20
DEFAULTS = {
    "kernel.numa_balancing": "1", "vm.max_map_count": "65530", "vm.min_free_kbytes": "90112", "vm.swappiness": "60",
    "net.core.rmem_max": "212992", "net.core.wmem_max": "212992", "net.core.netdev_max_backlog": "1000",
    "net.ipv4.tcp_rmem": "4096\t131072\t6291456", "net.ipv4.tcp_wmem": "4096\t16384\t4194304",
    "net.ipv4.neigh.default.gc_thresh1": "128", "net.ipv4.neigh.default.gc_thresh2": "512",
    "net.ipv4.neigh.default.gc_thresh3": "1024", "fs.inotify.max_user_instances": "128", "kernel.panic_on_oops": "0",
}  # fmt: skip
"""Parameters that the lab's drop-ins set: what they are without."""


def values(machine: Machine, name: str) -> list[str]:
    """Return the values of an argument, in order."""
    words = (word.partition("=") for word in machine.kernel.arguments.split())
    return [value for key, _, value in words if key == name]


def start(machine: Machine) -> None:
    """Let a kernel start with its arguments; parameters are its defaults until user space sets them."""
    kernel = machine.kernel
    kernel.sysctls |= DEFAULTS
    if "disable" in values(machine, "numa_balancing"):
        kernel.sysctls["kernel.numa_balancing"] = "0"
    for governor in values(machine, "cpufreq.default_governor"):
        machine.processor.governor = governor
        if governor == "performance" and machine.processor.preference:
            machine.processor.preference = "performance"
    for wanted in values(machine, "transparent_hugepage"):
        words = [word.strip("[]") for word in machine.transparent_pages.split()]
        machine.transparent_pages = " ".join(f"[{word}]" if word == wanted else word for word in words)
    for number in values(machine, "hugepages"):
        if number.isdigit():
            machine.huge_pages = int(number)
            kernel.sysctls["vm.nr_hugepages"] = number
    for value in values(machine, "pci"):
        _access_control(machine, value)


def _access_control(machine: Machine, value: str) -> None:
    """Set the ACS bits that an argument ``pci=`` asks for."""
    for part in value.split(","):
        name, _, text = part.partition("=")
        for one in text.split(";") if name in ("disable_acs_redir", "config_acs") else []:
            flags, sign, place = one.rpartition("@")
            for function in machine.functions.values():
                if function.acs is None or not _is_meant(function, place):
                    continue
                if name == "disable_acs_redir":
                    function.acs &= ~REDIRECTS
                elif sign:
                    function.acs = _with_flags(function.acs, flags)


def _is_meant(function: Function, text: str) -> bool:
    """Tell whether a device is named: by address, or ``pci:VENDOR:DEVICE`` with 0 for any."""
    if not text.startswith("pci:"):
        return function.address in (text, f"0000:{text}")
    wanted = [int(part or "0", 16) for part in text.split(":")[1:3]]
    mine = [int(part, 16) for part in function.ids.split(":")]
    return all(not one or one == other for one, other in zip(wanted, mine, strict=False))


def _with_flags(acs: int, flags: str) -> int:
    for bit, flag in enumerate(reversed(flags)):
        acs = acs | 1 << bit if flag == "1" else acs & ~(1 << bit) if flag == "0" else acs
    return acs
