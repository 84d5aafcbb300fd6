"""Runs read back from their JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hwcheck.errors import UsageError
from hwcheck.pipeline import Pipeline
from hwcheck.profiles import ProfileSet
from hwcheck.readers import read_paths
from hwcheck.report.junit import render_junit
from hwcheck.report.run_reading import read_run, verdicts_of
from hwcheck.report.text import print_run
from tests.report.runs import run_of
from tests.report.samples import faulty, healthy

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("example", ["hgx-h200-faulty", "hgx-h200-healthy"])
def test_a_run_that_was_kept_reads_as_it_did_at_once(root: Path, capsys: Capture, example: str) -> None:
    """
    Text and JUnit of a run's JSON are those that check prints.

    All but the last line, which tells why checks were skipped: two of the reasons read alike.
    """
    pipeline = Pipeline(ProfileSet())
    (evidence,) = read_paths([str(root / "hwcheck/examples" / example)])
    verdicts = list(pipeline.judge_all(evidence))
    again = verdicts_of(run_of(*verdicts))
    assert render_junit(verdicts) == render_junit(again)
    print_run(verdicts, strict=False)
    expected = capsys.readouterr().out.splitlines()
    print_run(again, strict=False)
    found = capsys.readouterr().out.splitlines()
    places = [number for number, line in enumerate(expected) if "not applicable: " in line]
    assert 1 == len(places)
    expected[places[0]] = found[places[0]]
    assert expected == found


def test_nodes_of_one_name_stay_apart() -> None:
    """The same machine judged twice gives two verdicts again."""
    before, after = faulty(), healthy()
    after.node = before.node
    assert ["fail", "pass"] == [node.verdict for node in verdicts_of(run_of(before, after))]


WRONG: dict[str, tuple[str, Callable[[dict[str, Any]], Any]]] = {
    "another schema": (
        "not of schema hwcheck.run/1 but of 'hwcheck.run/2'",
        lambda run: run.update(schema="hwcheck.run/2"),
    ),
    "no list": ("no list of nodes", lambda run: run.pop("nodes")),
    "a row cut": ("findings 0 lacks message", lambda run: run["findings"][0].pop("message")),
    "a row of another kind": ("nodes 0 lacks about", lambda run: run["nodes"].__setitem__(0, [])),
    "an incident of nothing": ("findings that are not there", lambda run: run["incidents"][0].update(lead=999)),
    "no profile": ("no profile", lambda run: run.update(profile="x")),
    "no time": ("no verdict, or no time", lambda run: run.pop("started")),
}


@pytest.mark.parametrize("case", sorted(WRONG))
def test_what_is_no_whole_run_is_refused(case: str) -> None:
    """The sentence says what is missing; nothing of it is shown."""
    sentence, spoil = WRONG[case]
    run = run_of(faulty())
    spoil(run)
    with pytest.raises(UsageError, match=sentence):
        read_run(json.dumps(run), "run.json")


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '"hwcheck.run/1"', "[" * 100_000], ids=["", "list", "cut", "text", "deep"]
)
def test_other_json_is_no_run(text: str) -> None:
    """Empty, cut off, deep or of another form: told, without a traceback."""
    with pytest.raises(UsageError, match=r"run\.json is no"):
        read_run(text, "run.json")
