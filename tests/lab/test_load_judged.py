"""Each performance fault of the lab is found by its measurement, with its likely cause; mended, it passes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator

import pytest

from hwcheck.baselines import OWN, Bound, fleet_bound
from hwcheck.baselines.own import split
from hwcheck.evidence import Evidence, Output
from hwcheck.findings import NodeVerdict, Status
from hwcheck.lab import nodes
from hwcheck.lab.faults import FAULTS, catalogue
from hwcheck.pipeline import Pipeline
from hwcheck.profiles import ProfileSet
from hwcheck.transports.request import Request
from hwcheck.transports.stream import Decoder
from tests.sources.node_program import REASONS

pytestmark = [pytest.mark.lab, pytest.mark.slow]
PLATFORM = "hgx-h200"
SLOW = [
    name for name, fault in catalogue().items()
    if PLATFORM in fault.platforms and set(fault.figures) & set(OWN) and not name.startswith("cpus-")
]  # fmt: skip
WORDS = {
    "gpu-link-narrows": "width 8 of 16", "gpu-link-slows": "generation 3 of 5", "slow-hbm": "memory 1593 of 3201 MHz",
    "busy-agent": "osqueryd",
}  # fmt: skip
"""What names the cause where only the measurement shows it."""


def read(node: nodes.Node, asked: Request) -> list[Output]:
    """Run the node program on a node in tree form."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-"], input=asked.program(), capture_output=True, timeout=120, check=True,
        env={**os.environ, **node.environment()},
    )  # fmt: skip
    assert done.stderr == b""
    decoder = Decoder()
    decoder.feed(done.stdout)
    return [
        Output(answer.kind, answer.payload.decode().splitlines(), file=answer.kind, reason=REASONS[answer.status])
        for answer in decoder.answers
    ]


def measured(node: nodes.Node, tests: set[str]) -> list[Output]:
    """Read a node, and measure what belongs to these tests."""
    root = str(node.root)
    sources = tuple({OWN[test].source for test in tests})
    return read(node, Request(root=root)) + read(node, Request(tier="load", root=root, only=sources))


def judged(outputs: list[Output], fleet: dict[str, Bound]) -> NodeVerdict:
    """Judge a node, its measurements beside the fleet's."""
    evidence = Evidence("slow", outputs, collected=True)
    pipeline = Pipeline(ProfileSet(), platform=PLATFORM)
    first = pipeline.judge(evidence)
    references = {one.subject: (fleet[split(one.subject)[0]],) for one in first.measurements if one.name[8:] in fleet}
    return pipeline.judge(evidence, references=references)


@pytest.fixture(scope="module", name="node")
def _node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[nodes.Node]:
    home = tmp_path_factory.mktemp("lab")
    node, lacks = nodes.up(home, "slow", PLATFORM, [])
    if lacks:
        pytest.skip(lacks)
    yield node
    nodes.down(home, node)


@pytest.fixture(scope="module", name="fleet")
def _fleet(node: nodes.Node) -> dict[str, Bound]:
    """Bounds that eight healthy GPUs give."""
    tests = {test for test in OWN if OWN[test].source in ("load-hbm", "load-host-copy", "load-latency", "load-peers")}
    verdict = judged(measured(node, tests), {})
    values = defaultdict(list)
    for one in verdict.measurements:
        values[split(one.subject)[0]].append(one.value)
    bounds = {test: fleet_bound(found, higher_is_better=OWN[test].higher_is_better) for test, found in values.items()}
    return {test: bound for test, bound in bounds.items() if bound is not None}


def figures(verdict: NodeVerdict, status: Status) -> set[str]:
    """Return the checks of hwcheck's own figures that have this status."""
    own = {one.check for one in OWN.values()}
    return {one.check for one in verdict.findings if one.check in own and one.status is status}


@pytest.mark.parametrize("name", SLOW)
def test_a_performance_fault_is_found_and_named(name: str, node: nodes.Node, fleet: dict[str, Bound]) -> None:
    """Failed, or not counted because of what was seen; the incident's lead or the message names the cause."""
    fault = FAULTS[name]
    tests = set(fault.figures) & set(OWN)
    tests |= {f"{test}.tail" for test in tests if f"{test}.tail" in OWN}
    nodes.break_node(node, name)
    try:
        verdict = judged(measured(node, tests), fleet)
    finally:
        nodes.mend(node)
    checks = {OWN[test].check for test in tests}
    bad = {
        index for index, one in enumerate(verdict.findings)
        if one.check in checks and one.status in (Status.FAIL, Status.UNKNOWN, Status.WARN)
    }  # fmt: skip
    assert bad
    if name in WORDS:
        assert any(WORDS[name] in verdict.findings[index].message for index in bad)
        return
    leads = [verdict.findings[one.lead].check for one in verdict.incidents if bad & set(one.follows)]
    assert any(lead in fault.leads or lead.partition(".")[0] in fault.leads for lead in leads), leads


def test_a_healthy_node_passes_what_it_is_measured_by(node: nodes.Node, fleet: dict[str, Bound]) -> None:
    """Mended, all figures are right again, by the platform and by the fleet."""
    tests = {"hbm.copy", "h2d", "d2h", "launch", "copy.small", "p2p"}
    verdict = judged(measured(node, tests), fleet)
    assert figures(verdict, Status.PASS) >= {OWN[test].check for test in tests}
    assert figures(verdict, Status.FAIL) | figures(verdict, Status.UNKNOWN) | figures(verdict, Status.WARN) == set()
