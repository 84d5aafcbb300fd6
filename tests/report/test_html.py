"""The HTML report as text: its frame, its policy, and what it carries; what a browser makes of it is tested beside."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import Any

import pytest

from hwcheck.findings import NodeVerdict
from hwcheck.report.html import html
from hwcheck.report.html_data import MEASURED, SPOKEN, pack
from tests.report.runs import accepted, run_of
from tests.report.samples import faulty, healthy, hostile


def data_of(page: str) -> dict[str, Any]:
    """Read the data that a page carries."""
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert match is not None
    data: dict[str, Any] = json.loads(match[1])
    return data


def texts(node: dict[str, Any], data: dict[str, Any], column: int) -> list[str]:
    """Return one text of each finding that is kept whole."""
    return [data["texts"][row[column]] for row in node["findings"]]


def test_only_its_own_style_and_program_may_run() -> None:
    """The policy allows nothing but the style and the program of the page, by their hashes."""
    page = html(run_of(faulty(), healthy()))
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    (style,), (program,) = (
        re.findall(r"<style>(.*?)</style>", page, re.DOTALL),
        re.findall(r"<script>(.*?)</script>", page, re.DOTALL),
    )
    assert {"default-src": "'none'", "base-uri": "'none'", "form-action": "'none'"} == {
        key: rules[key] for key in ("default-src", "base-uri", "form-action")
    }
    for key, text in (("style-src", style), ("script-src", program)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" == rules[key]


def test_nothing_is_loaded() -> None:
    """No address of another place stands in the page, apart from the name of the SVG language."""
    page = html(run_of(faulty()))
    assert {"http://www.w3.org/2000/svg"} == set(re.findall(r"[a-z]+://[^\"' ]+", page))
    assert [] == re.findall(r"<(?:link|img|iframe|object|embed|base)\b", page)


def test_texts_of_nodes_are_never_markup() -> None:
    """Whatever a node sends stands in the data with its < spelled out, control and bidirectional characters too."""
    evil = '</script><script>alert(1)</script><img src=x onerror="alert(2)"><!--'
    node = faulty()
    node.node = node.findings[0].message = evil
    page = html(run_of(node, hostile(), who=evil, run=evil))
    assert 2 == page.count("<script") == page.count("</script>")
    assert "<img" not in page
    assert "<!--" not in page
    assert re.search(r"[\x00-\x08\x0b-\x1f\u202a-\u202e\ud800-\udfff]", page) is None
    assert evil == data_of(page)["nodes"][0]["name"]


def test_what_is_wrong_is_whole_and_the_rest_is_short() -> None:
    """Findings that are not well, or in an incident, keep evidence and remedy; passed ones are rows for a check."""
    data = pack(run_of(faulty()))
    (node,) = data["nodes"]
    assert {"fail", "warn", "unknown"} == {row[3] for row in node["findings"]}
    lead = node["findings"][0]
    assert ("xid.79", "dmesg.txt", 7) == (data["texts"][lead[1]], data["texts"][lead[9]], lead[10])
    assert "Drain and power-cycle the node" in data["records"][lead[12]]["text"]
    assert {
        "lead": 0,
        "follows": [1],
        "text": "The GPU fell off the bus; its NVLinks went down with it (0000:2a:00.0).",
    } == (node["incidents"][0])
    rows = {data["texts"][data["rows"][row][0]]: data["rows"][row] for row in data["sets"][node["quiet"]]}
    assert ("pass", 8) == (rows["gpu.ecc_mode"][1], len(rows["gpu.ecc_mode"][2]))


def test_counts_are_those_of_the_run() -> None:
    """Whole findings and short ones together are as many of each status as the run has."""
    run = run_of(faulty(), healthy())
    data = pack(run)
    for node, told in zip(data["nodes"], run["nodes"], strict=True):
        counts = dict.fromkeys(told["coverage"], 0)
        for row in node["findings"]:
            counts[row[3]] += 1
        for number in data["sets"][node["quiet"]]:
            counts[data["rows"][number][1]] += len(data["rows"][number][2])
        assert told["coverage"] == counts


def test_nodes_of_one_name_keep_their_own_findings() -> None:
    """The evidence of one machine, taken twice, is two nodes with addresses of their own."""
    before, after = faulty(), healthy()
    after.node = before.node
    data = pack(run_of(before, after))
    assert ["gpu-017", "gpu-017~2"] == [node["key"] for node in data["nodes"]]
    assert (True, False) == tuple(bool(node["findings"]) for node in data["nodes"])


def test_a_filtered_list_of_findings_still_finds_its_nodes() -> None:
    """Where findings are fewer than the coverage says, their names decide."""
    run = run_of(faulty(), healthy())
    run["findings"] = [row for row in run["findings"] if row["status"] == "pass"]
    run["incidents"] = []
    data = pack(run)
    assert [True, True] == [bool(data["sets"][node["quiet"]]) for node in data["nodes"]]


def test_like_nodes_share_what_passed() -> None:
    """A hundred healthy nodes cost little more than one, and beyond some thousand findings their sentences go."""
    many = [NodeVerdict(f"n{number}", "hgx-h200", "name", healthy().findings) for number in range(1500)]
    one, hundred = (len(html(run_of(*many[:count]))) for count in (1, 100))
    assert hundred < one + 100 * 400
    assert len(healthy().findings) * 1500 > SPOKEN
    assert [True, False] == [pack(run_of(*some))["spoken"] for some in (many[:1], many)]


def test_measurements_keep_their_bound_and_many_no_conditions() -> None:
    """A figure that passed is kept whole, for its bound; of very many, only a bad one keeps its conditions."""
    run = run_of(healthy())
    said = {**run["findings"][-1], "status": "pass", "check": "baseline.host_copy", "expected": ">= 50 GB/s"}
    run["findings"] += [{**said, "subject": "good"}, {**said, "subject": "bad", "status": "fail", "urgency": "now"}]
    row = {"node": "gpu-018", "name": "h2d", "value": 55.0, "unit": "GB/s", "conditions": {"repeats": 5}}
    run["measurements"] = [{**row, "subject": subject} for subject in ("good", "hwcheck.h2d@bad")]
    (few,) = pack(run)["nodes"]
    assert [">= 50 GB/s"] * 2 == [pack(run)["texts"][finding[6]] for finding in few["findings"]]
    assert [{"repeats": 5}] * 2 == [row[4] for row in few["measurements"]]
    run["measurements"] *= MEASURED
    many = pack(run)
    assert many["short"]
    assert [{}, {"repeats": 5}] == [row[4] for row in many["nodes"][0]["measurements"][:2]]


def test_the_verdict_can_be_read_without_a_program() -> None:
    """Verdict, name, times, profile and the mark of the lab stand in the page itself."""
    run = run_of(faulty())
    accepted(run, "gpu-017")
    head = html(run).partition("<main")[0]
    for text in ("<b>Fail</b>", "20300101-100000-a1b2", "2030-01-01 10:00:00 +00:00", "ops@head01", "0123456789abcdef"):
        assert text in head
    assert ">lab</span>" in head
    assert ">lab</span>" not in html(run_of(healthy())).partition("<main")[0]


def test_shares_of_nodes() -> None:
    """Where there are several nodes it is said how many fail and pass; the comparison of them is no node."""
    compared = NodeVerdict("fleet", "fleet", "none", [])
    assert "Of 2 nodes 1 fail, 1 pass." in html(run_of(faulty(), healthy(), compared)).partition("<main")[0]
    assert "Of 1 node" not in html(run_of(faulty())).partition("<main")[0]


@pytest.mark.parametrize("verdict", ["pass", "unknown"])
def test_title_says_the_verdict(verdict: str) -> None:
    """The title of the page begins with the verdict, as tabs show only its beginning."""
    run = run_of(verdict=verdict)
    assert f"<title>{verdict.capitalize()}: run of 2030" in html(run)
