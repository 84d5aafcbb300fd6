"""
What a fact is about: something a technician can touch.

A subject is (kind, id). The id is what findings print: ``0000:18:00.0`` for a GPU, ``mlx5_0/1`` for a port, "" for the
node. PCI addresses are lower case with a four-digit domain, as the kernel prints them; every other spelling is turned
into that one here and nowhere else.
"""

from __future__ import annotations

import re
from typing import NamedTuple

NODE_KIND = "node"
KINDS = (
    "node", "gpu", "port", "nic", "netdev", "switch", "numa", "pci", "measurement", "clock", "unit",
    "component", "disk", "mount",
)  # fmt: skip
"""
port: RDMA port ``mlx5_0/1`` · nic: RDMA device ``mlx5_0`` or its PCI address · netdev: ``ens6`` · switch: NVSwitch by
PCI address · numa: node number · pci: any other PCI function · measurement: one measured result, by name ·
clock: a PTP clock or time source · unit: a service · component: a firmware component ·
disk: a drive or array, ``nvme0``, ``md0`` · mount: a mount point.
"""


class Subject(NamedTuple):
    """A thing of a kind; compares and hashes as a tuple, so it keys dictionaries cheaply."""

    kind: str
    id: str

    def __str__(self) -> str:
        """Print the id only: the kind is clear from the check."""
        return self.id


NODE = Subject(NODE_KIND, "")

_PCI = re.compile(
    r"^(?:pci:)?(?:(?P<domain>[0-9a-f]{4,8}):)?(?P<bus>[0-9a-f]{2}):(?P<device>[0-9a-f]{2})(?:\.(?P<function>[0-7]))?$",
    re.IGNORECASE,
)


def pci_address(text: str) -> str | None:
    """
    Spell a PCI address as the kernel does.

    Args:
        text: ``00000000:18:00.0`` (NVML), ``PCI:0000:18:00`` (kernel log, no function), ``18:00.0`` (lspci without -D).

    Returns:
        ``0000:18:00.0``, or None when the text is no PCI address. A missing domain is 0, a missing function is 0.
    """
    match = _PCI.match(text.strip())
    if match is None:
        return None
    domain = int(match["domain"] or "0", 16)
    return f"{domain:04x}:{match['bus'].lower()}:{match['device'].lower()}.{match['function'] or '0'}"


def gpu_at(address: str) -> Subject:
    """Name a GPU by its PCI address, in any spelling; a text that is no address is kept as it is."""
    return Subject("gpu", pci_address(address) or address.strip())


def gpu_index(index: int | str) -> Subject:
    """Name a GPU by its nvidia-smi index; the identity map replaces it by the PCI address where that is known."""
    return Subject("gpu", f"GPU{int(index)}")


def gpu_uuid(uuid: str) -> Subject:
    """Name a GPU by its UUID; the identity map replaces it by the PCI address where that is known."""
    return Subject("gpu", uuid.strip())


def port(device: str, number: int | str = 1) -> Subject:
    """Name an RDMA port, ``mlx5_0/1``."""
    return Subject("port", f"{device}/{number}")


def bare_name(product: str) -> str:
    """Spell a product name as old and new drivers share it: lower case, without ``NVIDIA``."""
    return product.strip().lower().removeprefix("nvidia ")
