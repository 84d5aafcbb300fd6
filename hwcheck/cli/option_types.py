"""What options take: numbers within limits, and names that are not empty."""

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
