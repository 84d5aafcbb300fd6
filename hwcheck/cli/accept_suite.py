"""Tests of the site as a step of an acceptance: pytest with hwcheck's fixtures, over the findings of this run."""

from __future__ import annotations

import argparse
import datetime as dt
import importlib.util
import json
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from hwcheck.checks.coverage import SITE_TESTS
from hwcheck.cli.accept_folder import AcceptFolder
from hwcheck.errors import UsageError
from hwcheck.facts import NODE
from hwcheck.findings import Finding, NodeVerdict, Status, Urgency
from hwcheck.report.json_run import run_object

_NEEDED = ("pytest", "testinfra")
_SECONDS = 3600.0


class Suite:
    """
    The site's tests.

    Args:
        arguments: of the verb; ``suite`` are files and folders of tests.

    Raises:
        UsageError: tests are named and cannot be run.
    """

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._paths = [str(Path(path).resolve()) for path in arguments.suite]
        self._arguments = arguments
        for path in self._paths:
            if not Path(path).exists():
                raise UsageError(f"--suite {path}: no such file")
        missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
        if self._paths and missing:
            raise UsageError(f"--suite needs {' and '.join(missing)}: pip install 'hwcheck[suite]'")

    def run(self, folder: AcceptFolder, verdicts: Sequence[NodeVerdict]) -> None:
        """Run the tests on all nodes that answered; what fails becomes a finding of its node."""
        if not self._paths:
            return
        began = dt.datetime.now(dt.UTC)
        result = folder.path / "suite.xml"
        result.unlink(missing_ok=True)
        with tempfile.TemporaryDirectory(prefix="hwcheck-suite-") as work:
            run = Path(work, "run.json")
            told = run_object(verdicts, "hwcheck", {"name": "auto", "hash": "0" * 16}, began.isoformat())
            run.write_text(json.dumps(told, default=str), encoding="utf-8")
            words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *self._hosts(verdicts),
                     f"--hwcheck-run={run}", f"--junitxml={result}", *self._paths]  # fmt: skip
            done = subprocess.run(  # noqa: S603 - files that the operator names
                words, cwd=work, capture_output=True, text=True, check=False, timeout=_SECONDS
            )
        if not result.exists():
            raise UsageError(f"--suite: pytest did not run: {(done.stdout + done.stderr).strip()[-500:]}")
        failed = _failed(result)
        for verdict in verdicts:
            verdict.findings.append(_finding(failed.get(verdict.node, [])))
        folder.note("suite", ((one.node, one.findings[-1].message) for one in verdicts), began)

    def _hosts(self, verdicts: Sequence[NodeVerdict]) -> list[str]:
        names = [verdict.node for verdict in verdicts]
        if self._arguments.inventory:
            words = [f"--ansible-inventory={path}" for path in self._arguments.inventory[:1]]
            return [f"--hosts={','.join(f'ansible://{name}' for name in names)}", *words]
        if self._arguments.nodes:
            return [f"--hosts={','.join(f'ssh://{name}' for name in names)}"]
        return ["--hosts=local://"]


def _finding(failed: list[str]) -> Finding:
    if not failed:
        return Finding(SITE_TESTS, NODE, Status.PASS, "the tests of the site pass")
    text = f"{len(failed)} of the site's tests fail: {'; '.join(failed[:4])}"
    return Finding(SITE_TESTS, NODE, Status.FAIL, text[:500], Urgency.MAINTENANCE)


def _failed(result: Path) -> dict[str, list[str]]:
    """Read which tests failed: node → their names; a test that is of no node is one of all."""
    found: dict[str, list[str]] = defaultdict(list)
    for case in ET.parse(result).getroot().iter("testcase"):  # noqa: S314 - of the pytest we have just run
        if {child.tag for child in case} & {"failure", "error"}:
            name, _, rest = case.get("name", "").partition("[")
            found[rest.partition("://")[2].partition("]")[0]].append(name)
    return found
