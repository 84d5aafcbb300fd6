"""
Which port a subject of ``qos`` is: its network interface, RDMA device, port number and PCI address, from sysfs.

A subject is a network interface (``ens1f0np0``), an RDMA device (``mlx5_0``) or port of it (``mlx5_0/1``), or the
adapter's PCI address. Source: kernel ABI sysfs-class-net (``dev_port`` counts from 0), sysfs-class-infiniband.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from .config_space import ADDRESS
from .place import Place, WriteError

_PORT = re.compile(r"([A-Za-z0-9_.:-]{1,64})(?:/(\d{1,3}))?")
_NET, _RDMA, _PCI = "/sys/class/net", "/sys/class/infiniband", "/sys/bus/pci/devices"
_INFINIBAND_TYPE = "32"


class Port(NamedTuple):
    """A port; ``netdev`` and ``device`` are "" where it has none."""

    netdev: str
    device: str
    number: int
    address: str

    @property
    def net(self) -> str:
        """Folder of the interface."""
        return f"{_NET}/{self.netdev}"

    @property
    def rdma(self) -> str:
        """Folder of the RDMA device."""
        return f"{_RDMA}/{self.device}"

    @property
    def congestion(self) -> str:
        """Folder of the congestion parameters that the in-box driver has in debugfs."""
        return f"/sys/kernel/debug/mlx5/{self.address}/cc_params"

    @property
    def marking(self) -> str:
        """Folder of rdma_cm's settings of the device in configfs."""
        return f"/sys/kernel/config/rdma_cm/{self.device}"


def find(place: Place, subject: str) -> Port:
    """
    Return the port that a subject names.

    Raises:
        WriteError: there is none of that name.
    """
    found = _PORT.fullmatch(subject)
    if found is None or found[1] in (".", ".."):
        raise WriteError(f"{subject[:80]!r} is no interface, RDMA device, port or PCI address")
    name, number = found[1], int(found[2] or 1)
    if place.exists(f"{_RDMA}/{name}"):
        here = f"{_RDMA}/{name}/device"
        return Port(_netdev(place, here, number), name, number, _address(place, here))
    if place.exists(f"{_NET}/{name}"):
        here = f"{_NET}/{name}/device"
        text = (place.text(f"{_NET}/{name}/dev_port") or "0").strip()
        return Port(name, _first(place, f"{here}/infiniband"), int(text or 0) + 1, _address(place, here))
    if ADDRESS.fullmatch(name) and place.exists(f"{_PCI}/{name}"):
        here = f"{_PCI}/{name}"
        return Port(_netdev(place, here, number), _first(place, f"{here}/infiniband"), number, name)
    raise WriteError(f"there is no interface, RDMA device or PCI function {subject} here")


def is_infiniband(place: Place, port: Port) -> bool:
    """Tell whether the port's link layer is InfiniBand, which has none of this."""
    layer = (place.text(f"{port.rdma}/ports/{port.number}/link_layer") or "").strip() if port.device else ""
    kind = (place.text(f"{port.net}/type") or "").strip() if port.netdev else ""
    return layer == "InfiniBand" or (not layer and kind == _INFINIBAND_TYPE)


def _netdev(place: Place, device: str, number: int) -> str:
    names = [path.rpartition("/")[2] for path in place.expand(f"{device}/net/*")]
    for name in names:
        if (place.text(f"{_NET}/{name}/dev_port") or "0").strip() == str(number - 1):
            return name
    return names[0] if names else ""


def _first(place: Place, folder: str) -> str:
    return next((path.rpartition("/")[2] for path in place.expand(f"{folder}/*")), "")


def _address(place: Place, device: str) -> str:
    name = os.path.basename(os.path.realpath(place.real(device)))
    return name if ADDRESS.fullmatch(name) else ""
