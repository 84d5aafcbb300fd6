"""The site's tests as a step of an acceptance: only tests that ran and passed are a pass."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest

from hwcheck.checks.coverage import SITE_TESTS
from hwcheck.cli.accept_folder import AcceptFolder
from hwcheck.cli.accept_suite import Suite
from hwcheck.errors import UsageError
from hwcheck.findings import Finding, NodeVerdict, Status

pytest.importorskip("testinfra")


def command_line(*paths: Path | str, **more: Any) -> argparse.Namespace:
    """Return the verb's arguments."""
    told = {"suite": [str(path) for path in paths], "inventory": [], "nodes": "", "user": "", "ssh_config": None}
    return argparse.Namespace(**{**told, **more})


def verdict(name: str, **about: Any) -> NodeVerdict:
    """Return a node that answered."""
    return NodeVerdict(name, "hgx-h200", "name", [], about={"boot_id": "b1", **about})


def judge(tmp_path: Path, text: str, *nodes: str, seconds: float = 120.0, **more: Any) -> dict[str, Finding]:
    """Run one file of tests over nodes; returns the finding of each."""
    (tmp_path / "test_site.py").write_text(text, encoding="utf-8")
    verdicts = [verdict(name) for name in nodes]
    home = tmp_path / "run"
    home.mkdir(exist_ok=True)
    folder = AcceptFolder(home, {"stages": []})
    Suite(command_line(tmp_path / "test_site.py", **more), seconds).run(folder, verdicts)
    assert [stage["node"] for stage in folder.record["stages"]] == list(nodes)
    return {one.node: one.findings[-1] for one in verdicts}


@pytest.mark.parametrize(("text", "status", "words"), [
    ("def test_a(host): assert host", "pass", "(1)"),
    ("def test_a(): pass", "pass", "(1)"),
    ("def test_a(host): assert not host", "fail", "1 of the site's tests fail: test_a[local]"),
    ("def test_a(): assert 0", "fail", "test_a"),
    ("import nothing_of_that_name", "fail", "test_site"),
    ("def test_a(no_such_fixture): pass", "fail", "test_a"),
    ("import pytest\n@pytest.fixture\ndef bad(host): raise OSError\ndef test_a(bad): pass", "fail", "test_a[local]"),
    ("", "unknown", "pytest ended with 5"),
    ("import os; os._exit(9)", "unknown", "pytest ended with 9"),
    ("import pytest; pytest.exit('enough')", "fail", "test_site"),
    ("import pytest\ndef test_a(host): pytest.skip('not here')", "skip", "all of the site's tests (1)"),
])  # fmt: skip
def test_only_tests_that_ran_and_passed_are_a_pass(text: str, status: str, words: str, tmp_path: Path) -> None:
    """A file that cannot be imported fails; none collected, or a pytest that died, is unknown."""
    found = judge(tmp_path, text, "this-host")["this-host"]
    assert (found.check, found.status) == (SITE_TESTS, Status(status)), found.message
    assert words in found.message


def test_tests_that_hang_are_ended_and_unknown(tmp_path: Path) -> None:
    """With what they had started."""
    text = "import time\ndef test_a(host):\n    host.run('echo begun')\n    time.sleep(600)\n"
    found = judge(tmp_path, text, "this-host", seconds=6.0)["this-host"]
    assert found.status is Status.UNKNOWN
    assert "did not end within 6 s" in found.message


FLEET = """
import pytest, testinfra

@pytest.mark.parametrize("gpu", ["gpu[0]", "gpu1"])
def test_first(host, gpu):
    assert host.backend.hostname != "n2"

@pytest.mark.parametrize("gpu", [0])
def test_last(gpu, host):
    if host.backend.hostname == "n3":
        pytest.skip("none of its kind")
"""


def test_a_failing_test_is_of_its_own_node(tmp_path: Path) -> None:
    """Whatever other parameters it has, and in which order."""
    found = judge(tmp_path, FLEET, "n1", "n2", "n3", nodes="n[1-3]")
    assert {name: str(one.status) for name, one in found.items()} == {"n1": "pass", "n2": "fail", "n3": "pass"}
    assert found["n2"].message.startswith("2 of the site's tests fail: test_first[ssh://n2-gpu[0]]")


def test_what_is_of_no_node_is_of_all(tmp_path: Path) -> None:
    """A file that cannot be imported lets no node of a fleet pass."""
    found = judge(tmp_path, "import nothing_of_that_name", "n1", "n2", nodes="n[1-2]")
    assert [one.status for one in found.values()] == [Status.FAIL, Status.FAIL]


def test_a_node_that_did_not_answer_is_not_tested(tmp_path: Path) -> None:
    """It is unknown already; a failing login is no failing test."""
    (tmp_path / "test_site.py").write_text("def test_a(host): pass", encoding="utf-8")
    lost = NodeVerdict("n9", "generic", "none", [])
    Suite(command_line(tmp_path, nodes="n9")).run(AcceptFolder(tmp_path, {"stages": []}), [lost])
    assert lost.findings == []


def test_tests_that_are_not_there_are_said_before_anything_is_done(tmp_path: Path) -> None:
    """And so is more than one inventory, of which testinfra reads one only."""
    with pytest.raises(UsageError, match="no such file"):
        Suite(command_line(tmp_path / "none.py"))
    with pytest.raises(UsageError, match="one inventory"):
        Suite(command_line(tmp_path, inventory=["a.yaml", "b.yaml"]))
