"""
Parsers: text of a known format → facts. Pure: no I/O, no clock, no environment.

One file per tool or kernel file. Each declares its :class:`Format` with :func:`fmt`, which says how the format is
recognised and which fact names it can give, and the function that reads it. Importing this package imports them all.
"""

from __future__ import annotations

import importlib
import pkgutil

from hwcheck.parse.format import FORMATS, Format, fmt
from hwcheck.parse.sink import FactSink
from hwcheck.parse.snapshot import take_snapshot, take_snapshots

__all__ = ["FORMATS", "FactSink", "Format", "fmt", "take_snapshot", "take_snapshots"]

_NOT_PARSERS = {"fill", "format", "sink", "snapshot"}
for _module in pkgutil.iter_modules(__path__):
    if _module.name not in _NOT_PARSERS:
        importlib.import_module(f"{__name__}.{_module.name}")
