"""
How a printed value or a raw NVML answer of a GPU becomes a fact's value, or the reason why it is none.

Readers raise ValueError for what they do not understand. Sources: texts of ``nvidia-smi`` 510 to 590; nvml.h (units
and enums of answers).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hwcheck.facts import Missing, Reason, quantity

_ABSENT = {
    "", "n/a", "[n/a]", "[not supported]", "not supported", "[not found]",
    "requested functionality has been deprecated", "[requested functionality has been deprecated]",
}  # fmt: skip
_DENIED = ("insufficient permission", "access denied", "no permission")
_FAILED = ("requires reset", "unknown error", "err!", "gpu is lost", "is lost", "failed to", "uncorrectable ecc")


def gap(text: str) -> Missing | None:
    """Return why a printed value is none: ``[N/A]``, ``Insufficient Permissions``, ``[GPU requires reset]``."""
    low = text.strip().lower()
    if low in _ABSENT:
        return Missing(Reason.ABSENT, text.strip(" []") or "empty")
    if any(word in low for word in _DENIED):
        return Missing(Reason.DENIED, text.strip()[:60])
    if any(word in low for word in _FAILED):
        return Missing(Reason.FAILED, text.strip("[] ")[:60])
    return None


_FLAGS = {
    "enabled": True, "disabled": False, "yes": True, "no": False, "active": True, "not active": False, "on": True,
    "off": False, "true": True, "false": False,
}  # fmt: skip


def flag(text: str) -> bool:
    """Read a yes or no, in the words that the tools have for it."""
    try:
        return _FLAGS[text.strip().lower()]
    except KeyError:
        raise ValueError(f"neither yes nor no: {text[:40]!r}") from None


def plain_text(text: str) -> str:
    """Take a short printable text as it is."""
    if len(text) > 120 or not text.isprintable():
        raise ValueError(f"not a plain text: {text[:40]!r}")
    return text.strip()


def whole(suffix: str = "") -> Callable[[str], int]:
    """Read a count; with a suffix ("bank(s)", "x") it must be there, else the text is cut off (CSV drops units)."""

    def read(text: str) -> int:
        bare = text.strip()
        if suffix and bare.endswith(suffix):
            bare = bare[: -len(suffix)].strip()
        value = quantity(bare, "")
        if not isinstance(value, int) or value < 0 or not bare.replace(",", "").isdigit():
            raise ValueError(f"no count: {text[:40]!r}")
        return value

    return read


def in_unit(unit: str) -> Callable[[str], int | float]:
    """Read a quantity, in a unit of the registry."""

    def read(text: str) -> int | float:
        return quantity(text, unit)

    return read


def whole_in(unit: str) -> Callable[[str], int]:
    """Read a quantity as whole units."""

    def read(text: str) -> int:
        value = quantity(text, unit)
        return int(value)

    return read


def pci_id(text: str) -> str:
    """Turn NVML's ``0x233510DE`` (device in the upper half) into lspci's ``10de:2335``."""
    value = int(text.strip().removeprefix("0x"), 16)
    if not 0 < value < 1 << 32:
        raise ValueError(f"no PCI id: {text[:20]!r}")
    return f"{value & 0xFFFF:04x}:{value >> 16:04x}"


def mib(value: int) -> int:
    """Turn NVML's bytes into MiB."""
    return int(value) >> 20


def watts(value: int) -> float:
    """Turn NVML's milliwatts into watts."""
    return int(value) / 1000


def said(text: str) -> Any:
    """Take an empty answer as absent."""
    return text or Missing(Reason.ABSENT, "empty")


def named(*names: str) -> Callable[[int], Any]:
    """Name an enum value; ``N/A`` is the one for "there is none"."""

    def read(value: int) -> Any:
        if not 0 <= value < len(names):
            raise ValueError(f"unknown enum value {value}")
        return names[value] if names[value] != "N/A" else Missing(Reason.ABSENT, "N/A")

    return read


def bits(shift: int, width: int, *names: str) -> Callable[[int], str]:
    """Read a field of the fabric health mask; 0 is "not supported" in every field."""

    def read(mask: int) -> Any:
        value = mask >> shift & (1 << width) - 1
        if value == 0:
            return Missing(Reason.ABSENT, "N/A")
        if value > len(names):
            raise ValueError(f"unknown value {value} in health mask")
        return names[value - 1]

    return read


def health_flag(shift: int) -> Callable[[int], Any]:
    """Read two bits of the fabric health mask: 0 not supported, 1 yes, 2 no."""

    def read(mask: int) -> Any:
        value = mask >> shift & 3
        return Missing(Reason.ABSENT, "N/A") if value == 0 else value == 1

    return read
