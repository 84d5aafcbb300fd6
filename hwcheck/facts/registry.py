"""
The one registry of fact names.

A name is declared once, with the kind of subject it belongs to, its type and its unit; a fact under an undeclared name
cannot be made. Declarations stand in :mod:`hwcheck.facts.names`, one file per area.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class FactName:
    """
    Attributes:
        name: dotted, lower case: ``gpu.memory.total``.
        scope: kind of subject, see :data:`hwcheck.facts.subjects.KINDS`.
        type: ``bool``, ``int``, ``float``, ``str``, or ``tuple`` / ``dict`` for a record described in ``text``.
        unit: "" for a bare number or text; else as in :mod:`hwcheck.facts.units`.
        text: one line: what it is, and where it comes from.
    """

    name: str
    scope: str
    type: type
    unit: str
    text: str


NAMES: dict[str, FactName] = {}


def declare(scope: str, rows: str | None = None, /, **fields: Any) -> None:
    """
    Declare fact names.

    Args:
        scope: kind of subject.
        rows: one name a line: ``name | type | unit | text``.
        fields: none; keeps the signature closed to typing slips.

    Raises:
        ValueError: a name twice, an unknown type, or an incomplete row.
    """
    if fields:
        raise ValueError(f"unknown fields: {sorted(fields)}")
    types = {"bool": bool, "int": int, "float": float, "str": str, "tuple": tuple, "dict": dict}
    for row in filter(str.strip, (rows or "").splitlines()):
        parts = [part.strip() for part in row.split("|", 3)]
        if len(parts) != 4:  # noqa: PLR2004 - the four columns above
            raise ValueError(f"incomplete row: {row!r}")
        name, type_name, unit, text = parts
        if name in NAMES:
            raise ValueError(f"fact name declared twice: {name}")
        NAMES[name] = FactName(name, scope, types[type_name], unit, text)


def unit_of(name: str) -> str:
    """Return the unit of a declared name."""
    return NAMES[name].unit


def show(name: str, value: Any) -> str:
    """Print a value of this name with its unit, for a person."""
    unit = NAMES[name].unit if name in NAMES else ""
    if isinstance(value, bool):
        text = "yes" if value else "no"
    elif isinstance(value, float):
        text = f"{value:.6g}"
    else:
        text = str(value)
    return f"{text} {unit}".rstrip()
