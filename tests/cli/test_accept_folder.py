"""The record of an acceptance: what it was begun with counts to its end, and one node is in one acceptance only."""

from __future__ import annotations

import argparse
import datetime as dt
import json
from pathlib import Path

import pytest

from hwcheck.cli.accept import add_parser
from hwcheck.cli.accept_folder import DONE, AcceptFolder
from hwcheck.errors import UsageError
from tests.cli.answering import home

NOW = dt.datetime(2026, 12, 1, 16, 5, tzinfo=dt.UTC)


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home(tmp_path, monkeypatch)


def typed(*words: str) -> argparse.Namespace:
    """Return the arguments of a command line."""
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    return parser.parse_args(["accept", *words])


def begun(*words: str) -> AcceptFolder:
    """Begin an acceptance."""
    return AcceptFolder.new(typed(*words), NOW)


def test_an_acceptance_goes_on_with_the_options_it_was_begun_with(tmp_path: Path) -> None:
    """Paths are taken from the folder it was begun in; consent and quiet are of the present call."""
    words = ["-w", "n[1-2]", "--test", "load-hbm", "-o", str(tmp_path / "out"), "--suite", "site.py", "--valid", "30d"]
    folder = AcceptFolder.load(begun(*words, "--yes").name)
    told = folder.options(typed("--resume", folder.name, "-q"), typed())
    assert (told.nodes, told.tests, told.output, told.valid) == ("n[1-2]", ["load-hbm"], tmp_path / "out", 30)
    assert told.suite == [str(Path("site.py").resolve())]
    assert (told.yes, told.quiet) == (False, True)


def test_the_same_options_once_more_are_no_others() -> None:
    """Whoever takes the line from the shell's history and adds --resume means the same."""
    folder = begun("-w", "n1", "--no-fix")
    assert folder.options(typed("-w", "n1", "--no-fix", "--resume", folder.name), typed()).no_fix is True


@pytest.mark.parametrize(("words", "told"), [
    (["--no-fix"], "leave out --no-fix"), (["--test", "load-disk"], "leave out --test"),
    (["--suite", "b.py", "--after", "gpu1"], "leave out --suite, --after"), (["--key", "other.pem"], "leave out --key"),
])  # fmt: skip
def test_other_options_are_refused(words: list[str], told: str) -> None:
    """They would not count, and nobody would notice."""
    folder = begun("-w", "n1")
    with pytest.raises(UsageError, match=told):
        folder.options(typed("--resume", folder.name, *words), typed())


@pytest.mark.parametrize("text", [
    "", "{", "[]", "null", '{"format": "hwcheck.accept_run/9"}',
    '{"format": "hwcheck.accept_run/1", "options": {}, "stages": [], "apply": "", "phase": "begun", "begun": ""}',
    '{"format": "hwcheck.accept_run/1", "options": {}, "stages": {}, "apply": "", "phase": "fix", "begun": ""}',
])  # fmt: skip
def test_a_damaged_record_is_refused(text: str) -> None:
    """In one sentence, before any node is asked."""
    folder = begun()
    (folder.path / "accept.json").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=r"accept\.json"):
        AcceptFolder.load(folder.name)


def test_a_record_of_another_version_is_refused() -> None:
    """It lacks an option that this one has, and nobody knows what was meant."""
    folder = begun()
    del folder.record["options"]["no_fix"]
    with pytest.raises(UsageError, match="another version of hwcheck: it has no no_fix"):
        folder.options(typed(), typed())


@pytest.mark.parametrize("name", ["", "nothing", "../runs", ".nodes"])
def test_what_was_never_begun_cannot_go_on(name: str) -> None:
    """The last ones are named."""
    known = begun().name
    with pytest.raises(UsageError, match=f"no acceptance .*; the last are {known}"):
        AcceptFolder.load(name)


def test_a_node_is_in_one_acceptance_only() -> None:
    """The other one is told which; once the first has ended it is free."""
    first, second = begun(), begun()
    with second.locked():
        with first.locked():
            first.claim(["n1", "../n[2]", ""])
            first.claim(["n1"])
            for name in ("n1", "../n[2]", ""):
                with pytest.raises(UsageError, match=f"is being accepted by run {first.name}"):
                    second.claim([name])
            second.claim(["n3"])
        second.claim(["n1"])


def test_two_controllers_do_not_work_on_one_acceptance() -> None:
    """The second one is told."""
    folder = begun()
    with folder.locked(), pytest.raises(UsageError, match="another hwcheck"), AcceptFolder.load(folder.name).locked():
        pass


def test_evidence_of_two_attempts_lies_side_by_side() -> None:
    """Whatever the clock says."""
    folder = begun()
    for number in (1, 2):
        place = folder.evidence("before")
        place.mkdir()
        assert place.name == f"before-{number}"
    assert folder.evidence("after").name == "after-1"


def test_how_far_it_has_come_is_on_disk_at_once() -> None:
    """For whoever goes on after a kill."""
    folder = begun()
    folder.note("check", [("n1", "pass")], NOW)
    folder.go_to(DONE, code=3)
    told = json.loads((folder.path / "accept.json").read_text())
    assert (told["phase"], told["code"], told["stages"][0]["outcome"]) == (DONE, 3, "pass")
