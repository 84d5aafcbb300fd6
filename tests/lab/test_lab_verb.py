"""``hwcheck lab`` from the command line, in tree form."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hwcheck.cli.main import main


def lab(home: Path, *words: str) -> int:
    """Run a deed on a lab in a folder."""
    return main(["lab", "--dir", str(home), *words])


def test_life_of_a_node(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Up says how to judge a node, and that command works; break, list, mend and down do what they say."""
    home = tmp_path / "lab"
    assert lab(home, "up", "--form", "tree", "-n", "2", "--platform", "hgx-h200", "--platform", "gb200") == 0
    told = capsys.readouterr().out
    assert "tree form (asked for): lab-1, lab-2" in told
    assert lab(home, "break", "lab-1", "port-down:1", "numa-balancing") == 0
    assert lab(home, "list") == 0
    assert "lab-1  hgx-h200  tree form, boot 1  port-down:1, numa-balancing" in capsys.readouterr().out
    words = shlex.split(told.rpartition("judge one:")[2])[1:]
    words[words.index("hwcheck")] = "-m hwcheck"
    command = [sys.executable, "-m", "hwcheck", *" ".join(words).replace("-- -m", f"-- {sys.executable} -m").split()]
    done = subprocess.run(
        [*command, "--format", "json", "-q"],
        capture_output=True,
        text=True,
        check=False,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 1, done.stderr
    assert '"check": "rdma.port_down"' in done.stdout
    assert lab(home, "reboot", "lab-1") == 0
    assert "gone: port-down:1, numa-balancing" in capsys.readouterr().out
    assert lab(home, "mend", "lab-1") == 0
    assert lab(home, "down", "lab-1") == 0
    assert lab(home, "down") == 0
    assert not home.exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["mend", "lab-9"], "no lab node lab-9"),
        (["up", "--form", "tree", "--fault", "port-dwn"], "near it: port-down"),
        (["up", "--form", "tree", "--fault", "ssh-silent"], "only nodes in host form"),
        (["up", "--form", "tree", "--platform", "dgx"], "it has hgx-h200"),
        (["up", "--form", "tree", "--name", "../other"], "no host name: '../other-1'"),
    ],
)  # fmt: skip
def test_errors_say_what_to_do(tmp_path: Path, words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong wish is one sentence on stderr and exit code 2."""
    assert lab(tmp_path / "lab", *words) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "lab").exists()


def test_a_wish_that_fails_in_part_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither the first of two nodes is made where the second is there, nor the first of two faults put in."""
    home = tmp_path / "lab"
    assert lab(home, "up", "--form", "tree") == 0
    (home / "lab-1").rename(home / "lab-2")
    capsys.readouterr()
    assert lab(home, "up", "--form", "tree", "-n", "2") == 2
    assert lab(home, "break", "lab-2", "port-down:1", "nosuch") == 2
    assert lab(home, "break", "lab-2", "port-down:1", "ssh-silent") == 2
    assert capsys.readouterr().out == ""
    assert lab(home, "list") == 0
    assert capsys.readouterr().out.startswith("lab-2  hgx-h200  tree form, boot 1  healthy")
    assert not (home / "lab-1").exists()


def test_break_says_what_has_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A fault that only NVML shows changes no file, and is not told as if it did nothing."""
    home = tmp_path / "lab"
    assert lab(home, "up", "--form", "tree") == 0
    assert lab(home, "break", "lab-1", "clock-lock", "port-down:1") == 0
    told = capsys.readouterr().out
    assert "every GPU. (what NVML and the tools say changed)" in told
    assert "does not come up. (7 files changed)" in told


@pytest.mark.parametrize("state", ["", "{", '{"format": "hwcheck.lab/0"}'])
def test_what_is_no_node_is_told_as_such(tmp_path: Path, state: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody is sent to a down that would not find it."""
    home = tmp_path / "lab"
    (home / "lab-1").mkdir(parents=True)
    (home / "lab-1/state.json").write_text(state)
    assert lab(home, "up", "--form", "tree") == 2
    assert "lab-1 is there and no lab node; remove it" in capsys.readouterr().err


def test_a_node_of_another_version_can_be_taken_away(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And nothing else can be done with it."""
    home = tmp_path / "lab"
    (home / "lab-1").mkdir(parents=True)
    known = '{"format": "hwcheck.lab/1", "platform": "hgx-r400", "faults": ["flood"], "boot": 0}'
    (home / "lab-1/state.json").write_text(known)
    for deed in (["mend", "lab-1"], ["reboot", "lab-1"], ["break", "lab-1", "clock-lock"]):
        assert lab(home, *deed) == 2
        assert "another version of the lab has made lab-1" in capsys.readouterr().err
    assert lab(home, "down", "lab-1", "lab-1") == 0
    assert not home.exists()


def test_a_lab_up_that_is_killed_leaves_nothing_after_down(tmp_path: Path) -> None:
    """Whenever the kill comes, what was begun is found or has no name, and goes with the last node."""
    home = tmp_path / "lab"
    command = [sys.executable, "-m", "hwcheck", "lab", "--dir", str(home), "up", "--form", "tree", "-n", "40"]
    for _ in range(3):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and len(list(home.glob("*"))) < 3:
            time.sleep(0.001)
        process.kill()
        process.wait()
        (home / ".begun-left").mkdir()
        assert lab(home, "down") == 0
        assert not home.exists()


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_place_that_is_no_folder_is_told(tmp_path: Path, place: str, capsys: pytest.CaptureFixture[str]) -> None:
    """By each deed, without a traceback."""
    (tmp_path / "file").touch()
    for deed in (["up", "--form", "tree"], ["list"], ["down"]):
        assert lab(tmp_path / place, *deed) == 2
        assert "file" in capsys.readouterr().err


def test_faults_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Each fault stands with one sentence, where it exists, and whether a reboot cures it."""
    assert main(["lab", "faults"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(
        line.startswith("imex-down ") and "[gb200; a reboot cures it; act: start nvidia-imex]" in line for line in lines
    )
    assert any(line.startswith("ssh-silent ") and "host form only" in line for line in lines)
