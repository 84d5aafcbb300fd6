"""One PCI function while :mod:`hwcheck.parse.sysfs_pci` reads it: its files, the ports above it, its registers."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from hwcheck.facts import Subject
from hwcheck.parse.pci_config import Config

_SPEED = re.compile(r"^(\d{1,3}(?:\.\d)?) GT/s")
Files = dict[str, tuple[str, int]]
"""File name → its text and line."""


@dataclass(slots=True)
class Function:
    """One function: its files, and what the kernel's path says of the ports above it (the root port first)."""

    address: str
    files: Files = field(default_factory=dict)
    path: tuple[str, ...] = ()
    kind: str = ""
    ids: str = ""
    config: Config | None = None
    express: dict[str, Any] = field(default_factory=dict)

    @property
    def line(self) -> int:
        """First line of the function."""
        return next(iter(self.files.values()), ("", 0))[1]

    @property
    def subject(self) -> Subject:
        """The function as a subject of facts."""
        return Subject("pci", self.address)

    @property
    def is_gpu(self) -> bool:
        """A display or 3D controller of NVIDIA."""
        return self.kind[:2] == "03" and self.ids.startswith("10de:")

    @property
    def is_port(self) -> bool:
        """A root port, or a port of a switch."""
        return self.kind == "0604"

    def text(self, name: str) -> str:
        """Return the value of a file, "" where there is none or it could not be read."""
        text = self.files.get(name, ("", 0))[0]
        return "" if text.startswith("!") else text

    def decode(self) -> None:
        """Read class, ids and registers out of the files."""
        uevent = dict(part.split("=", 1) for part in self.text("uevent").split("\\n") if "=" in part)
        kind = uevent.get("PCI_CLASS", "").zfill(6)
        self.kind = kind[:4] if re.fullmatch(r"[0-9A-Fa-f]{6}", kind) else ""
        ids = uevent.get("PCI_ID", "").lower()
        self.ids = ids if re.fullmatch(r"[0-9a-f]{4}:[0-9a-f]{4}", ids) else ""
        first = hex_bytes(self.text("config"))
        if first:
            pieces = {
                int(name[7:], 16): hex_bytes(text)
                for name, (text, _) in self.files.items()
                if re.fullmatch(r"config@[0-9a-f]{3}", name)
            }
            self.config = Config(first, pieces)
            self.express = self.config.express()

    def link(self) -> dict[str, Any]:
        """Return speed, speed_max, width, width_max as far as registers or attributes tell."""
        if self.express:
            return self.express
        found: dict[str, Any] = {}
        for name, file in (("", "current"), ("_max", "max")):
            speed = _SPEED.match(self.text(f"{file}_link_speed"))
            width = self.text(f"{file}_link_width")
            if speed:
                found[f"speed{name}"] = float(speed[1])
            if re.fullmatch(r"\d{1,2}", width) and int(width) <= 32:
                found[f"width{name}"] = int(width)
        return found

    def aer(self) -> dict[str, dict[str, int]] | None:
        """Read rows such as ``BadTLP 3`` of the three kinds; None where the kernel counts nothing."""
        found: dict[str, dict[str, int]] = {}
        for kind in ("correctable", "nonfatal", "fatal"):
            rows = [row.split() for row in self.text(f"aer_dev_{kind}").split("\\n")[:40]]
            pairs = [(row[0], row[1]) for row in rows if len(row) == 2 and re.fullmatch(r"\d{1,18}", row[1])]
            if pairs:
                found[kind] = {name[:40]: int(n) for name, n in pairs if int(n) and not name.startswith("TOTAL")}
        return found or None


def hex_bytes(text: str) -> bytes:
    """Return the bytes behind ``hex:``; none for any other text."""
    digits = text.removeprefix("hex:")
    good = text.startswith("hex:") and len(digits) <= 8192 and re.fullmatch(r"(?:[0-9a-f]{2})*", digits)
    return bytes.fromhex(digits) if good else b""
