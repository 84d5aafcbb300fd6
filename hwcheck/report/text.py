"""
Report for a terminal: verdict, incidents, what failed, what is not as it should be, what could not be told.

What passed is folded to a line a family, what was skipped to one line. Readable in 80 columns and without colour: a
colour never says anything that no word says.
"""

from __future__ import annotations

import itertools
import textwrap
from collections import Counter
from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from hwcheck.findings import Finding, Incident, NodeVerdict, Status
from hwcheck.fleet import FLEET
from hwcheck.report.entries import STYLES, headline, write_entries, write_gap, write_row
from hwcheck.report.fold import fold, fold_gaps, why_skipped
from hwcheck.report.sheet import Sheet, terminal, visible
from hwcheck.report.text_measured import write_measured

_CONFIDENCE = {
    "pci-id": "recognised by PCI ids",
    "name": "recognised by product name",
    "hint": "guessed from a name in a measurement",
    "given": "as given on the command line",
}
_FEW = 50
_READ = 200
"""A live node has some 60 sources: the JSON report names them all."""


def print_run(verdicts: Iterable[NodeVerdict], *, strict: bool) -> None:
    """Write the report to standard output, node by node as they are judged."""
    render_run(verdicts, terminal(), strict=strict)


def render_run(verdicts: Iterable[NodeVerdict], console: Console, *, strict: bool = False) -> None:
    """
    Write nodes and, of two or more, a summary.

    Among several, a node with nothing to say takes two lines.

    Args:
        verdicts: nodes, taken one by one.
        console: where to.
        strict: warnings count as fails.
    """
    nodes = iter(verdicts)
    first = list(itertools.islice(nodes, 2))  # the second decides whether this is a fleet
    fleet = len(first) > 1
    summary = Summary(strict=strict)
    for number, verdict in enumerate(itertools.chain(first, nodes)):
        if number:
            console.print()
        summary.add(verdict)
        render_node(verdict, console, strict=strict, brief=fleet and _is_clean(verdict))
    if fleet:
        render_summary(summary, console)


def _is_clean(verdict: NodeVerdict) -> bool:
    return all(finding.status in (Status.PASS, Status.SKIP) for finding in verdict.findings)


def render_node(verdict: NodeVerdict, console: Console, *, strict: bool = False, brief: bool = False) -> None:
    """
    Write what is said about one node.

    Args:
        verdict: the node.
        console: where to.
        strict: warnings count as fails.
        brief: the verdict, and what was measured.
    """
    sheet = Sheet(console)
    _verdict(sheet, verdict, strict=strict)
    if brief:
        write_measured(sheet, verdict.measurements)
        return
    counted = [finding for finding in verdict.findings if finding.counts]
    _incidents(sheet, verdict)
    _bad(sheet, "Failed", _of(counted, Status.FAIL), verdict)
    _bad(sheet, "Warnings", _of(counted, Status.WARN), verdict)
    _untold(sheet, _of(counted, Status.UNKNOWN))
    _waived(sheet, [finding for finding in verdict.findings if not finding.counts])
    write_measured(sheet, verdict.measurements)
    _passed(sheet, _of(counted, Status.PASS))
    _skipped(sheet, _of(counted, Status.SKIP))
    _next(sheet, verdict)


def _of(findings: Iterable[Finding], status: Status) -> list[Finding]:
    return [finding for finding in findings if finding.status is status]


# ------------------------------------------------------------------------------------------------------------- verdict


def _verdict(sheet: Sheet, verdict: NodeVerdict, *, strict: bool) -> None:
    word = _word(verdict, strict=strict)
    line = Text(visible(verdict.node) or "unnamed node", style="bold")
    line.append(f"  {_platform(verdict)}", style="not bold")
    if verdict.simulated:
        line.append("  lab", style="bold cyan")
    sheet.row(Text(word.upper(), style=STYLES[word]), line, 0, 9)
    counts = _counts(verdict)
    sheet.text(counts + (" (strict: warnings count)" if word != verdict.verdict else ""), indent=9)
    read = [finding.message for finding in verdict.findings if finding.check == "evidence.read"]
    if read:
        sheet.text(Text(textwrap.shorten(visible(read[0]), _READ, placeholder=" …"), style="dim"), indent=9)
    if word == "pass" and not any(map(_tells_of_hardware, verdict.findings)):
        sheet.text("No check of the hardware found what it needs in this evidence: no proof of health.", indent=9)


def _tells_of_hardware(finding: Finding) -> bool:
    return finding.status in (Status.PASS, Status.WARN) and finding.family not in ("evidence", "platform")


def _word(verdict: NodeVerdict, *, strict: bool) -> str:
    warned = any(finding.status is Status.WARN and finding.counts for finding in verdict.findings)
    return "fail" if strict and warned else verdict.verdict


def _platform(verdict: NodeVerdict) -> str:
    if verdict.platform == FLEET:
        return "its nodes compared with each other"
    if verdict.confidence == "none":
        return "platform not recognised"
    return f"{visible(verdict.platform)}, {_CONFIDENCE.get(verdict.confidence, visible(verdict.confidence))}"


def _counts(verdict: NodeVerdict) -> str:
    counts = Counter(str(finding.status) if finding.counts else "waived" for finding in verdict.findings)
    words = ("fail", "warn", "unknown", "waived", "pass", "skip")
    return ", ".join(f"{counts[word]} {word}" for word in words if counts[word] or word in ("fail", "pass"))


# ----------------------------------------------------------------------------------------------------------- incidents


def _incidents(sheet: Sheet, verdict: NodeVerdict) -> None:
    if not verdict.incidents:
        return
    sheet.heading("Incidents")
    for number, incident in enumerate(verdict.incidents):
        if number:
            sheet.blank()
        _incident(sheet, verdict.findings, incident)


def _incident(sheet: Sheet, findings: list[Finding], incident: Incident) -> None:
    (lead,) = fold([findings[incident.lead]])
    sheet.text(headline(lead), indent=2, hang=2)
    sheet.text(visible(incident.text), indent=4)
    for entry in fold(findings[index] for index in incident.follows):
        sheet.text(Text().append("then ", style="dim").append_text(headline(entry)), indent=4, hang=5)


# ---------------------------------------------------------------------------------------------------------------- rest


def _bad(sheet: Sheet, title: str, findings: list[Finding], verdict: NodeVerdict) -> None:
    if not findings:
        return
    sheet.heading(title)
    leads = {id(verdict.findings[incident.lead]) for incident in verdict.incidents}
    write_entries(sheet, fold(sorted(findings, key=lambda finding: id(finding) not in leads)))  # stable: leads first


def _untold(sheet: Sheet, findings: list[Finding]) -> None:
    if not findings:
        return
    gaps, own = fold_gaps(findings)
    sheet.heading("Could not be told")
    for number, gap in enumerate(gaps):
        if number:
            sheet.blank()
        write_gap(sheet, gap)
    if gaps and own:
        sheet.blank()
    write_entries(sheet, fold(own))


def _waived(sheet: Sheet, findings: list[Finding]) -> None:
    if not findings:
        return
    sheet.heading("Waived")
    by_waiver: dict[tuple[str, ...], list[Finding]] = {}
    for finding in findings:
        waiver = finding.waived or {}
        key = tuple(waiver.get(part, "") for part in ("expires", "owner", "reason"))
        by_waiver.setdefault(key, []).append(finding)
    for (expires, owner, reason), accepted in by_waiver.items():
        for entry in fold(accepted):
            sheet.text(headline(entry), indent=2, hang=2)
            write_row(sheet, "accepted", visible(f"until {expires} by {owner}: {reason}"))


def _passed(sheet: Sheet, findings: list[Finding]) -> None:
    families: dict[str, Counter[str]] = {}
    for finding in findings:
        families.setdefault(finding.family, Counter())[finding.check.partition(".")[2]] += 1
    if not families:
        return
    sheet.heading("Passed")
    for family, names in families.items():
        label = Text(f"{visible(family):<10}{names.total():>4}", style=STYLES["pass"])
        sheet.row(label, Text(", ".join(map(visible, names)), style="dim"), 2, 16)


def _skipped(sheet: Sheet, findings: list[Finding]) -> None:
    if not findings:
        return
    reasons = Counter(map(why_skipped, findings))
    sheet.blank()
    counts = ", ".join(f"{why}: {count}" for why, count in sorted(reasons.items()))
    sheet.row(Text("Skipped", style="bold"), counts, 0, 9)
    for finding in findings:
        if finding.family == "evidence" and why_skipped(finding) != "not collected":  # lines not understood, say
            sheet.row(Text("Note", style="bold"), visible(finding.message), 0, 9)


def _next(sheet: Sheet, verdict: NodeVerdict) -> None:
    check = _main_check(verdict)
    if check:
        sheet.blank()
        sheet.row(Text("Next", style="bold"), f"hwcheck explain {visible(check)}", 0, 9)


def _main_check(verdict: NodeVerdict) -> str:
    """Return the check to read about first: the lead of the first incident, else the worst; "" when all is well."""
    if verdict.incidents:
        return verdict.findings[verdict.incidents[0].lead].check
    counted = [finding for finding in verdict.findings if finding.counts]
    for status in (Status.FAIL, Status.WARN, Status.UNKNOWN):
        entries = fold(_of(counted, status))
        if entries:
            return entries[0].check
    return ""


# ------------------------------------------------------------------------------------------------------------- summary


class Summary:
    """
    What is kept of each node for the end of the report: counts, and a line for the first nodes that are not fit.

    Args:
        strict: warnings count as fails.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self._strict = strict
        self.nodes: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.unfit = 0
        self.lines: list[tuple[str, str, str]] = []

    def add(self, verdict: NodeVerdict) -> None:
        """Take a node in."""
        word = _word(verdict, strict=self._strict)
        self.nodes[word] += verdict.platform != FLEET
        failed = {finding.check for finding in _of(verdict.findings, Status.FAIL) if finding.counts}
        self.failed.update(sorted(failed))
        self.unfit += word != "pass"
        if word != "pass" and len(self.lines) < _FEW:
            self.lines.append((word, verdict.node or "unnamed node", _main_check(verdict)))


def render_summary(summary: Summary, console: Console) -> None:
    """Write how many nodes are fit, and which are not."""
    sheet = Sheet(console)
    total = summary.nodes.total()
    counts = ", ".join(f"{summary.nodes[word]} {word}" for word in ("fail", "unknown", "pass") if summary.nodes[word])
    sheet.heading(f"{total} nodes: {counts}")
    for word, node, check in summary.lines:
        line = Text(visible(node), style="bold").append(f"  {visible(check)}", style="not bold")
        sheet.row(Text(word.upper(), style=STYLES[word]), line, 2, 9)
    rest = summary.unfit - len(summary.lines)
    if rest > 0:
        sheet.text(f"and {rest} more", indent=2)
    common = [(check, count) for check, count in summary.failed.most_common(5) if count > 1]
    if common:
        sheet.blank()
        listed = ", ".join(f"{visible(check)} on {count} nodes" for check, count in common)
        sheet.text(f"Most often: {listed}", indent=2)
