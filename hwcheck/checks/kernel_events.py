"""From the events of the kernel log to findings: one for each kind and device."""

from __future__ import annotations

from collections.abc import Iterator

from hwcheck.checks.log_lines import Record, origin_of, proves, times_of
from hwcheck.checks.relation import Answer, Given, ok
from hwcheck.facts import NODE, Subject, gpu_at, pci_address
from hwcheck.findings import Remedy, Status, Urgency

EVENTS = "kernel.log.events"
Words = tuple[Status, Urgency | None, str]
"""How an event is judged: status, urgency (None for the relation's), and what it is called."""
USES = ("kernel.log.window", "evidence.collected")


def events(given: Given, *kinds: str) -> list[Record]:
    """List the records of these kinds in the order of the log."""
    return sorted((record for record in given[EVENTS] if record["kind"] in kinds), key=lambda record: record["line"])


def tell(
    given: Given,
    record: Record,
    status: Status,
    what: str,
    *,
    subject: str = "node",
    urgency: Urgency | None = None,
    remedy: Remedy | None = None,
) -> Answer:
    """
    Answer for one record.

    Args:
        given: what the check body got.
        record: the group of lines.
        status: a fail becomes a warning when the node was started again after the event.
        what: the event in words; its detail, device and times are added.
        subject: kind of the device: ``node``, ``gpu``, ``pci``, ``nic``.
        urgency: in place of the relation's.
        remedy: in place of the relation's.
    """
    device = record["device"]
    detail = f" ({record['detail']})" if record["detail"] else ""
    named = f"{' ' if device.isdigit() else ' on '}{device}" if device and subject == "node" else ""
    message = f"{what}{named}{detail}, {times_of([record])}"
    if status is Status.FAIL and record["stale"]:
        status, message = Status.WARN, f"{message}; the node was started again since, and it did not return"
    return Answer(
        status,
        message,
        observed=record["count"],
        expected=None if status is Status.SKIP else 0,
        subject=_subject(subject, device),
        urgency=urgency,
        remedy=remedy,
        origin=origin_of(given, EVENTS, record),
    )


def _subject(kind: str, device: str) -> Subject:
    if kind == "node" or not device:
        return NODE
    return gpu_at(device) if kind == "gpu" else Subject(kind, pci_address(device) or device)


def tell_all(given: Given, words: dict[str, Words], *, subject: str = "node", absent: str = "") -> Iterator[Answer]:
    """
    Answer for all records of some kinds.

    Args:
        given: what the check body got.
        words: kind of event → how it is judged and called.
        subject: kind of the device; see :func:`tell`.
        absent: what there is none of where no record is there; "" where its absence is not worth a pass.
    """
    found = events(given, *words)
    for record in found:
        status, urgency, what = words[record["kind"]]
        yield tell(given, record, status, what, subject=subject, urgency=urgency)
    if absent and not found:
        yield from clean(given, absent)


def clean(given: Given, what: str) -> Iterator[Answer]:
    """Pass where the log covers a known time; say nothing where it is an excerpt."""
    covered = proves(given, "kernel")
    if covered:
        yield ok(f"no {what} {covered}", observed=0)
