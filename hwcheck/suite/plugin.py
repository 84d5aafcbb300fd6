"""
Fixtures for tests of nodes; pytest loads them wherever hwcheck is installed, and nothing else until one is used.

``verdict``      :class:`hwcheck.findings.NodeVerdict` of the node of testinfra's ``host``
``snapshot``     its facts
``finding``      ``finding("nvlink.active")``: true when the check is right; skips the test where it does not apply
``baseline``     ``baseline("hbm.copy").min``: results that were measured; skips the test where there are none

Measured results come from a run (``--hwcheck-run RUN.json``, of ``hwcheck baseline`` or ``accept``): a test must never
begin to measure by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from hwcheck.facts import Snapshot
    from hwcheck.findings import NodeVerdict
    from hwcheck.suite.judging import Bench
    from hwcheck.suite.views import BaselineView, FindingView

NODE_PROPERTY = "hwcheck_node"
"""Property of a test in JUnit: which node it is of. Its name says so too, among the parameters of the test."""
_BENCH = pytest.StashKey["Bench"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare options."""
    group = parser.getgroup("hwcheck")
    group.addoption("--hwcheck-site", action="append", default=[], type=Path, metavar="FILE",
                    help="a YAML layer on top of every profile")  # fmt: skip
    group.addoption("--hwcheck-profile", default="", metavar="NAME", help="judge by this profile; default: recognised")
    group.addoption("--hwcheck-waivers", default=None, type=Path, metavar="FILE", help="accepted findings (YAML)")
    group.addoption("--hwcheck-tier", choices=("quick", "deep"), default="quick", help="how much to read of a node")
    group.addoption("--hwcheck-run", default=None, type=Path, metavar="RUN.json",
                    help="take findings and measured results of this run, and read no node")  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Write down of which node a test is, before anything of it can fail."""
    host = getattr(getattr(item, "callspec", None), "params", {}).get("_testinfra_host")
    if host is not None:
        item.user_properties.append((NODE_PROPERTY, str(getattr(host.backend, "hostname", ""))))


def _bench(config: pytest.Config) -> Bench:
    if _BENCH not in config.stash:
        from hwcheck.suite.judging import Bench  # noqa: PLC0415 - the parsers and checks, in every pytest run otherwise

        config.stash[_BENCH] = Bench(config.option)
    return config.stash[_BENCH]


@pytest.fixture(scope="module")
def verdict(host: Any, request: pytest.FixtureRequest) -> NodeVerdict:
    """Return what is said of the node; it is read once a session."""
    return _bench(request.config).verdict(host)


@pytest.fixture(scope="module")
def snapshot(host: Any, request: pytest.FixtureRequest) -> Snapshot:
    """Return the facts of the node; skips with ``--hwcheck-run``, which has none."""
    found = _bench(request.config).snapshot(host)
    if found is None:
        pytest.skip("no facts: the findings are those of a run, or the node was not reached")
    return found


@pytest.fixture(scope="module")
def finding(verdict: NodeVerdict) -> Callable[..., FindingView]:
    """Return a function: check id, subject ("" for all) → the findings."""
    from hwcheck.findings import Status  # noqa: PLC0415 - as above
    from hwcheck.suite.judging import demand_known  # noqa: PLC0415
    from hwcheck.suite.views import FindingView  # noqa: PLC0415

    def find(check: str, subject: str = "") -> FindingView:
        demand_known(check)
        found = [one for one in verdict.findings if one.check == check and subject in ("", one.subject.id)]
        view = FindingView(check, tuple(found))
        if view.status is Status.SKIP and not any(one.waived for one in found):
            pytest.skip(found[0].message if found else f"{check} was not judged")
        return view

    return find


@pytest.fixture(scope="module")
def baseline(verdict: NodeVerdict) -> Callable[[str], BaselineView]:
    """Return a function: name of a measurement → its results."""
    from hwcheck.suite.views import baseline_of  # noqa: PLC0415 - as above

    def find(name: str) -> BaselineView:
        view = baseline_of(name, verdict.measurements, verdict.findings)
        if view is None:
            pytest.skip(f"{name} was not measured; name a run that did: --hwcheck-run RUN.json")
        return view

    return find
