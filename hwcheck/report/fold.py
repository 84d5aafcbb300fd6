"""
Findings folded for reading: the same answer on eight GPUs is one entry; a source that was silent is one gap.

Pure; the order of the findings is kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from hwcheck.checks.coverage import COMPLETE
from hwcheck.facts import Reason, Subject
from hwcheck.findings import Finding, Remedy, Status, Urgency
from hwcheck.parse import FORMATS

_KINDS = {
    "gpu": ("GPU", "GPUs"), "port": ("port", "ports"), "nic": ("NIC", "NICs"), "netdev": ("interface", "interfaces"),
    "switch": ("NVSwitch", "NVSwitches"), "numa": ("NUMA node", "NUMA nodes"), "pci": ("PCI device", "PCI devices"),
    "measurement": ("", "measurements"), "clock": ("clock", "clocks"), "unit": ("", "units"),
    "component": ("", "components"), "disk": ("disk", "disks"), "mount": ("mount", "mounts"),
}  # fmt: skip
_SUBJECTS = 8
_WORDS = {"timeout": "timed out", "denied": "was denied", "unparsable": "was not understood", "failed": "gave an error"}
_URGENCIES = (Urgency.NOW, Urgency.JOB_END, Urgency.MAINTENANCE, Urgency.NOTE, None)


@dataclass(slots=True)
class Seen:
    """One message, the first finding that says it, and all subjects it is said of."""

    message: str
    first: Finding
    subjects: list[Subject]


@dataclass(slots=True)
class Entry:
    """
    Findings of one check that call for one thing to do.

    Attributes:
        check, urgency, remedy: what they share.
        seen: message → who says it.
    """

    check: str
    urgency: Urgency | None
    remedy: Remedy | None
    seen: dict[str, Seen] = field(default_factory=dict)

    @property
    def status(self) -> Status:
        """Status of the findings."""
        return next(iter(self.seen.values())).first.status

    @property
    def subjects(self) -> list[Subject]:
        """All subjects, in the order of the messages."""
        return [subject for seen in self.seen.values() for subject in seen.subjects]


@dataclass(slots=True)
class Gap:
    """
    What a source did not tell.

    Attributes:
        source: name of the source, as a person calls it.
        how: how it ended: ``timed out``.
        detail: the tool's own words; "" when there are none.
        first: a finding with its evidence.
        checks: check id → number of subjects that could not be judged.
    """

    source: str
    how: str
    detail: str
    first: Finding
    checks: dict[str, int] = field(default_factory=dict)


def fold(findings: Iterable[Finding]) -> list[Entry]:
    """Fold findings, the most urgent entries first."""
    entries: dict[tuple[Any, ...], Entry] = {}
    for finding in findings:
        key = (finding.check, finding.status, finding.urgency, finding.remedy)
        entry = entries.setdefault(key, Entry(finding.check, finding.urgency, finding.remedy))
        entry.seen.setdefault(finding.message, Seen(finding.message, finding, [])).subjects.append(finding.subject)
    return sorted(entries.values(), key=lambda entry: _URGENCIES.index(entry.urgency))


def fold_gaps(findings: Iterable[Finding]) -> tuple[list[Gap], list[Finding]]:
    """
    Gather what could not be told by its source and reason.

    Returns:
        the gaps, and the findings that say in their own words what is missing (a measurement without its yardstick).
    """
    gaps: dict[tuple[str, str], Gap] = {}
    own: list[Finding] = []
    for finding in findings:
        if finding.gap is None:
            own.append(finding)
            continue
        how, detail = str(finding.gap.reason), finding.gap.detail
        source = finding.origin.source if finding.origin else ""
        title = FORMATS[source].title if source in FORMATS else source or "a source"
        gap = gaps.setdefault((title, how + detail), Gap(title, _WORDS.get(how, how), detail, finding))
        if finding.check != COMPLETE:
            gap.checks[finding.check] = gap.checks.get(finding.check, 0) + 1
    return list(gaps.values()), own


def name_subjects(subjects: Iterable[Subject]) -> str:
    """Say ``GPU 0000:18:00.0``, or ``8 GPUs: 0000:18:00.0, ...``; "" for the node itself."""
    parts: list[str] = []
    of_kind: dict[str, list[str]] = {}
    for subject in subjects:
        if subject.id:
            of_kind.setdefault(subject.kind, []).append(subject.id)
    for kind, ids in of_kind.items():
        distinct = list(dict.fromkeys(ids))
        one, many = _KINDS.get(kind, (kind, f"{kind}s"))
        if len(distinct) == 1:
            parts.append(distinct[0] if distinct[0].startswith(one) else f"{one} {distinct[0]}")
            continue
        more = f" and {len(distinct) - _SUBJECTS} more" if len(distinct) > _SUBJECTS else ""
        parts.append(f"{len(distinct)} {many}: {', '.join(distinct[:_SUBJECTS])}{more}")
    return "; ".join(parts)


def say(value: Any) -> str:
    """Print an observed or expected value for a person."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    return ", ".join(map(say, value)) if isinstance(value, (list, tuple)) else str(value)


def new_values(finding: Finding) -> dict[str, str]:
    """Return what was observed and expected where the message does not say it; a record stays for the JSON report."""
    values = {"observed": finding.observed, "expected": finding.expected}
    if any(value is None or isinstance(value, dict) for value in values.values()):
        return {}
    return {
        name: text
        for name, text in ((name, say(value)) for name, value in values.items())
        if text not in finding.message
    }


def why_skipped(finding: Finding) -> str:
    """Say why a finding was skipped: nobody asked, the device has no such thing, or the check does not apply."""
    if finding.gap is None:
        return "not applicable"
    return "not collected" if finding.gap.reason is Reason.NOT_COLLECTED else "not reported by the device"
