"""What software can fix is fixed: planned, predicted, applied, right on fresh evidence, kept over a reboot, undone."""

from __future__ import annotations

from pathlib import Path

import pytest

from hwcheck.lab.host.lab import missing
from tests.apply.fixing import FixBench, each_fault_once

pytestmark = [pytest.mark.lab, pytest.mark.slow]


def test_a_fleet_of_fixable_faults_is_fixed_and_taken_back(tmp_path: Path) -> None:
    """
    Each fault on one platform, as one fleet; ``python -m tests.apply.fixing`` does all platforms.

    Check mode foretells what is changed; rollback gives files and findings back; a second plan is empty and a second
    apply begins no run; after a reboot every node passes.
    """
    lacks = missing()
    if lacks:
        pytest.skip(f"the lab's host form needs {'; '.join(lacks)}")
    bench = FixBench(tmp_path, each_fault_once())
    try:
        bench.take_back()
        bench.for_good()
    finally:
        bench.close()
    assert {row.name: row.wrong for row in bench.rows if row.wrong} == {}
