"""Public cases and captures with answer keys, where the collection lies beside the checkout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.shared
@pytest.mark.parametrize("part", ["cases", "evidence"])
def test_every_public_case_is_judged_right(shared: Path, root: Path, part: str) -> None:
    """The independent scorer finds every case of the collection right."""
    command = f"{sys.executable} -m hwcheck check --evidence {{input}} --format json"
    done = subprocess.run(
        [sys.executable, str(shared / "bin/score-cases"), "--command", command, str(shared / part)],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    wrong = [line for line in done.stdout.splitlines() if not line.endswith("PASS")]
    assert done.returncode == 0, "\n".join(wrong)
