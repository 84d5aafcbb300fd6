"""
The one registry of fact names.

A name is declared once, with the kind of subject it belongs to, its type and its unit; a fact under an undeclared name
cannot be made. Declarations stand in :mod:`hwcheck.facts.names`, one file per area.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hwcheck.facts.subjects import KINDS


@dataclass(frozen=True, slots=True)
class FactName:
    """
    A declared name: what its facts are about, and in which type and unit they come.

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


def declare(scope: str, rows: str, /) -> None:
    """
    Declare fact names.

    Args:
        scope: kind of subject.
        rows: one name a line: ``name | type | unit | text``.

    Raises:
        ValueError: a name twice, an incomplete row, or an unknown scope.
        KeyError: an unknown type.
    """
    if scope not in KINDS:
        raise ValueError(f"no such kind of subject: {scope}")
    types = {"bool": bool, "int": int, "float": float, "str": str, "tuple": tuple, "dict": dict}
    for row in filter(str.strip, rows.splitlines()):
        parts = [part.strip() for part in row.split("|", 3)]
        if len(parts) != 4:
            raise ValueError(f"incomplete row: {row!r}")
        name, type_name, unit, text = parts
        if name in NAMES:
            raise ValueError(f"fact name declared twice: {name}")
        NAMES[name] = FactName(name, scope, types[type_name], unit, text)


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
