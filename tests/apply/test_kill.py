"""A controller that is killed leaves every change as it was, or as a journal says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hwcheck.lab.host.lab import missing
from tests.apply.killing import KillBench
from tests.lab.host_machine import login

pytestmark = [pytest.mark.lab, pytest.mark.slow]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KillBench]:
    """Start four lab nodes."""
    lacks = missing()
    if lacks:
        pytest.skip(f"the lab's host form needs {'; '.join(lacks)}")
    made = KillBench(tmp_path_factory.mktemp("kill"))
    yield made
    made.close()


@pytest.mark.parametrize(("share", "resume"), [(0.3, True), (0.5, False), (0.7, True), (0.9, False)])
def test_a_killed_roll_out_is_resumed_or_taken_back(share: float, *, resume: bool, bench: KillBench) -> None:
    """
    Whenever it was killed; ``python -m tests.apply.killing`` tries as many moments as are asked for.

    Nothing is changed that no journal knows, resuming brings every value about, and rollback restores every byte.
    """
    _, wrong = bench.kill_at(8.0 * share, resume=resume)
    assert wrong == []


def test_a_second_controller_is_told_who_is_at_work(bench: KillBench) -> None:
    """By name; and it changes nothing."""
    bench.plant_lease(bench.names[0], "other", "mallory@desk")
    try:
        told = bench.apply(bench.names[0])
    finally:
        login(bench.lab, bench.names[0], "rm /run/hwcheck/lease.json")
    assert told.returncode == 3
    assert "held by run other of mallory@desk" in told.stdout
    assert bench.all_as_before()
