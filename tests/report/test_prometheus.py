"""Metrics for the textfile collector."""

from __future__ import annotations

import re

from hwcheck.report.prometheus import render_prometheus
from tests.report.runs import run_of
from tests.report.samples import faulty, healthy, hostile

SERIES = re.compile(
    r'(?P<name>[a-z_]+)(?:\{(?P<labels>(?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (?P<value>[-+0-9.e]+)'
)


def series(text: str) -> dict[str, float]:
    """Read an exposition; a line of another form fails."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            match = SERIES.fullmatch(line)
            assert match is not None, line
            assert match.expand(r"\g<name>{\g<labels>}") not in found, line
            found[f"{match['name']}{{{match['labels'] or ''}}}"] = float(match["value"])
    return found


def test_verdicts_of_nodes() -> None:
    """Each node has one verdict that is 1, the others are 0."""
    found = series(render_prometheus(run_of(faulty(), healthy())))
    labels = 'node="gpu-017",platform="hgx-h200",simulated="true",verdict='
    assert [0, 0, 1] == [found[f'hwcheck_node_verdict{{{labels}"{word}"}}'] for word in ("pass", "unknown", "fail")]
    assert 1 == found['hwcheck_node_verdict{node="gpu-018",platform="hgx-h200",simulated="false",verdict="pass"}']


def test_findings_are_counted() -> None:
    """By node, family, status and urgency; a waived one apart."""
    found = series(render_prometheus(run_of(faulty())))
    start = 'hwcheck_findings{node="gpu-017",family='
    assert 8 == found[f'{start}"gpu",status="warn",urgency="maintenance",waived="false"}}']
    assert 1 == found[f'{start}"time",status="warn",urgency="maintenance",waived="true"}}']
    assert 9 == found[f'{start}"gpu",status="pass",urgency="",waived="false"}}']


def test_age_and_measurements() -> None:
    """The time of the run is a value, so that an old file can be told; a measurement has its unit as a label."""
    found = series(render_prometheus(run_of(faulty())))
    assert 1893492000 == found["hwcheck_run_timestamp_seconds{}"]
    measured = 'hwcheck_measurement{node="gpu-017",name="nccl.all_reduce",subject="nccl.all_reduce",unit="GB/s"}'
    assert 310.2 == found[measured]


def test_texts_of_nodes_stay_in_their_labels() -> None:
    """Quotes, backslashes, line ends and control characters are spelled out, and every line still reads."""
    node = faulty()
    node.node = 'a"} 1\nhwcheck_run_verdict{verdict="pass"} 1 \\ \x1b'
    found = series(render_prometheus(run_of(node, hostile())))
    assert 1 == found['hwcheck_run_verdict{verdict="fail"}']
    assert 0 == found['hwcheck_run_verdict{verdict="pass"}']


def test_two_nodes_of_one_name_are_one_series() -> None:
    """A series that stands twice makes the collector refuse the file: the worse verdict counts."""
    before, after = faulty(), healthy()
    after.node, after.simulated = before.node, True
    found = series(render_prometheus(run_of(before, after)))
    labels = 'node="gpu-017",platform="hgx-h200",simulated="true",verdict='
    assert [0, 1] == [found[f'hwcheck_node_verdict{{{labels}"{word}"}}'] for word in ("pass", "fail")]
