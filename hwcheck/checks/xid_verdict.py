"""The verdict on one error code, before it becomes a finding."""

from __future__ import annotations

from typing import NamedTuple

from hwcheck.findings import Remedy, Status, Urgency


class Verdict(NamedTuple):
    """
    What is said of a code.

    Attributes:
        status, urgency: as in a finding.
        text: what the message adds behind code, title and number of lines; begins with its punctuation.
        kind: of the remedy: ``act`` or ``hands``.
        remedy: what to do.
    """

    status: Status
    urgency: Urgency
    text: str
    kind: str
    remedy: str


def with_text(verdict: Verdict, more: str, disturbs: str = "gpu") -> Remedy:
    """Make the remedy of a verdict; ``more`` is what the driver itself asks for (Xid 154)."""
    node = "reboot" in verdict.remedy and "reset" not in verdict.remedy.lower()
    return Remedy(verdict.kind, f"{verdict.remedy} {more}".strip(), disturbs="node" if node else disturbs)
