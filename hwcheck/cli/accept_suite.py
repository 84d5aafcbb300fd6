"""Tests of the site as a step of an acceptance: pytest with hwcheck's fixtures, over the findings of this run."""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hwcheck.checks.coverage import SITE_TESTS
from hwcheck.cli.accept_folder import AcceptFolder
from hwcheck.errors import UsageError
from hwcheck.facts import NODE
from hwcheck.findings import Finding, NodeVerdict, Status, Urgency
from hwcheck.report.json_run import run_object

_NEEDED = ("pytest", "testinfra")
_SECONDS = 3600.0
_BY_TESTS = ("pytest ended with 1:", "pytest ended with 2:")
"""Tests failed, or files of tests could not be imported."""
_NODE_PROPERTY = "hwcheck_node"
"""Property by which our plugin of pytest says of which node a test is; importing the plugin would need pytest."""
_LOCAL = "local"
"""What testinfra calls this machine."""


class Suite:
    """
    The site's tests.

    Args:
        arguments: of the verb; ``suite`` are files and folders of tests.
        seconds: that they may take.

    Raises:
        UsageError: tests are named and cannot be run.
    """

    def __init__(self, arguments: argparse.Namespace, seconds: float = _SECONDS) -> None:
        self._paths = [str(Path(path).resolve()) for path in arguments.suite]
        self._arguments = arguments
        self._seconds = seconds
        for path in self._paths:
            if not Path(path).exists():
                raise UsageError(f"--suite {path}: no such file")
        missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
        if self._paths and missing:
            raise UsageError(f"--suite needs {' and '.join(missing)}: pip install 'hwcheck[suite]'")
        if self._paths and len(arguments.inventory) > 1:
            raise UsageError(
                "--suite: testinfra reads one inventory; name one -i, a folder of them where there are more"
            )

    def run(self, folder: AcceptFolder, verdicts: Sequence[NodeVerdict]) -> None:
        """Run the tests on all nodes that answered; what comes of them becomes a finding of each."""
        answered = [verdict for verdict in verdicts if verdict.about]
        if not self._paths or not answered:
            return
        began = dt.datetime.now(dt.UTC)
        result = folder.path / "suite.xml"
        result.unlink(missing_ok=True)
        with tempfile.TemporaryDirectory(prefix="hwcheck-suite-") as work:
            run = Path(work, "run.json")
            told = run_object(answered, "hwcheck", {"name": "auto", "hash": "0" * 16}, began.isoformat())
            run.write_text(json.dumps(told, default=str), encoding="utf-8")
            wrong = self._pytest(work, [*self._hosts(answered), f"--hwcheck-run={run}", f"--junitxml={result}"])
        seen, wrong = _read(result, wrong, [verdict.node for verdict in answered], is_local=self._is_local)
        for verdict in answered:
            verdict.findings.append(_finding(seen[verdict.node], wrong))
        folder.note("suite", ((one.node, one.findings[-1].message) for one in answered), began)

    def _pytest(self, work: str, words: Sequence[str]) -> str:
        """Run pytest to its end; returns what it says where that is no verdict on any test, "" where it is."""
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words, *self._paths]
        with subprocess.Popen(  # noqa: S603 - files that the operator names
            command, cwd=work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", start_new_session=True,
        ) as process:  # fmt: skip
            try:
                said, _ = process.communicate(timeout=self._seconds)
            except subprocess.TimeoutExpired:
                return f"they did not end within {self._seconds:g} s"
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        last = " ".join(said.split())[-300:]
        return "" if process.returncode == 0 else f"pytest ended with {process.returncode}: {last}"

    @property
    def _is_local(self) -> bool:
        return not (self._arguments.inventory or self._arguments.nodes)

    def _hosts(self, verdicts: Sequence[NodeVerdict]) -> list[str]:
        names = [verdict.node for verdict in verdicts]
        if self._arguments.inventory:
            hosts = ",".join(f"ansible://{name}" for name in names)
            return [f"--hosts={hosts}", f"--ansible-inventory={self._arguments.inventory[0]}"]
        if self._is_local:
            return ["--hosts=local://"]
        user = f"{self._arguments.user}@" if self._arguments.user else ""
        config = [f"--ssh-config={self._arguments.ssh_config}"] if self._arguments.ssh_config else []
        return [f"--hosts={','.join(f'ssh://{user}{name}' for name in names)}", *config]


@dataclass(slots=True)
class _Seen:
    """What came of the tests on one node: names of those that failed, and how many passed and were skipped."""

    failed: list[str] = field(default_factory=list)
    passed: int = 0
    skipped: int = 0


def _finding(seen: _Seen, wrong: str) -> Finding:
    """Make the finding of a node; no test at all is no pass."""
    if seen.failed:
        text = f"{len(seen.failed)} of the site's tests fail: {'; '.join(seen.failed[:4])}"
        return Finding(SITE_TESTS, NODE, Status.FAIL, text[:500], Urgency.MAINTENANCE)
    if wrong or not (seen.passed or seen.skipped):
        text = f"the tests of the site could not be told: {wrong or 'there is none for this node'}"
        return Finding(SITE_TESTS, NODE, Status.UNKNOWN, text[:500], Urgency.MAINTENANCE)
    if not seen.passed:
        return Finding(SITE_TESTS, NODE, Status.SKIP, f"all of the site's tests ({seen.skipped}) are skipped here")
    return Finding(SITE_TESTS, NODE, Status.PASS, f"the tests of the site pass ({seen.passed})")


def _read(result: Path, wrong: str, nodes: Sequence[str], *, is_local: bool) -> tuple[dict[str, _Seen], str]:
    """
    Read what came of the tests on each node.

    What is of no node, or of one that was not asked for, is of all: a file that cannot be imported, a test without
    ``host``.

    Returns:
        Node → its tests; and what is wrong beside them, "" where failing tests explain how pytest ended.
    """
    seen = {name: _Seen() for name in nodes}
    try:
        cases = list(ET.parse(result).getroot().iter("testcase"))  # noqa: S314 - of the pytest we have just run
    except (OSError, ET.ParseError) as error:
        return seen, wrong or f"pytest has left no result: {error}"
    for case in cases:
        node = next((one.get("value") for one in case.iter("property") if one.get("name") == _NODE_PROPERTY), None)
        own = list(seen.values()) if node not in seen or (is_local and node == _LOCAL) else [seen[node]]
        kinds = {child.tag for child in case}
        for one in own:
            if kinds & {"failure", "error"}:
                one.failed.append(case.get("name", "?"))
            else:
                one.skipped += "skipped" in kinds
                one.passed += "skipped" not in kinds
    fails = any(one.failed for one in seen.values())
    return seen, "" if fails and wrong.startswith(_BY_TESTS) else wrong
