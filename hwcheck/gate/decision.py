"""
Ready, not ready, or could not tell: from a verdict, the certificate, and what the last looks said. Pure.

A fail is a no; so is another machine than the certified one, and a setting that is not as it was certified. What could
not be told is no reason to drain a node the first time: it becomes a no when it repeats.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from hwcheck.certificate import in_date, verify
from hwcheck.certificate.canonical import plain
from hwcheck.errors import CertificateError
from hwcheck.findings import Finding, NodeVerdict, Status

READY, NOT_READY, UNTOLD = "ready", "not ready", "could not tell"
_CODES = {READY: 0, NOT_READY: 1, UNTOLD: 3}
_LENGTH = 240
HARDWARE = ("xid", "sxid")


@dataclass(frozen=True, slots=True)
class Answer:
    """
    What the gate says.

    Attributes:
        word: :data:`READY`, :data:`NOT_READY` or :data:`UNTOLD`.
        reason: one sentence, without the word.
    """

    word: str
    reason: str

    @property
    def code(self) -> int:
        """Exit code."""
        return _CODES[self.word]

    @property
    def line(self) -> str:
        """One printable line."""
        text = f"{self.word}: {' '.join(self.reason.split())}"
        shown = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
        return shown if len(shown) <= _LENGTH else shown[: _LENGTH - 3] + "..."


def of_certificate(data: bytes, key: bytes, now: dt.datetime, jump: float) -> tuple[dict[str, Any], Answer | None]:
    """
    Judge a certificate by itself.

    Args:
        data: the file.
        key: the pinned public key, 32 bytes.
        now: by this machine's clock.
        jump: seconds by which that clock was set since the last look; a date that only fits without it is not told.

    Returns:
        The certificate, and what is against it; an empty one where it is none.
    """
    try:
        certificate = verify(data, key)
    except CertificateError as error:
        return {}, Answer(NOT_READY, f"the certificate does not count: {error}")
    try:
        in_date(certificate, now)
    except CertificateError as error:
        if now < dt.datetime.fromisoformat(certificate["issued"]):
            return certificate, Answer(UNTOLD, f"this clock says {now:%Y-%m-%d %H:%M}, before the certificate was made")
        if jump and now - dt.timedelta(seconds=jump) < dt.datetime.fromisoformat(certificate["valid_until"]):
            text = f"the clock was set by {jump:+.0f} s since the last look, and by it the certificate has expired"
            return certificate, Answer(UNTOLD, text)
        return certificate, Answer(NOT_READY, f"the certificate does not count: {error}")
    return certificate, None


def of_node(verdict: NodeVerdict, certificate: dict[str, Any], also: Iterable[str] = ()) -> Answer:
    """
    Judge what was read of a node.

    Args:
        verdict: of the full check.
        certificate: that counts.
        also: kinds of output that must have been told, beside those that every certificate rests on.
    """
    fails = [finding for finding in _in_order(verdict) if finding.status is Status.FAIL]
    if fails:
        return Answer(NOT_READY, _said(fails))
    untold = [finding for finding in _in_order(verdict) if finding.status is Status.UNKNOWN]
    if missing := [*_not_told(verdict, also)]:  # then nothing is known of parts and settings either
        return Answer(UNTOLD, _said(untold) if untold else "not told: " + ", ".join(missing))
    if wrong := [*_other_machine(verdict, certificate), *drift(verdict.findings, certificate)]:
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        return Answer(NOT_READY, wrong[0] + more)
    if untold:
        return Answer(UNTOLD, _said(untold))
    if settings := settings_not_told(verdict.findings, certificate):
        return Answer(UNTOLD, "not told: " + ", ".join(settings))
    passed, warned = verdict.coverage["pass"], verdict.coverage["warn"]
    return Answer(READY, f"{certified(certificate)}; {passed} checks passed, {warned} warned")


def certified(certificate: dict[str, Any]) -> str:
    """Say until when a node is certified."""
    return f"certified until {str(certificate['valid_until'])[:10]}"


def drift(findings: list[Finding], certificate: dict[str, Any]) -> Iterator[str]:
    """Say which certified settings have another value now; one that fails now is a fail before it is a drift."""
    now = {(finding.check, finding.subject.id): finding for finding in findings}
    for setting in certificate["settings"]:
        finding = now.get((setting["check"], setting["subject"]))
        if finding is not None and finding.status in (Status.PASS, Status.WARN):
            observed = plain(_json(finding.observed))
            if observed != setting["observed"]:
                where = f" of {setting['subject']}" if setting["subject"] else ""
                yield f"{setting['check']}{where} is {observed}, and was {setting['observed']} when it was certified"


def hardware_errors(findings: Iterable[Finding]) -> list[list[str]]:
    """List Xids and SXids that fail as check, subject and message; they hold for the boot, whatever the log keeps."""
    return [
        [finding.check, finding.subject.id, finding.message]
        for finding in findings
        if finding.family in HARDWARE and finding.status is Status.FAIL and finding.counts
    ]


def lost_errors(before: list[list[str]], findings: Iterable[Finding]) -> list[list[str]]:
    """List errors of earlier looks at this boot of which the log tells nothing any more."""
    told = {(finding.check, finding.subject.id) for finding in findings}
    return [error for error in before if (error[0], error[1]) not in told]


def _in_order(verdict: NodeVerdict) -> list[Finding]:
    """Put what leads an incident first; what follows from another finding goes last."""
    follows = {index for incident in verdict.incidents for index in incident.follows}
    leads = {incident.lead for incident in verdict.incidents}
    order = sorted(range(len(verdict.findings)), key=lambda index: (index in follows, index not in leads, index))
    return [verdict.findings[index] for index in order if verdict.findings[index].counts]


def _said(findings: list[Finding]) -> str:
    first = findings[0]
    where = f" of {first.subject.id}" if first.subject.id else ""
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    return f"{first.check}{where}: {first.message[:170]}{more}"


def _not_told(verdict: NodeVerdict, also: Iterable[str]) -> Iterator[str]:
    sources, required = verdict.about.get("sources", {}), verdict.about.get("requires")
    if required is None:  # nothing of it was read
        yield "what machine it is (not asked)"
        return
    for words, kinds in (*required.items(), *((kind, (kind,)) for kind in also)):
        if not any(sources.get(kind) == "read" for kind in kinds):
            yield words + next((f" ({sources[kind]})" for kind in kinds if kind in sources), " (not asked)")


def settings_not_told(findings: list[Finding], certificate: dict[str, Any]) -> list[str]:
    """List certified settings that nothing was said about: their subject is gone, or the check was skipped."""
    told = {(finding.check, finding.subject.id) for finding in findings if finding.status is not Status.SKIP}
    gone = [one for one in certificate["settings"] if (one["check"], one["subject"]) not in told]
    return [f"{one['check']} {one['subject']}".rstrip() for one in gone[:3]]


def _other_machine(verdict: NodeVerdict, certificate: dict[str, Any]) -> Iterator[str]:
    """Say what of the certified machine is not what is there: its name, its board, GPUs and adapters."""
    if certificate["node"] != verdict.node:
        yield f"the certificate is of {certificate['node']}, and this is {verdict.node or 'a node without a name'}"
    identity, about = certificate["identity"], verdict.about
    for key in ("product", "serial", "board_serial"):
        if identity.get(key) and about.get(key) and identity[key] != plain(about[key]):
            yield f"the certificate is of a machine whose {key.replace('_', ' ')} is {identity[key]}, not {about[key]}"
    for kind, mark, words in (("gpus", "uuid", "GPU"), ("nics", "guid", "adapter")):
        was = {part[mark] for part in identity[kind] if mark in part}
        now = {plain(part[mark]) for part in about.get(kind, ()) if mark in part}
        if gone := sorted(was - now):
            yield f"{len(gone)} of {len(was)} certified {words}s are not there, first {gone[0]}"
        elif new := sorted(now - was):
            yield f"{len(new)} {words}s are there that were not certified, first {new[0]}"


def _json(value: Any) -> Any:
    """Make of an observed value what a run's JSON has of it."""
    if isinstance(value, (tuple, list)):
        return [_json(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _json(item) for key, item in value.items()}
    return value
