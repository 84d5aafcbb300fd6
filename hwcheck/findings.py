"""What hwcheck says: findings, remedies, incidents, measurements, and the verdict over them."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from hwcheck.facts import Missing, Origin, Subject


class Status(enum.StrEnum):
    """
    The answer of one check for one subject.

    Unknown: something was asked and could not be told. Skip: not applicable here, or never asked.
    """

    PASS = "pass"  # noqa: S105 - the answer that all is well, no password
    WARN = "warn"
    FAIL = "fail"
    UNKNOWN = "unknown"
    SKIP = "skip"


class Urgency(enum.StrEnum):
    """When to act on a finding."""

    NOW = "now"
    JOB_END = "job-end"
    MAINTENANCE = "maintenance"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Write:
    """
    A value that makes a finding go away: one key of one mechanism (:mod:`hwcheck.mechanisms`).

    Attributes:
        mechanism: name of the way the value lives on a node.
        key: what is set; ``{subject}`` stands for the id of the finding's subject.
        value: wanted, as text.
        opt_in: written only where the site or the command line asks for it.
        restart: unit that has to be restarted before it takes effect; "" for none.
        irreversible: cannot be undone.
        indirect: the check judges another thing than the key (a register, not the kernel's policy over it), or in other
            words, so what the check saw is no value of the key.
        subject: what the key belongs to where that is not the finding's subject (a bridge that a check of the node
            names); "" otherwise.
        refused_by: fact of the node that says why it lets nobody write this; "" when there is none.
        keeps: it only keeps for the next boot what runs now; another check's wish for the key comes first.
    """

    mechanism: str
    key: str
    value: str
    opt_in: bool = False
    restart: str = ""
    irreversible: bool = False
    indirect: bool = False
    subject: str = ""
    refused_by: str = ""
    keeps: bool = False


@dataclass(frozen=True, slots=True)
class Act:
    """
    Something that is done rather than set.

    Attributes:
        do: ``restart``, ``start``, ``reload_units``, ``reload_driver``, ``reset_gpu`` or ``reboot``.
        target: unit, module or GPU (``{subject}``); "" for the node, or for all GPUs.
        opt_in: done only where the site or the command line asks for it.
    """

    do: str
    target: str = ""
    opt_in: bool = False


@dataclass(frozen=True, slots=True)
class Remedy:
    """
    What makes a finding go away.

    Two remedies that read alike are equal, whatever they write: reports fold what says the same of eight GPUs.

    Attributes:
        kind: ``write`` (a setting), ``act`` (restart, reload, reset, reboot) or ``hands`` (reseat, cable, RMA).
        text: what to do, one or two sentences.
        role: name of the Ansible role that does it; "" while there is none.
        disturbs: what is disturbed by it: ``nothing``, ``gpu``, ``board``, ``network``, ``node``.
        writes: values that do it.
        acts: deeds that do it, after the writes.
        by_hand: why hwcheck neither writes nor acts though the kind says so; "" where it does.
        worked_out: in words, what the check writes where that depends on the values; "" where ``writes`` say it.
    """

    kind: str
    text: str
    role: str = ""
    disturbs: str = ""
    writes: tuple[Write, ...] = field(default=(), compare=False)
    acts: tuple[Act, ...] = field(default=(), compare=False)
    by_hand: str = field(default="", compare=False)
    worked_out: str = field(default="", compare=False)


@dataclass(slots=True)
class Finding:
    """
    The answer of one check for one subject, with what decided it and what to do about it.

    Attributes:
        check: check id, ``<family>.<name>``.
        subject: what it is about.
        status: the answer.
        message: one sentence.
        urgency: when to act; None for pass and skip.
        observed, expected: JSON values; None when there is nothing to show.
        origin: the evidence line that decided.
        remedy: what to do about it; None for pass and skip.
        gap: why a value could not be told, where that is all the finding says; None otherwise.
        waived: the waiver that accepts it, as owner, reason and expiry; None otherwise.
        seen: of a setting, its value by facet, ``running`` and ``next boot``; None otherwise.
    """

    check: str
    subject: Subject
    status: Status
    message: str
    urgency: Urgency | None = None
    observed: Any = None
    expected: Any = None
    origin: Origin | None = None
    remedy: Remedy | None = None
    gap: Missing | None = None
    waived: dict[str, str] | None = None
    seen: dict[str, Any] | None = None

    @property
    def family(self) -> str:
        """The part of the check id before the first dot."""
        return self.check.partition(".")[0]

    @property
    def counts(self) -> bool:
        """Whether it counts for the verdict: a waived finding is shown and does not."""
        return self.waived is None


@dataclass(frozen=True, slots=True)
class Incident:
    """Findings that belong together: indices into the list of findings, the lead first, and why."""

    lead: int
    follows: tuple[int, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Measurement:
    """A measured value: what, of which subject, how much, and under which conditions."""

    name: str
    subject: str
    value: float
    unit: str
    conditions: dict[str, Any]


@dataclass(slots=True)
class NodeVerdict:
    """
    Everything said about one node.

    Attributes:
        node: its name, "" when unknown.
        platform: name of the platform profile that judged it.
        confidence: how the platform was recognised: ``pci-id``, ``name``, ``hint``, ``none``.
        coverage: number of findings per status.
        simulated: from a lab node.
        about: what the node is (:func:`hwcheck.describe.describe`); empty when it was not reached.
    """

    node: str
    platform: str
    confidence: str
    findings: list[Finding]
    incidents: list[Incident] = field(default_factory=list)
    measurements: list[Measurement] = field(default_factory=list)
    simulated: bool = False
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def coverage(self) -> dict[str, int]:
        """Count findings per status."""
        counts = dict.fromkeys((str(status) for status in Status), 0)
        for finding in self.findings:
            counts[finding.status] += 1
        return counts

    @property
    def verdict(self) -> str:
        """Sum up this node."""
        return verdict_of(self.findings)


def verdict_of(findings: Iterable[Finding]) -> str:
    """Return ``fail`` with at least one fail, else ``unknown`` with at least one unknown, else ``pass``."""
    statuses = {finding.status for finding in findings if finding.counts}
    if Status.FAIL in statuses:
        return "fail"
    return "unknown" if Status.UNKNOWN in statuses else "pass"
