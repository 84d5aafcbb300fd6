"""``hwcheck completion``: real shells complete verbs, options and names, without starting Python."""

from __future__ import annotations

import os
import pty
import select
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hwcheck.cli.completion import SHELLS
from hwcheck.cli.main import main

RUN = "20261201-131251-9581"
CASES = (
    ("hwcheck coll", {"collect"}),
    ("hwcheck check --prof", {"--profile"}),
    ("hwcheck check --profile hgx-b", {"hgx-b200", "hgx-b300"}),
    ("hwcheck check --only nv", {"nvlink"}),
    ("hwcheck explain pcie.ac", {"pcie.acs"}),
    ("hwcheck explain kernel_a", {"kernel_argument"}),
    ("hwcheck explain sxid.2003", {"sxid.20034"}),
    ("hwcheck lab up --fault acs", {"acs-on"}),
    ("hwcheck lab break lab-1 governor", {"governor-powersave"}),
    ("hwcheck baseline r", {"run", "record"}),
    ("hwcheck baseline run --test load-l", {"load-latency"}),
    ("hwcheck rollback ", {RUN}),
    ("hwcheck apply --resume 2", {RUN}),
    ("hwcheck plan --site si", {"site.yaml"}),
)
BASH = """
source {script}
complete_it() {{
    COMP_WORDS=("$@" "$last"); COMP_CWORD=$#; COMP_LINE="$* $last"; COMP_POINT=${{#COMP_LINE}}
    _shtab_hwcheck hwcheck "$last" "${{@: -1}}"
    printf '%s\\n' "${{COMPREPLY[@]}}"
}}
last={last}
complete_it {words}
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with the script of each shell as ``_SHELL``, a kept run, and a file to complete."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "state/hwcheck/runs" / RUN).mkdir(parents=True)
    (folder / "site.yaml").touch()
    for shell in SHELLS:
        done = subprocess.run(
            [sys.executable, "-m", "hwcheck", "completion", shell], capture_output=True, text=True, check=True
        )
        (folder / f"_{shell}").write_text(done.stdout, encoding="utf-8")
    (folder / "zsh").mkdir()
    (folder / "_zsh").rename(folder / "zsh/_hwcheck")
    return folder


def environment(home: Path) -> dict[str, str]:
    """Return an environment in which nothing but the shell's own tools is found: no hwcheck, no Python of ours."""
    return {"PATH": "/usr/bin:/bin", "HOME": str(home), "XDG_STATE_HOME": str(home / "state"), "TERM": "dumb"}


def in_bash(home: Path, line: str) -> str:
    """Return what bash offers for a line."""
    *words, last = line.split(" ")
    script = BASH.format(script=home / "_bash", last=shlex.quote(last), words=shlex.join(words))
    done = subprocess.run(
        ["bash", "--norc", "-c", script], env=environment(home), cwd=home, capture_output=True, text=True, check=True
    )
    return done.stdout


def in_fish(home: Path, line: str) -> str:
    """Return what fish offers for a line, without the descriptions."""
    script = f"source {home / '_fish'}; complete -C {shlex.quote(line)}"
    done = subprocess.run(
        ["fish", "--no-config", "-c", script],
        env=environment(home),
        cwd=home,
        capture_output=True,
        text=True,
        check=True,
    )
    return "\n".join(told.partition("\t")[0] for told in done.stdout.splitlines())


def in_zsh(home: Path, line: str, offered: set[str]) -> str:
    """Type a line and two TABs into a zsh on a terminal; returns what it shows then, once that is what is wanted."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(home)
        os.execvpe("zsh", ["zsh", "-f"], environment(home))  # noqa: S606 - the shell is what is tried
    try:
        start = (
            "stty -echo cols 200; PS1=; fpath=($PWD/zsh $fpath); autoload -U compinit; compinit -u -D; echo 'rea''dy'\n"
        )
        os.write(terminal, start.encode())
        until(terminal, lambda told: "ready" in told)
        os.write(terminal, f"{line}\t\t".encode())
        return until(terminal, lambda told: all(name in told for name in offered))
    finally:
        os.write(terminal, b"\x03\x15exit\n")
        os.close(terminal)
        os.waitpid(child, 0)


def until(terminal: int, enough: Callable[[str], bool], most: float = 10.0) -> str:
    """Read from a terminal until it is enough, or for so many seconds."""
    told, end = b"", time.monotonic() + most
    while time.monotonic() < end and not enough(told.decode(errors="replace")):
        if select.select([terminal], [], [], 0.05)[0]:
            told += os.read(terminal, 65536)
    return told.decode(errors="replace")


@pytest.mark.parametrize(("line", "offered"), CASES)
def test_bash_completes(home: Path, line: str, offered: set[str]) -> None:
    """Verbs, options and names are offered, and nothing else."""
    assert set(in_bash(home, line).split()) == offered


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
@pytest.mark.parametrize(("line", "offered"), CASES)
def test_fish_completes(home: Path, line: str, offered: set[str]) -> None:
    """What bash offers, fish offers too; it may add files where a file is wanted."""
    assert offered <= set(in_fish(home, line).split())


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed")
@pytest.mark.parametrize(("line", "offered"), CASES)
def test_zsh_completes(home: Path, line: str, offered: set[str]) -> None:
    """Typed into a real zsh, a line is completed to the one name, or the names are listed."""
    told = in_zsh(home, line, offered)
    assert {name for name in offered if name not in told} == set()


def test_another_shell_is_refused() -> None:
    """A shell that has no script is a usage error."""
    with pytest.raises(SystemExit, match="2"):
        main(["completion", "ksh"])


def test_other_verbs_do_not_load_it() -> None:
    """What makes the scripts is loaded only by this verb: no other starts slower for it."""
    code = "import sys; from hwcheck.cli.main import build_parser; build_parser(); print('shtab' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
