"""What the profiles want, platform by platform: value, layer that sets it, confidence, and numbered sources."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hwcheck.facts import NAMES
from hwcheck.profiles import Entry, ProfileSet
from hwcheck.profiles.expectation import Expectation
from hwcheck.profiles.identify import GENERIC
from hwcheck.report.fold import say
from hwcheck.report.page import Block, Table

CONFIDENCE = (
    "Confidence: A read from a real machine or from NVIDIA's own source or data file; B published by a vendor or "
    "cloud, or measured once by a named source; C derived from such figures, or one indirect mention."
)


class Sources:
    """Sources by number, in the order they are first cited."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def cite(self, source: str) -> str:
        """Return ``[2]``."""
        return f"[{self._numbers.setdefault(source, len(self._numbers) + 1)}]"

    def listed(self) -> list[Block]:
        """List them as paragraphs."""
        return [f"[{number}] {' '.join(source.split())}" for source, number in self._numbers.items()]


def platform_names(profiles: ProfileSet) -> list[str]:
    """Return all platforms, the generic one first."""
    return [GENERIC, *(name for name in profiles.platforms if name != GENERIC)]


def entries_of(profiles: ProfileSet, section: str, id: str) -> dict[str, Entry]:
    """
    Find an entry on every platform.

    Args:
        profiles: all layers.
        section: ``checks`` or ``bounds``.
        id: check or bound.

    Returns:
        platform → merged entry, without the platforms that have none.
    """
    found = {}
    for name in platform_names(profiles):
        profile = profiles.profile(name)
        entry = (profile.checks if section == "checks" else profile.bounds).get(id)
        if entry is not None:
            found[name] = entry
    return found


def wanted_table(entries: dict[str, Entry], sources: Sources) -> Table:
    """Put the entries of one id into a table; platforms with one value and one origin share a row."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for platform, entry in entries.items():
        key = (wanted(entry), set_by(entry), entry.data.get("confidence", ""), sources.cite(entry.data["source"]))
        rows.setdefault(key, []).append(platform)
    total = len(entries)
    return Table(
        ("wanted", "set in", "conf.", "source", "platforms"),
        [(*key, _platforms(names, total)) for key, names in rows.items()],
    )


def _platforms(names: list[str], total: int) -> str:
    if len(names) == total:
        return "all"
    return "others" if GENERIC in names and len(names) > 1 else ", ".join(names)


def wanted(entry: Entry) -> str:
    """Say the wanted value of a check, or the value of a bound, with its unit."""
    data = entry.data
    if "value" in data:
        return f"{say(data['value'])} {data.get('unit', '')}".rstrip()
    unit = NAMES[data["fact"]].unit if data.get("fact") in NAMES else ""
    parts = []
    if data.get("expect"):
        parts.append(_with_unit(data["expect"], unit))
    if data.get("prefer"):
        parts.append(f"better {_with_unit(data['prefer'], unit)}")
    return ", ".join(parts) or "no figure"


def _with_unit(expectation: dict[str, Any], unit: str) -> str:
    return f"{Expectation.of(expectation)} {unit}".rstrip()


def set_by(entry: Entry) -> str:
    """Return the layer that set the value."""
    for key in ("value", "expect", "prefer", "fact"):
        if key in entry.layers:
            return entry.layers[key]
    return next(iter(entry.layers.values()), "")


def conditions(items: Iterable[dict[str, Any]]) -> list[str]:
    """Say ``gpu.driver_model is like .+`` for each condition of an entry."""
    said = []
    for item in items:
        key = "fact" if "fact" in item else "bound"
        expectation = Expectation.of({name: value for name, value in item.items() if name != key})
        said.append(f"{item[key]} is {expectation}")
    return said
