"""Entries of the terminal report: a folded finding with its evidence and remedy, and a source that did not tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from rich.text import Text

from hwcheck.facts import Origin
from hwcheck.findings import Remedy, Status, Urgency
from hwcheck.report.fold import Entry, Gap, Seen, name_subjects, new_values
from hwcheck.report.sheet import Sheet, visible

STYLES = {"fail": "bold red", "warn": "bold yellow", "unknown": "bold magenta", "pass": "bold green"}
URGENCIES = {
    Urgency.NOW: "now",
    Urgency.JOB_END: "when the job ends",
    Urgency.MAINTENANCE: "next maintenance",
}
DISTURBS = {
    "gpu": "disturbs the GPU",
    "board": "disturbs all GPUs of the board",
    "network": "disturbs the network",
    "node": "disturbs the whole node",
}
_PLAIN = "not bold not dim default"
_LABEL = 10
_VALUE = 200
_NAMED = 8
_OTHERS = 7


def headline(entry: Entry) -> Text:
    """Say ``CHECK on SUBJECTS: MESSAGE``; of several messages the first."""
    subjects = name_subjects(entry.subjects)
    line = Text(visible(entry.check), style=STYLES[entry.status])
    line.append(f" on {visible(subjects)}: " if subjects else ": ", style=_PLAIN)
    more = f" (and {len(entry.seen) - 1} more)" if len(entry.seen) > 1 else ""
    return line.append(visible(next(iter(entry.seen))) + more, style=_PLAIN)


def write_entries(sheet: Sheet, entries: Iterable[Entry]) -> None:
    """Write entries with an empty line between two."""
    for number, entry in enumerate(entries):
        if number:
            sheet.blank()
        write_entry(sheet, entry)


def write_entry(sheet: Sheet, entry: Entry) -> None:
    """Write check and message, subjects, what was observed and expected, the evidence, and what to do."""
    first, *others = entry.seen.values()
    line = Text(visible(entry.check), style=STYLES[entry.status]).append(f"  {visible(first.message)}", style=_PLAIN)
    sheet.text(line, indent=2, hang=2)
    _write_seen(sheet, first)
    for other in others[:_OTHERS]:
        write_row(sheet, "also", _reference(other))
    if others[_OTHERS:]:
        subjects = name_subjects(subject for seen in others[_OTHERS:] for subject in seen.subjects)
        write_row(sheet, "also", f"{len(others) - _OTHERS} more" + (f", on {visible(subjects)}" if subjects else ""))
    _write_remedy(sheet, entry.remedy, entry.urgency)


def _reference(seen: Seen) -> str:
    """Say another message in short: on what, and which line has it."""
    subjects = name_subjects(seen.subjects)
    origin = seen.first.origin
    place = f" ({origin.file}:{origin.line})" if origin and origin.file and origin.line else ""
    return visible((f"{subjects}: " if subjects else "") + seen.message + place)


def write_gap(sheet: Sheet, gap: Gap) -> None:
    """Write what a source did not tell, and which checks that leaves open."""
    line = Text(visible(gap.source), style=STYLES[Status.UNKNOWN])
    line.append(f" {visible(gap.how)}" + (f" ({visible(gap.detail)})" if gap.detail else ""), style=_PLAIN)
    open_checks = sum(gap.checks.values())
    if open_checks:
        line.append(f": {open_checks} {'check' if open_checks == 1 else 'checks'} could not be told", style=_PLAIN)
    sheet.text(line, indent=2, hang=2)
    if gap.checks:
        write_row(sheet, "checks", visible(_open_checks(gap.checks)))
    _write_evidence(sheet, gap.first.origin)


def _open_checks(checks: dict[str, int]) -> str:
    """Name checks with the number of their subjects; many of them by family."""
    counts = Counter(checks)
    if len(checks) > _NAMED:
        counts = Counter()
        for check, count in checks.items():
            counts[check.partition(".")[0]] += count
        return ", ".join(f"{family} {count}" for family, count in counts.items())
    return ", ".join(f"{check} ({count} times)" if count > 1 else check for check, count in counts.items())


def write_row(sheet: Sheet, label: str, text: Text | str) -> None:
    """Write a labelled line of an entry."""
    sheet.row(label, text, 4, _LABEL)


def _write_seen(sheet: Sheet, seen: Seen) -> None:
    subjects = name_subjects(seen.subjects)
    if subjects:
        write_row(sheet, "on", visible(subjects))
    for label, value in new_values(seen.first).items():
        write_row(sheet, label, visible(value if len(value) <= _VALUE else value[:_VALUE] + " ..."))
    _write_evidence(sheet, seen.first.origin)


def _write_evidence(sheet: Sheet, origin: Origin | None) -> None:
    if origin is None or not (origin.file or origin.excerpt):
        return
    sheet.place("evidence", origin.file or origin.source, origin.line, 4, _LABEL)
    if origin.excerpt:
        sheet.quote(origin.excerpt, 4 + _LABEL)


def _write_remedy(sheet: Sheet, remedy: Remedy | None, urgency: Urgency | None) -> None:
    when = URGENCIES.get(urgency, "") if urgency else ""
    if remedy is None:
        if when:
            write_row(sheet, "act", when)
        return
    line = Text(f"{when}: " if when else "", style="bold").append(visible(remedy.text), style="not bold")
    if remedy.disturbs in DISTURBS:
        line.append(f" ({DISTURBS[remedy.disturbs]})", style="not bold dim")
    write_row(sheet, "remedy", line)
