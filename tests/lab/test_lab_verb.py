"""``hwcheck lab`` from the command line, in tree form."""

from __future__ import annotations

import shlex
import subprocess
import sys
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
    ],
)  # fmt: skip
def test_errors_say_what_to_do(tmp_path: Path, words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong wish is one sentence on stderr and exit code 2."""
    assert lab(tmp_path / "lab", *words) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "lab").exists()


def test_faults_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Each fault stands with one sentence, where it exists, and whether a reboot cures it."""
    assert main(["lab", "faults"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("imex-down ") and "[gb200; a reboot cures it]" in line for line in lines)
    assert any(line.startswith("ssh-silent ") and "host form only" in line for line in lines)
