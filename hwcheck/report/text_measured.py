"""What was measured, as lines of the text report: one for each test, however many parts it was had on."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from hwcheck.findings import Measurement
from hwcheck.report.sheet import Sheet, visible

_FEW = 24
"""Tests that are told; the JSON and the HTML report have all."""


def write_measured(sheet: Sheet, measurements: Sequence[Measurement]) -> None:
    """Write each test with its value, or with the lowest, the middle and the highest of several."""
    if not measurements:
        return
    tests: dict[tuple[str, str], list[Measurement]] = {}
    for item in measurements:
        tests.setdefault((item.name, item.unit), []).append(item)
    sheet.heading("Measured")
    sheet.columns(("", ""), [_row(some) for some in list(tests.values())[:_FEW]], 2)
    if len(tests) > _FEW:
        sheet.text(f"and {len(tests) - _FEW} more tests", indent=2)


def _row(some: Sequence[Measurement]) -> tuple[str, str]:
    unit, values = visible(some[0].unit), [item.value for item in some]
    if len(some) == 1:
        return visible(some[0].subject), f"{values[0]:.6g} {unit}"
    middle = statistics.median(values)
    told = f"{min(values):.5g} to {max(values):.5g} {unit}, median {middle:.5g}, of {len(values)}"
    return visible(some[0].name), told
