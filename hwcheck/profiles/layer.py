"""What a profile is made of: layers as loaded, merged entries, and the profile they make."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hwcheck.profiles.yaml_lines import Lines


@dataclass(frozen=True, slots=True)
class Layer:
    """
    One YAML file.

    Attributes:
        name: ``base``, ``hgx-h200``, or a site file's own.
        path: where it was read, for messages.
        data: as loaded.
        lines: path of keys → line.
    """

    name: str
    path: str
    data: dict[str, Any]
    lines: Lines = field(repr=False)


@dataclass(frozen=True, slots=True)
class Entry:
    """A merged entry of ``checks`` or ``bounds``, and for each of its keys the layer that set it."""

    id: str
    data: dict[str, Any]
    layers: dict[str, str]


@dataclass(frozen=True, slots=True)
class Profile:
    """
    Merged layers.

    Attributes:
        name: the most specific layer.
        title: what a person calls the platform.
        layers: names, base first.
        checks: check id → entry.
        bounds: bound id → entry; ``value`` is what :meth:`Given.bound` returns.
        hash: of the merged content; part of every record of a run.
        opt_in: check ids and families whose opt-in writes and acts the layers ask for.
        requires: what must have been read before a node is certified or ready, in words → kinds of output, of which one
            is enough.
    """

    name: str
    title: str
    layers: tuple[str, ...]
    checks: dict[str, Entry]
    bounds: dict[str, Entry]
    hash: str
    opt_in: frozenset[str] = frozenset()
    requires: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def bound_values(self) -> dict[str, Any]:
        """Bound id → value."""
        return {id: entry.data["value"] for id, entry in self.bounds.items()}
