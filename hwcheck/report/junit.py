"""
JUnit XML for pipelines: a suite for each node, a case for each check and subject.

=================  ==========================================================
finding            case
=================  ==========================================================
fail               failure; a warning too when warnings count (``strict``)
unknown            error: the question was asked and not answered
warn               passed, the warning in ``system-out``
skip, or waived    skipped, with the reason
=================  ==========================================================
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable

from hwcheck.findings import Finding, NodeVerdict, Status
from hwcheck.report.sheet import visible

_ORDER = (Status.FAIL, Status.UNKNOWN, Status.WARN, Status.PASS, Status.SKIP)
_COUNTED = {"failure": "failures", "error": "errors", "skipped": "skipped"}


def render_junit(verdicts: Iterable[NodeVerdict], *, strict: bool = False) -> str:
    r"""
    Write nodes as one XML document.

    Args:
        verdicts: nodes in order.
        strict: a warning is a failure.

    Returns:
        XML text with its declaration, in ASCII whatever the locale. Characters that XML does not allow are spelled
        out (``\x1b``).
    """
    root = ET.Element("testsuites", name="hwcheck")
    for verdict in verdicts:
        root.append(_suite(verdict, strict=strict))
    for key in ("tests", *_COUNTED.values()):
        root.set(key, str(sum(int(suite.get(key, "0")) for suite in root)))
    ET.indent(root)
    document: bytes = ET.tostring(root, encoding="us-ascii", xml_declaration=True)
    return document.decode("ascii") + "\n"


def _suite(verdict: NodeVerdict, *, strict: bool) -> ET.Element:
    suite = ET.Element("testsuite", name=visible(verdict.node) or "unnamed node")
    properties = ET.SubElement(suite, "properties")
    known = {"platform": verdict.platform, "confidence": verdict.confidence, "verdict": verdict.verdict}
    for name, value in known.items():
        ET.SubElement(properties, "property", name=name, value=visible(value))
    if verdict.simulated:
        ET.SubElement(properties, "property", name="simulated", value="true")
    cases: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in verdict.findings:
        cases.setdefault((finding.check, *finding.subject), []).append(finding)
    elements = [_case(findings, strict=strict) for findings in cases.values()]
    suite.set("tests", str(len(elements)))
    for tag, key in _COUNTED.items():
        suite.set(key, str(sum(element.find(tag) is not None for element in elements)))
    suite.extend(elements)
    return suite


def _case(findings: list[Finding], *, strict: bool) -> ET.Element:
    """Make one case of the findings of a check for a subject; the worst one that counts decides."""
    worst = min(findings, key=lambda finding: (not finding.counts, _ORDER.index(finding.status)))
    name = f"{worst.check} {worst.subject.id}".rstrip()
    case = ET.Element("testcase", classname=f"hwcheck.{visible(worst.family)}", name=visible(name), time="0")
    text = "\n\n".join(_words(finding) for finding in findings)
    message = visible(worst.message)
    if worst.waived is not None:
        reason = f"waived until {worst.waived['expires']} by {worst.waived['owner']}: {worst.waived['reason']}"
        ET.SubElement(case, "skipped", message=visible(f"{reason} ({worst.message})"))
    elif worst.status is Status.FAIL or (strict and worst.status is Status.WARN):
        ET.SubElement(case, "failure", type=str(worst.status), message=message).text = text
    elif worst.status is Status.UNKNOWN:
        ET.SubElement(case, "error", type="unknown", message=message).text = text
    elif worst.status is Status.SKIP:
        ET.SubElement(case, "skipped", message=message)
    elif worst.status is Status.WARN:
        ET.SubElement(case, "system-out").text = f"warning: {text}"
    return case


def _words(finding: Finding) -> str:
    lines = [finding.message]
    if finding.origin is not None and finding.origin.file:
        where = f"{finding.origin.file}:{finding.origin.line}" if finding.origin.line else finding.origin.file
        lines.append(f"evidence: {where}: {finding.origin.excerpt}")
    if finding.urgency is not None:
        lines.append(f"urgency: {finding.urgency}")
    if finding.remedy is not None:
        lines.append(f"remedy: {finding.remedy.text}")
    return "\n".join(map(visible, lines))
