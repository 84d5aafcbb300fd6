"""
The configuration space of a PCI function, decoded: PCI Express capability, access control, advanced errors.

Source: PCI Express base specification (capability id 0x10; extended ids 0x0001 and 0x000D); words as lspci prints them.
Shape: bytes by offset. The first 64 are all that a user gets; extended capabilities come in pieces of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

PORTS = {
    0: "Endpoint", 1: "Legacy Endpoint", 4: "Root Port", 5: "Upstream Port", 6: "Downstream Port",
    7: "PCI-Express to PCI/PCI-X Bridge", 8: "PCI/PCI-X to PCI-Express Bridge", 9: "Root Complex Integrated Endpoint",
    10: "Root Complex Event Collector",
}  # fmt: skip
SPEEDS = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0, 6: 64.0}
_UNCORRECTABLE = {
    4: "DLP", 5: "SDES", 12: "TLP", 13: "FCP", 14: "CmpltTO", 15: "CmpltAbrt", 16: "UnxCmplt", 17: "RxOF",
    18: "MalfTLP", 19: "ECRC", 20: "UnsupReq", 21: "ACSViol",
}  # fmt: skip
ACS_BITS = ("SrcValid", "TransBlk", "ReqRedir", "CmpltRedir", "UpstreamFwd", "EgressCtrl", "DirectTrans")
_EXPRESS, _ERRORS, _ACCESS_CONTROL = 0x10, 0x0001, 0x000D


@dataclass(slots=True)
class Config:
    """
    What was read of one function.

    Attributes:
        first: from offset 0: 4 (all ones), 64 (a user), 256 or 4096 bytes.
        pieces: offset → bytes, for what was read apart.
    """

    first: bytes
    pieces: dict[int, bytes] = field(default_factory=dict)

    @property
    def lost(self) -> bool:
        """The function reads as all ones: it no longer answers."""
        return self.first[:4] == b"\xff\xff\xff\xff"

    @property
    def denied(self) -> bool:
        """There are capabilities, but only the 64 bytes that every user may read are here."""
        return 64 <= len(self.first) < 256 and bool(self.first[6] & 0x10)

    def _number(self, offset: int, size: int) -> int | None:
        for start, data in (*self.pieces.items(), (0, self.first)):
            if start <= offset and offset + size <= start + len(data):
                return int.from_bytes(data[offset - start : offset - start + size], "little")
        return None

    def _capability(self, wanted: int) -> int | None:
        """Return where a capability of the first 256 bytes is; None when there is none, or the list is broken."""
        if len(self.first) < 256 or not self.first[6] & 0x10:
            return None
        at, seen = self.first[0x34] & 0xFC, 0
        while at >= 0x40 and seen < 48:
            if self.first[at] == wanted:
                return at
            at, seen = self.first[at + 1] & 0xFC, seen + 1
        return None

    def _extended(self, wanted: int) -> int | None:
        for at in self.pieces:
            if (self._number(at, 4) or 0) & 0xFFFF == wanted:
                return at
        at, seen = 0x100, set[int]()
        while 0x100 <= at <= 0xFFC and at not in seen:
            seen.add(at)
            head = self._number(at, 4)
            if head in (None, 0, 0xFFFFFFFF):
                return None
            if head & 0xFFFF == wanted:
                return at
            at = head >> 20
        return None

    def express(self) -> dict[str, Any]:
        """
        Decode the PCI Express capability.

        Returns:
            ``port``, ``max_payload`` and ``max_read_request`` in bytes, ``relaxed_ordering``; and for functions with a
            link ``speed``, ``speed_max`` (GT/s, absent when the code is not known), ``width``, ``width_max``, ``aspm``,
            ``aspm_possible`` (``none``, ``L0s``, ``L1``, ``L0s L1``), ``clock_pm``. Empty without the capability.
        """
        at = self._capability(_EXPRESS)
        if at is None or at + 0x14 > len(self.first):
            return {}
        flags, control = self._number(at + 2, 2) or 0, self._number(at + 8, 2) or 0
        found: dict[str, Any] = {
            "port": PORTS.get(flags >> 4 & 0xF, "unknown"),
            "relaxed_ordering": bool(control & 0x10),
            "max_payload": 128 << (control >> 5 & 7),
            "max_read_request": 128 << (control >> 12 & 7),
        }
        able, link = self._number(at + 0xC, 4) or 0, self._number(at + 0x10, 2) or 0
        state = self._number(at + 0x12, 2) or 0
        if able >> 4 & 0x3F:  # no width at all: a virtual function, or one inside the root complex
            found["width_max"], found["width"] = able >> 4 & 0x3F, state >> 4 & 0x3F
            found["aspm_possible"], found["aspm"] = _aspm(able >> 10), _aspm(link)
            found["clock_pm"] = bool(link & 0x100)
            for name, code in (("speed_max", able & 0xF), ("speed", state & 0xF)):
                if code in SPEEDS:
                    found[name] = SPEEDS[code]
        return found

    def access_control(self) -> tuple[str, ...] | None:
        """Return the names of the bits set in the ACS control register; None without that capability."""
        at = self._extended(_ACCESS_CONTROL)
        word = None if at is None else self._number(at + 6, 2)
        return None if word is None else tuple(name for bit, name in enumerate(ACS_BITS) if word >> bit & 1)

    def uncorrectable(self) -> tuple[str, ...] | None:
        """Return the names of the uncorrectable error bits that stand in AER; None without that capability."""
        at = self._extended(_ERRORS)
        word = None if at is None else self._number(at + 4, 4)
        return None if word is None else tuple(name for bit, name in _UNCORRECTABLE.items() if word >> bit & 1)


def _aspm(bits: int) -> str:
    return ("none", "L0s", "L1", "L0s L1")[bits & 3]
