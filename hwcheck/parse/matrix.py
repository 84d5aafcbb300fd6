"""What the measuring tools share: names of measurements, and figures of a matrix. Declares no format."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from hwcheck.evidence import Output
from hwcheck.facts import NODE, Subject, real
from hwcheck.parse.sink import FactSink

NO_FIGURE = ("N/A", "-", "NA")
NOT_INITIALIZED = "system not yet initialized"
GPUS_MAX = 64
"""Largest matrix taken for one node's: no machine has more GPUs under one kernel."""


_HEAD = 5
"""Lines in front that are no other result: a rule, a prompt, a blank."""


class Namer:
    """
    Gives each measurement of one output its subject.

    The first result of a test is ``<name>`` where its text begins the file, so that it keeps its name from run to run;
    any other carries its line, so that two results of one paste never overwrite each other.
    """

    def __init__(self, output: Output) -> None:
        self._plain = output.first_line <= _HEAD
        self._used: set[str] = set()

    def subject(self, name: str, line: int) -> Subject:
        """Return the subject of the result that begins at this line of the file."""
        plain = self._plain and name not in self._used
        self._used.add(name)
        return Subject("measurement", name if plain else f"{name}@{line}")


def cells(tokens: Sequence[str]) -> list[float | None]:
    """
    Read one row of figures; None for N/A.

    Raises:
        ValueError: a cell is neither.
    """
    return [None if token in NO_FIGURE else real(token) for token in tokens]


def spread(rows: Sequence[Sequence[float | None]], *, diagonal: bool | None = None) -> dict[str, Any]:
    """
    Sum up a matrix: what the slowest, middle and fastest cell are, and which is the slowest.

    Args:
        rows: cells.
        diagonal: True only the diagonal, False all but it, None all cells.

    Returns:
        ``samples``, ``min``, ``median``, ``max``, ``worst`` ([row, column]), ``statistic``; {} without a figure.
    """
    found = [
        (value, [i, j])
        for i, row in enumerate(rows)
        for j, value in enumerate(row)
        if value is not None and (diagonal is None or (i == j) is diagonal)
    ]
    if not found:
        return {}
    values = [value for value, _ in found]
    low, worst = min(found, key=lambda item: item[0])
    middle = round(statistics.median(values), 3)
    return {
        "statistic": "min",
        "samples": len(values),
        "min": low,
        "median": middle,
        "max": max(values),
        "worst": worst,
    }


def note_names(facts: FactSink, names: Sequence[str], line: int) -> None:
    """Record the GPU product names a tool prints, each once."""
    once = tuple(dict.fromkeys(name.strip() for name in names if name.strip()))
    if once:
        facts.put(NODE, "platform.gpu_names", once, line)
