"""What ``hwcheck apply`` refuses before a node is asked, and how it shows what nodes say."""

from __future__ import annotations

from pathlib import Path

import pytest

from hwcheck.apply.ansible import NodeResult
from hwcheck.apply.run_folder import RunFolder
from hwcheck.apply.words import plain, printable
from hwcheck.cli.applying import _print_dry, _tell
from hwcheck.cli.main import main
from hwcheck.errors import UsageError

Capture = pytest.CaptureFixture[str]
ESCAPE = "\x1b]0;title\x07\u202e"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--wave", "0"], "no size of a wave: '0'"),
        (["--wave", "1,many"], "no size of a wave: 'many'"),
        (["--drain", " "], "--drain: ' ' is no command"),
        (["--drain", "true", "--undrain", "'"], "--undrain: No closing quotation"),
    ],
)
def test_options_of_the_roll_out_are_looked_at_first(
    words: list[str], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """Before anything is read, a run begins or anybody is asked for consent."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert main(["apply", "-w", "no-such-node.invalid", "--yes", *words]) == 2
    assert why in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("state", "code", "words"), [("refused", 3, "has changed nothing"), ("good", 0, "takes it back")]
)
def test_a_run_that_changed_nothing_offers_no_rollback(
    state: str, code: int, words: str, tmp_path: Path, capsys: Capture
) -> None:
    """It can be tried again: the node may be idle by then."""
    run = RunFolder.new(tmp_path, {}, {}, "a test")
    run.set_state(["n1"], state)
    assert _tell(run, "", short=False) == code
    assert words in capsys.readouterr().out.splitlines()[-1]


@pytest.mark.parametrize("name", ["../../evil", "a/b", "/etc/x", ".hidden", "a b", "x" * 300, "-x"])
def test_a_node_cannot_choose_where_files_of_a_run_lie(name: str, tmp_path: Path) -> None:
    """An image says itself what it is called; its name is refused where it is no host's."""
    run = RunFolder.new(tmp_path / "runs", {}, {}, "a test")
    with pytest.raises(UsageError, match="no name of a node"):
        run.give(name, [], [])
    with pytest.raises(UsageError, match="no name of a node"):
        run.read(f"journal/{name}.json")
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["lock", "plan.json"]


def test_an_image_of_a_hostile_name_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """Before a run begins; the image stays as it was."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "image/etc/security").mkdir(parents=True)
    (tmp_path / "image/etc/hostname").write_text("../../../../evil\n", encoding="utf-8")
    (tmp_path / "image/etc/security/limits.conf").write_text("* - memlock 64\n", encoding="utf-8")
    before = sorted(tmp_path.joinpath("image").rglob("*"))
    assert main(["apply", "--root", str(tmp_path / "image"), "--profile", "hgx-h200", "--yes"]) == 2
    assert "no name of a node: '../../../../evil'" in capsys.readouterr().err
    assert sorted(tmp_path.joinpath("image").rglob("*")) == before
    assert not list(tmp_path.rglob("*evil*"))
    assert not list(tmp_path.rglob("run*.json"))


def test_what_a_node_would_write_is_shown_without_its_escapes(capsys: Capture) -> None:
    """Neither in the words of a step nor in the text of a file."""
    step = {"status": "refused", "id": "a.b", "subject": ESCAPE, "key": "k", "value": "1", "why": f"said {ESCAPE}"}
    _print_dry(NodeResult(ok=True, results=[step], differences=[f"-old{ESCAPE}\n+new\tline\n"]))
    _print_dry(NodeResult(ok=False, why=ESCAPE))
    shown = capsys.readouterr().out
    assert not [char for char in shown if not char.isprintable() and char not in "\n\t"]
    assert "-old\\x1b]0;title\\x07\\u202e\n+new\tline\n" in shown


def test_texts_are_made_fit_for_a_terminal() -> None:
    """One line, of bounded length; of a text of several lines the lines stay."""
    assert plain(f"a\n b{ESCAPE}") == "a b ]0;title"
    assert len(plain("x" * 10_000)) == 500
    assert printable("a\n\tb\r\x9b") == "a\n\tb\\r\\x9b"
