"""JUnit XML."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from hwcheck.findings import NodeVerdict
from hwcheck.report.junit import render_junit
from tests.report.samples import faulty, healthy, hostile


def parsed(verdicts: list[NodeVerdict], *, strict: bool = False) -> ET.Element:
    """Render and read back."""
    return ET.fromstring(render_junit(verdicts, strict=strict))  # noqa: S314 - our own text


def case(root: ET.Element, name: str) -> ET.Element:
    """Find a case."""
    (found,) = [element for element in root.iter("testcase") if element.get("name") == name]
    return found


def test_suite_for_each_node() -> None:
    """Each node is a suite with its platform, and the root sums them up."""
    root = parsed([faulty(), healthy()])
    first, second = root.findall("testsuite")
    assert ["gpu-017", "gpu-018"] == [first.get("name"), second.get("name")]
    properties = {item.get("name"): item.get("value") for item in first.iter("property")}
    expected = {"platform": "hgx-h200", "confidence": "pci-id", "verdict": "fail", "simulated": "true"}
    assert expected == properties
    for key in ("tests", "failures", "errors", "skipped"):
        assert int(root.get(key, "")) == int(first.get(key, "")) + int(second.get(key, ""))
    assert ("3", "10") == (first.get("failures"), first.get("errors"))


def test_status_decides_the_element() -> None:
    """Fail is a failure, unknown an error, skip skipped, a warning passed with a word."""
    root = parsed([faulty()])
    failure = case(root, "xid.79 0000:2a:00.0").find("failure")
    assert failure is not None
    assert "remedy: Drain and power-cycle" in (failure.text or "")
    assert "evidence: dmesg.txt:7: [ 912.402] NVRM" in (failure.text or "")
    assert case(root, "baseline.result nccl.all_reduce").find("error") is not None
    assert case(root, "imex.domain").find("skipped") is not None
    warned = case(root, "gpu.persistence 0000:18:00.0")
    assert ["system-out"] == [child.tag for child in warned]
    assert [] == list(case(root, "gpu.ecc_mode 0000:18:00.0"))
    assert "hwcheck.gpu" == warned.get("classname")


def test_strict_makes_a_warning_a_failure() -> None:
    """With strict, a warning fails the case."""
    root = parsed([faulty()], strict=True)
    failure = case(root, "gpu.persistence 0000:18:00.0").find("failure")
    assert failure is not None
    assert "warn" == failure.get("type")


def test_waived_is_skipped_with_its_reason() -> None:
    """A waived finding is visible and fails nothing, strict or not."""
    for strict in (False, True):
        skipped = case(parsed([faulty()], strict=strict), "time.chrony").find("skipped")
        assert skipped is not None
        assert "waived until 2030-01-31 by ops@site" in (skipped.get("message") or "")


def test_hostile_text_stays_well_formed() -> None:
    """Characters that XML forbids are spelled out, and markup is text."""
    root = parsed([hostile()])
    assert render_junit([hostile()]).isascii()
    failure = next(root.iter("failure"))
    assert "\\x1b[31mred" in (failure.get("message") or "")
    assert "<a&b>" in (failure.get("message") or "")


def test_findings_of_one_check_and_subject_share_a_case() -> None:
    """A case name occurs once in a suite; the worst finding decides."""
    root = parsed([hostile()])
    names = [element.get("name") for element in root.iter("testcase")]
    assert len(names) == len(set(names))
