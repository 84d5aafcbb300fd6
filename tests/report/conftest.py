"""A browser and a page for the tests of the HTML report."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.report.browser import CHROMIUM, Browser
from tests.report.runs import accepted, lab_verdicts, measured, run_of, written


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests of a file: its start takes longer than they do."""
    if CHROMIUM is None:
        pytest.skip("no Chromium (Debian package chromium)")
    made = Browser(tmp_path_factory.mktemp("browser") / "profile")
    yield made
    made.close()


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Page of a healthy and a faulty lab node, with measurements, stages and a change."""
    folder = tmp_path_factory.mktemp("fleet")
    run = run_of(*lab_verdicts(folder / "lab"))
    measured(run, "gpu-002")
    accepted(run, "gpu-002")
    return written(folder, run)
