"""Make ``/sys/bus/pci`` trees: functions with real configuration spaces, below real ports."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path

from hwcheck.evidence import Evidence, Output
from hwcheck.facts import Snapshot
from hwcheck.parse import take_snapshot

ENDPOINT, ROOT_PORT, UPSTREAM, DOWNSTREAM = 0, 4, 5, 6
L0S, L1, BOTH, NONE = 1, 2, 3, 0
REDIRECT = 0b1101  # SrcValid, ReqRedir, CmpltRedir


@dataclass
class Registers:
    """The registers of one function; speeds are codes (5 is 32 GT/s), sizes bytes."""

    kind: int = ENDPOINT
    width: int = 16
    width_max: int = 16
    speed: int = 5
    speed_max: int = 5
    aspm: int = NONE
    aspm_possible: int = BOTH
    read_request: int = 4096
    payload: int = 256
    relaxed: bool = True
    acs: int | None = None
    errors: int | None = 0

    def space(self) -> bytes:
        """Return 4096 bytes: the PCI Express capability behind a power management one, AER, ACS."""
        data = bytearray(4096)
        data[6] = 0x10
        data[0x34] = 0x40
        struct.pack_into("<BB", data, 0x40, 0x01, 0x60)
        control = (0x10 if self.relaxed else 0) | _size(self.payload) << 5 | _size(self.read_request) << 12
        able = self.speed_max | self.width_max << 4 | self.aspm_possible << 10
        state = self.speed | self.width << 4
        struct.pack_into("<BBHIHHIHH", data, 0x60, 0x10, 0, 2 | self.kind << 4, 0, control, 0, able, self.aspm, state)
        at, heads = 0x100, []
        if self.errors is not None:
            heads.append((at, 0x0001))
            struct.pack_into("<I", data, at + 4, self.errors)
            at = 0x148
        if self.acs is not None:
            heads.append((at, 0x000D))
            struct.pack_into("<HH", data, at + 4, 0x7F, self.acs)
        for number, (offset, wanted) in enumerate(heads):
            following = heads[number + 1][0] if number + 1 < len(heads) else 0
            struct.pack_into("<I", data, offset, wanted | 1 << 16 | following << 20)
        return bytes(data)


def _size(size: int) -> int:
    return (size // 128).bit_length() - 1


@dataclass
class PciTree:
    """
    A tree below ``root``.

    Args:
        root: prefix of all paths.
        user: what a user sees: 64 bytes of each configuration space.
    """

    root: Path
    user: bool = False
    paths: dict[str, str] = field(default_factory=dict)

    def add(
        self,
        address: str,
        kind: str,
        ids: str = "15B3:1021",
        above: str = "",
        registers: Registers | None = None,
        **files: str,
    ) -> Path:
        """
        Add a function below a port that was added before.

        Args:
            address: its address.
            kind: class as ``PCI_CLASS`` has it: 20700, 30200, 60400.
            ids: vendor and device.
            above: address of the port.
            registers: None for no configuration space.
            files: name (``__`` stands for ``/``) → content.
        """
        path = f"{self.paths[above]}/{address}" if above else f"devices/pci{address[:7]}/{address}"
        self.paths[address] = path
        folder = self.root / "sys" / path
        folder.mkdir(parents=True)
        devices = self.root / "sys/bus/pci/devices"
        devices.mkdir(parents=True, exist_ok=True)
        (devices / address).symlink_to(f"../../../{path}")
        (folder / "uevent").write_text(f"DRIVER=drv\nPCI_CLASS={kind}\nPCI_ID={ids}\nPCI_SUBSYS_ID={ids}\n")
        if registers:
            space = registers.space()
            (folder / "config").write_bytes(space[:64] if self.user else space)
        for name, text in files.items():
            file = folder / name.replace("__", "/")
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        return folder

    def hgx(self, port: Registers | None = None, **of_gpu: str) -> None:
        """Add a root port, a switch, and a GPU and an adapter below it."""
        self.add("0000:15:01.0", "60400", "8086:352A", registers=Registers(ROOT_PORT, acs=REDIRECT))
        self.add("0000:16:00.0", "60400", "1000:C030", "0000:15:01.0", Registers(UPSTREAM))
        for number, (address, kind, ids) in enumerate(
            (("0000:18:00.0", "30200", "10DE:2335"), ("0000:1a:00.0", "20700", "15B3:1021"))
        ):
            downstream = f"0000:17:0{number}.0"
            self.add(downstream, "60400", "1000:C030", "0000:16:00.0", port or Registers(DOWNSTREAM, acs=1))
            self.add(address, kind, ids, downstream, Registers(), numa_node="0\n", **(of_gpu if not number else {}))


def snapshot_of(text: bytes, kind: str) -> Snapshot:
    """Parse what a source read."""
    return take_snapshot(Evidence("", [Output(kind, text.decode().splitlines(), file=kind)], collected=True))
