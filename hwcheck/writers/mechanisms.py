# ruff: noqa: F401 - imported to be registered
"""All mechanisms: importing them registers them. Named one by one, since Ansible packs what is imported by name."""

from __future__ import annotations

from . import (
    attribute,
    chrony,
    driver,
    gpu,
    irq_affinity,
    kernel_argument,
    limits,
    module_load,
    module_option,
    package_hold,
    pci_bits,
    qos,
    sysctl,
    udev,
    unit,
    unit_property,
)
