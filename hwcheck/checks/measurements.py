"""Measured values of a snapshot, with their conditions, as the report lists them."""

from __future__ import annotations

from hwcheck.facts import NAMES, Snapshot
from hwcheck.findings import Measurement

VALUES = ("result.busbw", "result.bandwidth", "result.line_rate", "result.latency")
"""Fact names of measured values; each in its own unit."""


def measurements(snapshot: Snapshot) -> list[Measurement]:
    """
    List what was measured, in order of test names.

    A test that gave no figure is not listed: its finding says why.
    """
    found: list[Measurement] = []
    for subject in snapshot.subjects("measurement"):
        conditions = snapshot.value("result.conditions", subject) or {}
        for name in VALUES:
            value = snapshot.value(name, subject)
            if value is not None:
                test = subject.id.partition("@")[0]
                found.append(Measurement(test, subject.id, float(value), NAMES[name].unit, dict(conditions)))
    return found
