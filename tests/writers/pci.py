"""PCI functions below a node's root, with configuration spaces as the lab makes them."""

from __future__ import annotations

import struct

from tests.writers.conftest import Node

ENDPOINT, ROOT_PORT, UPSTREAM, DOWNSTREAM = 0, 4, 5, 6
EXPRESS, ACCESS_CONTROL = 0x60, 0x148


def space(kind: int = ENDPOINT, *, aspm: int = 0, control: int = 0x2810, acs: int | None = None) -> bytes:
    """Return 4096 bytes: power management at 0x40, PCI Express at 0x60, AER at 0x100, ACS at 0x148."""
    data = bytearray(4096)
    struct.pack_into("<HHHH", data, 0, 0x10DE, 0x2335, 0x0406, 0x0010)
    data[0x34] = 0x40
    struct.pack_into("<BBH", data, 0x40, 0x01, EXPRESS, 0x0003)
    struct.pack_into("<BBHIHHIHH", data, EXPRESS, 0x10, 0, 2 | kind << 4, 2, control, 0, 0x45, aspm | 0x40, 0x1045)
    struct.pack_into("<II", data, 0x100, 0x0001 | 2 << 16 | (ACCESS_CONTROL << 20 if acs is not None else 0), 0)
    if acs is not None:
        struct.pack_into("<IHH", data, ACCESS_CONTROL, 0x000D | 1 << 16, 0x5F, acs)
    return bytes(data)


class Bus:
    """Functions of a node, each below the one that was given as its parent."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self._paths: dict[str, str] = {}

    def add(self, address: str, config: bytes, parent: str = "", **attributes: str) -> None:
        """Add a function with attributes such as vendor and device."""
        path = f"{self._paths[parent] if parent else 'sys/devices/pci0000:00'}/{address}"
        self._paths[address] = path
        folder = self.node.root / path
        folder.mkdir(parents=True)
        (folder / "config").write_bytes(config)
        for name, text in attributes.items():
            (folder / name).write_text(text + "\n", encoding="ascii")
        link = self.node.root / "sys/bus/pci/devices" / address
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(f"../../../../{path}")

    def config(self, address: str) -> bytes:
        """Return the whole configuration space."""
        return (self.node.root / self._paths[address] / "config").read_bytes()

    def word(self, address: str, offset: int) -> int:
        """Return a word."""
        return int(struct.unpack_from("<H", self.config(address), offset)[0])

    def put(self, address: str, config: bytes) -> None:
        """Change the configuration space."""
        (self.node.root / self._paths[address] / "config").write_bytes(config)
