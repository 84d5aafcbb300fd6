"""
Quantities: a number and a unit, never a number alone.

Facts hold plain numbers; the registry says in which unit. Parsers convert at once, with :func:`quantity`, so that
GB/s (10**9 bytes), Gb/s (10**9 bits) and GiB/s (2**30 bytes) never meet.
"""

from __future__ import annotations

import re

_FACTORS: dict[str, tuple[str, float]] = {
    # spelled by tools: (dimension, factor to the dimension's base)
    "B": ("bytes", 1),
    "kB": ("bytes", 1000),
    "KiB": ("bytes", 1024),
    "MB": ("bytes", 1e6),
    "MiB": ("bytes", 2**20),
    "GB": ("bytes", 1e9),
    "GiB": ("bytes", 2**30),
    "MHz": ("hertz", 1e6),
    "kHz": ("hertz", 1e3),
    "Hz": ("hertz", 1),
    "GHz": ("hertz", 1e9),
    "W": ("watts", 1),
    "mW": ("watts", 1e-3),
    "C": ("celsius", 1),
    "%": ("percent", 1),
    "ns": ("seconds", 1e-9),
    "us": ("seconds", 1e-6),
    "ms": ("seconds", 1e-3),
    "s": ("seconds", 1),
    "seconds": ("seconds", 1),
    "min": ("seconds", 60),
    "h": ("seconds", 3600),
    "GB/s": ("bytes/s", 1e9),
    "GiB/s": ("bytes/s", 2**30),
    "MB/s": ("bytes/s", 1e6),
    "TB/s": ("bytes/s", 1e12),
    "Gb/s": ("bits/s", 1e9),
    "Mb/s": ("bits/s", 1e6),
    "GT/s": ("transfers/s", 1e9),
    "bit": ("bits", 1),
    "ppm": ("ppm", 1),
    "ppb": ("ppm", 1e-3),
    "": ("", 1),
}

_QUANTITY = re.compile(r"^([+-]?[0-9][0-9,]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z%/]*)")
_WHOLE = re.compile(r"-?[0-9]{1,20}")


def convert(number: float, unit: str, to: str) -> float:
    """
    Convert between two units of one dimension.

    Raises:
        ValueError: an unknown unit, two different dimensions (GB/s is no Gb/s), or a result that is not finite.
    """
    if unit == to:
        return number
    if unit not in _FACTORS or to not in _FACTORS:
        raise ValueError(f"unknown unit: {unit if unit not in _FACTORS else to}")
    (dimension, factor), (wanted, wanted_factor) = _FACTORS[unit], _FACTORS[to]
    if dimension != wanted:
        raise ValueError(f"{unit} is {dimension}, {to} is {wanted}")
    result = number * factor / wanted_factor
    if result in (float("inf"), float("-inf")):
        raise ValueError(f"too large: {number:g} {unit}")
    return int(result) if result == int(result) and abs(result) < 2**53 and isinstance(number, int) else result


def number(text: str) -> int | float:
    """
    Read a bare number; an integer stays one.

    Raises:
        ValueError: not a finite number, or one with more than 30 digits (no counter of any tool has as many).
    """
    text = text.strip().replace(",", "")
    if len(text) > 30:
        raise ValueError(f"number too long: {text[:20]}...")
    if "_" in text or not text.isascii():
        raise ValueError(f"not a number as tools print it: {text!r}")  # Python itself would take 1_000
    try:
        return int(text)
    except ValueError:
        result = float(text)
        if result != result or result in (float("inf"), float("-inf")):  # noqa: PLR0124 - the NaN test
            raise ValueError(f"not a finite number: {text}") from None
        return result


def whole(text: str) -> int:
    """
    Read a whole number of at most 20 digits, which may be negative.

    Raises:
        ValueError: anything else.
    """
    if not _WHOLE.fullmatch(text.strip()):
        raise ValueError(f"no whole number: {text[:40]!r}")
    return int(text)


def count(text: str) -> int:
    """
    Read a count or a counter: what an unsigned number of 64 bits can hold.

    Raises:
        ValueError: anything else.
    """
    value = whole(text)
    if not 0 <= value < 1 << 64:
        raise ValueError(f"no counter: {text[:40]!r}")
    return value


def real(text: str) -> float:
    """
    Read a bare number where the fact is no whole one.

    Raises:
        ValueError: not a finite number.
    """
    return float(number(text))


def quantity(text: str, to: str) -> int | float:
    """
    Read ``700.00 W``, ``81559 MiB``, ``16x``, ``2560 bank(s)`` as a number in the unit ``to``.

    Args:
        text: as printed. A text without a unit is taken to be in ``to`` (CSV with nounits).
        to: the unit the registry declares; "" takes the number as it stands.

    Raises:
        ValueError: no number at the start, or a unit of another dimension.
    """
    match = _QUANTITY.match(text.strip())
    if match is None:
        raise ValueError(f"no quantity: {text[:40]!r}")
    value, unit = number(match[1]), match[2]
    if not to or not unit:
        return value
    return convert(value, unit, to)
