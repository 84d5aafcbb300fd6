"""What a test sees of a node: findings of one check, and results of one measurement; true where they are right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hwcheck.findings import Finding, Measurement, Status

_WORST = (Status.FAIL, Status.UNKNOWN, Status.WARN, Status.PASS, Status.SKIP)


@dataclass(frozen=True, slots=True)
class FindingView:
    """
    The findings of one check; true when none of them fails or could not be told.

    Attributes:
        check: its id.
        findings: one for each subject; those that are waived count as right.
    """

    check: str
    findings: tuple[Finding, ...]

    @property
    def status(self) -> Status:
        """The worst status of what counts; skip when there is none."""
        statuses = {finding.status for finding in self.findings if finding.counts}
        return next((status for status in _WORST if status in statuses), Status.SKIP)

    def __bool__(self) -> bool:
        """Tell whether all is right; a warning is, as for the exit code."""
        return self.status not in (Status.FAIL, Status.UNKNOWN)

    def __repr__(self) -> str:
        """Say what is wrong, for the assertion that failed."""
        told = [f"{one.subject.id}: {one.message}".removeprefix(": ") for one in self.findings if one.status in _BAD]
        return f"<{self.check} {self.status}{': ' if told else ''}{'; '.join(told[:8])}>"


_BAD = (Status.FAIL, Status.UNKNOWN, Status.WARN)


@dataclass(frozen=True, slots=True)
class BaselineView(FindingView):
    """
    The results of one measurement and what was said of them; true as for findings.

    Attributes:
        values: GPU, pair, NUMA node, ... → result in ``unit``.
        unit: of all values.
    """

    values: Mapping[str, float]
    unit: str

    @property
    def min(self) -> float:
        """The lowest value."""
        return min(self.values.values())

    @property
    def max(self) -> float:
        """The highest value."""
        return max(self.values.values())


def baseline_of(name: str, measurements: Sequence[Measurement], findings: Sequence[Finding]) -> BaselineView | None:
    """
    Return the results of a measurement; None when it was not taken.

    Args:
        name: of the test, ``hbm.copy``, or with its tool, ``nvbandwidth.host_to_device_memcpy_ce``.
        measurements: of one node.
        findings: of the same node.
    """
    mine = [one for one in measurements if one.name in (name, f"hwcheck.{name}")]
    if not mine:
        return None
    subjects = {one.subject for one in mine}
    about = tuple(one for one in findings if one.family == "baseline" and one.subject.id in subjects)
    values = {one.subject.partition("@")[2] or one.subject: one.value for one in mine}
    return BaselineView(f"baseline {name}", about, values, mine[0].unit)
