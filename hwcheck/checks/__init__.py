"""
Checks: what must hold of a node, and why.

Simple expectations (a fact equals, is at least, is one of) stand in the profiles' YAML. What relates several facts is a
:func:`relation` here, one decorated function each, one file per area. Importing this package imports them all.

A check body sees present values only; skip and unknown for missing ones are the engine's (:mod:`hwcheck.engine`).
"""

from __future__ import annotations

import importlib
import pkgutil

from hwcheck.checks.relation import (
    RELATIONS,
    Answer,
    Every,
    Given,
    Relation,
    Some,
    fail,
    ok,
    relation,
    skip,
    unknown,
    warn,
)

__all__ = [
    "COMPARED", "RELATIONS", "Answer", "Every", "Given", "Relation", "Some", "fail", "ok", "relation", "skip",
    "unknown", "warn",
]  # fmt: skip

for _module in pkgutil.iter_modules(__path__):
    if _module.name != "relation":
        importlib.import_module(f"{__name__}.{_module.name}")

COMPARED = frozenset(name for one in RELATIONS.values() for name in one.compares)
"""Facts of a reading that are worth keeping for the next."""
