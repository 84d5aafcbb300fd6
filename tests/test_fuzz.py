"""A small seed of ``./run bench fuzz``: hostile and broken texts never end in a traceback."""

from __future__ import annotations

import pytest

from tests.bench.fuzz import run


@pytest.mark.parametrize("seed", range(4))
def test_mutated_outputs_never_end_in_a_traceback(seed: int) -> None:
    """Outputs that were cut, spliced and garbled are judged or refused, without a traceback and quickly."""
    count, failures, longest = run(seed, 250)
    assert count == 250
    assert dict(failures) == {}
    assert longest < 5
