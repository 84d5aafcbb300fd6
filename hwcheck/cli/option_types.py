"""What options take: numbers within limits, ages, and names that are not empty."""

from __future__ import annotations

import argparse
from typing import Any


class Named(argparse.Action):
    """Keeps which nodes are meant; an empty text (a variable that is not set) must not mean this machine."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        """Store one value, or add it where the default is a list."""
        if not values:
            parser.error(f"argument {option}: is empty")
        before = getattr(namespace, self.dest)
        setattr(namespace, self.dest, [*before, values] if isinstance(before, list) else values)


def seconds(text: str) -> float:
    """Read a time limit."""
    value = float(text)
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError("not a number of seconds")
    return value


def days(text: str) -> int:
    """Read a number of days: ``90d``."""
    value = int(text.removesuffix("d"))
    if not 1 <= value <= 3650:
        raise argparse.ArgumentTypeError("from 1d to 3650d")
    return value


def count(text: str) -> int:
    """Read how many at once."""
    value = int(text)
    if not 0 < value <= 1024:
        raise argparse.ArgumentTypeError("from 1 to 1024")
    return value


def age(text: str) -> float:
    """Read an age, ``90d``, ``12h`` or ``30m``; returns seconds."""
    units = {"d": 86400.0, "h": 3600.0, "m": 60.0}
    if text[-1:] not in units or not text[:-1].isdecimal() or len(text) > 8:
        raise argparse.ArgumentTypeError("an age is a number with a unit: 90d, 12h or 30m")
    return int(text[:-1]) * units[text[-1]]
