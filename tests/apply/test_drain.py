"""Nodes are taken out of work by Slurm or by a command of the site."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from hwcheck.apply.drain import Drain, DrainError, of
from hwcheck.errors import UsageError

SCONTROL = """#!/bin/sh
echo "$*" >>{folder}/calls
state=$(cat {folder}/state)
case "$*" in
*show*) echo "NodeName=n1 Arch=x86_64 State=$state ThreadsPerCore=2 Reason=$(cat {folder}/reason) [root@2026-12-01]" ;;
*State=DRAIN*) echo "$state+DRAIN" >{folder}/state; echo "hwcheck run-1" >{folder}/reason ;;
*State=RESUME*) echo IDLE >{folder}/state ;;
esac
"""


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put an scontrol on PATH whose node is idle."""
    tool = tmp_path / "scontrol"
    tool.write_text(SCONTROL.format(folder=tmp_path), encoding="utf-8")
    tool.chmod(0o755)
    (tmp_path / "state").write_text("IDLE\n", encoding="utf-8")
    (tmp_path / "reason").write_text("\n", encoding="utf-8")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


def calls(folder: Path) -> list[str]:
    """Return what scontrol was asked to change."""
    return [line for line in (folder / "calls").read_text(encoding="utf-8").splitlines() if "update" in line]


def test_slurm_is_drained_with_our_reason_and_resumed(slurm: Path) -> None:
    """The reason names the run."""
    drain = of("slurm", "", 5)
    assert drain.drain("n1", "hwcheck run-1")
    drain.undrain("n1", "hwcheck run-1")
    assert calls(slurm) == [
        "update NodeName=n1 State=DRAIN Reason=hwcheck run-1", "update NodeName=n1 State=RESUME",
    ]  # fmt: skip


def test_a_drain_of_somebody_else_is_left(slurm: Path) -> None:
    """Worked on, and neither drained again nor resumed."""
    (slurm / "state").write_text("IDLE+DRAIN\n", encoding="utf-8")
    (slurm / "reason").write_text("bad fan, alice\n", encoding="utf-8")
    drain = of("slurm", "", 5)
    assert not drain.drain("n1", "hwcheck run-1")
    drain.undrain("n1", "hwcheck run-1")
    assert calls(slurm) == []


def test_a_node_with_jobs_is_waited_for_and_given_back(slurm: Path) -> None:
    """After the time-out our own drain is taken back, and the node counts as busy."""
    (slurm / "state").write_text("MIXED\n", encoding="utf-8")
    with pytest.raises(DrainError, match="still has jobs after 0 s"):
        of("slurm", "", 0).drain("n1", "hwcheck run-1")
    assert calls(slurm)[-1] == "update NodeName=n1 State=RESUME"


def command(words: str, back: str = "", timeout: float = 5) -> Drain:
    """Return a drain by command."""
    return of(words, back, timeout)


def test_a_command_gets_the_name_of_the_node_and_the_reason(tmp_path: Path) -> None:
    """As its last argument, without a shell; the reason stands in the environment."""
    tool = tmp_path / "out of work"
    tool.write_text(f'#!/bin/sh\necho "$* $HWCHECK_REASON" >>"{tmp_path}/said"\n', encoding="utf-8")
    tool.chmod(0o755)
    drain = command(f"'{tool}' out", f"'{tool}' back")
    assert drain.drain("$(reboot)", "hwcheck run-1")
    drain.undrain("n1", "hwcheck run-1")
    said = (tmp_path / "said").read_text(encoding="utf-8")
    assert said == "out $(reboot) hwcheck run-1\nback n1 hwcheck run-1\n"


@pytest.mark.parametrize(
    ("words", "why"),
    [("/no/such/tool", "is not there"), ("false", "ended with 1"), ("sh -c 'sleep 60' --", "took more than")],
)
def test_a_command_that_does_not_do_it_is_told(words: str, why: str) -> None:
    """Nothing is written to that node."""
    with pytest.raises(DrainError, match=why):
        command(words, timeout=0.3).drain("n1", "hwcheck run-1")


def test_what_a_command_leaves_behind_is_not_waited_for(tmp_path: Path) -> None:
    """A background process keeps its output open; in time or too late, the command's own end counts."""
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\nsleep 30 &\nsleep $1\n", encoding="utf-8")
    tool.chmod(0o755)
    begun = time.monotonic()
    assert command(f"{tool} 0").drain("n1", "hwcheck run-1")
    with pytest.raises(DrainError, match="took more than"):
        command(f"{tool} 20", timeout=0.3).drain("n1", "hwcheck run-1")
    assert time.monotonic() - begun < 10


def test_what_a_command_says_is_shown_as_one_plain_line(tmp_path: Path) -> None:
    """Neither escapes nor bytes of another encoding reach the terminal or stop the run."""
    tool = tmp_path / "tool"
    tool.write_bytes(b"#!/bin/sh\nprintf 'no\\033[31m\\377\\nway\\n' >&2\nexit 3\n")
    tool.chmod(0o755)
    with pytest.raises(DrainError) as told:
        command(str(tool)).drain("n1", "hwcheck run-1")
    assert str(told.value) == f"{tool} ended with 3: no [31m\ufffd way"


def test_a_command_that_cannot_be_run_refuses_the_node(tmp_path: Path) -> None:
    """A file that is no program says so; the roll-out is not torn off by it."""
    (tmp_path / "notes").write_text("", encoding="utf-8")
    with pytest.raises(DrainError, match="cannot be run: Permission denied"):
        command(str(tmp_path / "notes")).drain("n1", "hwcheck run-1")


@pytest.mark.parametrize(("words", "back"), [(" ", ""), ("'", ""), ("true", " "), ("true", "'")])
def test_a_blank_command_is_none(words: str, back: str) -> None:
    """The name of a node would be run as the program."""
    with pytest.raises(UsageError, match=r"--(un)?drain"):
        command(words, back)


def test_a_drain_that_took_too_long_is_undone(tmp_path: Path) -> None:
    """The node would stay out of work with nobody who knows of it; what a command itself calls failed is left."""
    tool = tmp_path / "tool"
    tool.write_text(f'#!/bin/sh\necho "$*" >>{tmp_path}/said\n$1\n', encoding="utf-8")
    tool.chmod(0o755)
    for words in ("'sleep 20'", "false"):
        with pytest.raises(DrainError):
            command(f"{tool} {words}", f"{tool} true", timeout=0.3).drain("n1", "hwcheck run-1")
    assert (tmp_path / "said").read_text(encoding="utf-8") == "sleep 20 n1\ntrue n1\nfalse n1\n"
