"""
Mechanisms: the ways a value lives on a node, by name.

A profile names a mechanism and a key; the writer of that mechanism (:mod:`hwcheck.writers`, on the node) knows how to
read, set, keep and undo it. This table is all that the core knows of them. The value ``absent`` retires a key: the line
that hwcheck keeps for the next boot goes, the running value stays.
"""

from __future__ import annotations

from dataclasses import dataclass

ABSENT = "absent"

SEEN = {
    "iron": "tried on real machines",
    "recorded": "tried on recordings of real machines",
    "lab": "tried on simulated nodes of our own making, on no real one",
}
"""How a mechanism or a source was tried, in words; a lab of our own proves nothing about iron, so it is said."""


@dataclass(frozen=True, slots=True)
class Mechanism:
    """
    One way a value lives on a node.

    Attributes:
        name: as in profiles and plans.
        key: what a key of it is, with an example.
        value: what a value of it is.
        phase: ``persist`` (a file that a restart or boot reads) or ``volatile`` (set at once, and kept by the writer).
        of_subject: the key alone names no place: it belongs to the subject of the check (a GPU, a port).
        reboots: a value takes effect at the next boot only.
        several: one key may stand with several values (``pci=``, ``console=``).
        seen: where it was seen to work: a key of :data:`SEEN`.
    """

    name: str
    key: str
    value: str
    phase: str
    of_subject: bool = False
    reboots: bool = False
    several: frozenset[str] = frozenset()
    seen: str = "lab"


_ALL = (
    Mechanism("sysctl", "kernel parameter: kernel.numa_balancing, net/ipv4/conf/ens1/arp_ignore", "text", "volatile"),
    Mechanism("attribute", "path under /sys, globs allowed", "word written into each", "volatile"),
    Mechanism(
        "kernel_argument", "argument: iommu", "its value, empty for a bare flag; pci= and console= may stand "
        "several times, each with several parts", "persist", reboots=True, several=frozenset({"pci", "console"}),
    ),
    Mechanism("module_option", "module and parameter: nvidia NVreg_EnableGpuFirmware", "text", "persist"),
    Mechanism("module_load", "module: nvidia_peermem", "loaded", "volatile"),
    Mechanism("unit_property", "unit and property: slurmd.service LimitMEMLOCK", "text", "persist"),
    Mechanism("unit", "unit: chrony.service", "running, enabled, stopped, disabled or masked", "volatile"),
    Mechanism("limits", "domain and item of limits.d: * memlock", "text, soft and hard", "persist"),
    Mechanism(
        "gpu", "persistence, power_limit, graphics_clocks, memory_clocks, application_clocks",
        "1, watts, default, min,max or reset", "volatile", of_subject=True,
    ),
    Mechanism(
        "pci_bits", "aspm, max_read_request, acs_redirect, relaxed_ordering", "0, bytes, off, 1", "volatile",
        of_subject=True,
    ),
    Mechanism(
        "qos", "trust, pfc, dscp, default_tos, traffic_class, ecn_np, ecn_rp, cnp_dscp, cnp_prio", "text", "volatile",
        of_subject=True,
    ),
    Mechanism("irq_affinity", "interrupts", "list of CPUs", "volatile", of_subject=True),
    Mechanism("chrony", "servers, or a directive: makestep, hwtimestamp, maxdistance", "text", "persist"),
    Mechanism("package_hold", "package", "held or free", "persist"),
    Mechanism("udev_rule", "name of a rule", "the rule", "persist"),
)  # fmt: skip

MECHANISMS: dict[str, Mechanism] = {mechanism.name: mechanism for mechanism in _ALL}
"""Name → mechanism."""

DEEDS = {
    "restart": "restart the unit",
    "start": "start the unit",
    "reload_units": "let systemd read its unit files again",
    "reload_driver": "unload and load the driver",
    "reset_gpu": "reset the GPU",
    "reboot": "reboot the node",
}
"""What an act can be, in words."""
