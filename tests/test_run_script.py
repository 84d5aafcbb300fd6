"""
The script ``run``, with stand-ins for everything it starts.

A stand-in Python makes an "environment" of shell scripts, so that no test here needs the network or takes seconds. All
stand-ins write what they were asked to one file. PATH holds them and the few tools that the script may use, so a uv or
another Python of this machine is never seen.
"""

import os
import re
import shutil
import stat
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

# What the script and the stand-ins below may use of this machine.
TOOLS = ("basename", "cat", "chmod", "cksum", "cp", "dirname", "flock", "grep")
TOOLS += ("ln", "mkdir", "mktemp", "mv", "readlink", "rm", "sed", "tail", "timeout", "tr")
COMMANDS = ("demo", "hwcheck", "test", "lint", "bench", "setup", "help")

# Runs as the system's Python and, through a link, as .venv/bin/python. $FAKES/pip.sh, if there, is what pip does.
PYTHON = """#!/bin/sh
echo "python $*" >>"$FAKES/calls"
case "$1 $2" in
    "-c "*) echo "$0" ;;
    "-m venv")
        mkdir -p "$3/bin" && ln -s "$0" "$3/bin/python" && : >"$3/bin/pip" && chmod +x "$3/bin/pip"
        for tool in hwcheck ruff mypy ansible-lint; do cp "$FAKES/tool" "$3/bin/$tool"; done
        ;;
    "-m pip") [ ! -f "$FAKES/pip.sh" ] || . "$FAKES/pip.sh" ;;
esac
"""

# hwcheck and the linters: say where they run, with what; end with the code in $FAKES/exit-<last argument's base name>.
TOOL = """#!/bin/sh
echo "$(basename "$0") $*" >>"$FAKES/calls"
echo "in $PWD: $*"
[ "${3:-}" != - ] || cat
for last do :; done
[ ! -f "$FAKES/exit-$(basename "$last")" ] || exit "$(cat "$FAKES/exit-$(basename "$last")")"
"""

RECORDER = """#!/bin/sh
echo "$(basename "$0") $*" >>"$FAKES/calls"
"""


@dataclass
class Checkout:
    """
    A fresh clone with stand-ins.

    Attributes:
        folder: the clone.
        fakes: folder of the stand-ins and of their record.
        environment: what the script sees.
    """

    folder: Path
    fakes: Path
    environment: dict[str, str] = field(default_factory=dict)

    def command(self, *arguments: str) -> list[str]:
        """Return the command line that starts the script."""
        return [str(self.folder / "run"), *arguments]

    def run(self, *arguments: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        """Start the script in the folder of the stand-ins, and wait."""
        return subprocess.run(
            self.command(*arguments),
            input=stdin,
            env=self.environment | environment,
            cwd=self.fakes,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start the script and do not wait; its stderr can be read line by line."""
        return subprocess.Popen(
            self.command(*arguments),
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def calls(self, start: str = "") -> list[str]:
        """Return what the stand-ins were asked since the last time, where it begins with ``start``."""
        record = self.fakes / "calls"
        lines = record.read_text().splitlines() if record.exists() else []
        record.unlink(missing_ok=True)
        return [line for line in lines if line.startswith(start)]

    def add_fake(self, name: str, text: str) -> None:
        """Put a command on PATH."""
        path = self.fakes / "bin" / name
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def checkout(tmp_path: Path, root: Path) -> Checkout:
    """Return a clone that was never set up."""
    clone = Checkout(tmp_path / "clone", tmp_path / "fakes")
    (clone.folder / "hwcheck").mkdir(parents=True)
    (clone.fakes / "bin").mkdir(parents=True)
    shutil.copy(root / "run", clone.folder)
    (clone.folder / "pyproject.toml").write_text("[project]\n")
    (clone.folder / "hwcheck" / "__init__.py").write_text('__version__ = "1"\n')
    for tool in TOOLS:
        found = shutil.which(tool)
        if found:
            (clone.fakes / "bin" / tool).symlink_to(found)
    clone.add_fake("python3", PYTHON)
    clone.add_fake("other-python", PYTHON)
    shutil.copy(clone.fakes / "bin" / "python3", clone.fakes / "tool")
    (clone.fakes / "tool").write_text(TOOL)
    clone.environment = {"PATH": str(clone.fakes / "bin"), "FAKES": str(clone.fakes)}
    return clone


@pytest.mark.parametrize(("shell", "script"), [("sh", "run"), ("bash", ".ci/run")])
def test_scripts_parse(root: Path, shell: str, script: str) -> None:
    """Both scripts are of correct syntax for the shell they name and may be executed."""
    if not shutil.which(shell):
        pytest.skip(f"no {shell}")
    assert subprocess.run([shell, "-n", script], cwd=root, check=False).returncode == 0
    assert os.access(root / script, os.X_OK)


def test_help_names_every_command(checkout: Checkout) -> None:
    """Help goes to stdout, names every command and sets nothing up."""
    result = checkout.run("help")
    assert (0, "") == (result.returncode, result.stderr)
    assert [c for c in COMMANDS if f"\n  {c} " not in result.stdout] == []
    assert checkout.calls() == []


@pytest.mark.parametrize("arguments", [(), ("nonsense",), ("setup", "--sytem"), ("bench", "nonsense")])
def test_wrong_usage(checkout: Checkout, arguments: tuple[str, ...]) -> None:
    """Wrong usage exits with 2, says so on stderr only and sets nothing up."""
    result = checkout.run(*arguments)
    assert (2, "") == (result.returncode, result.stdout)
    assert result.stderr != ""
    assert checkout.calls() == []


def test_second_start_asks_no_python(checkout: Checkout) -> None:
    """The first start sets up with one line on stderr; the second starts hwcheck and nothing else."""
    first = checkout.run("hwcheck", "explain")
    assert (0, "run: setting up .venv (once) ...\n") == (first.returncode, first.stderr)
    assert len(checkout.calls("python -m venv")) == 1
    second = checkout.run("hwcheck", "explain")
    assert (0, "") == (second.returncode, second.stderr)
    assert checkout.calls() == ["hwcheck explain"]


def test_hwcheck_is_passed_through(checkout: Checkout) -> None:
    """Folder, arguments with blanks, stdin, stdout and exit code are hwcheck's, even in the first start."""
    (checkout.fakes / "pip.sh").write_text("cat; echo noise of pip")
    (checkout.fakes / "exit-a b").write_text("3")
    result = checkout.run("hwcheck", "check", "--evidence", "-", "a b", stdin="pasted\n")
    assert (3, f"in {checkout.fakes}: check --evidence - a b\npasted\n") == (result.returncode, result.stdout)


def test_developer_tools_are_added_once(checkout: Checkout) -> None:
    """What tests need is installed by the first command that needs it, and is kept by those that need less."""
    checkout.run("hwcheck")
    assert checkout.calls("python -m pip")[0].endswith(f"--editable {checkout.folder}")
    assert checkout.run("test", "-q").stderr.splitlines()[0] == "run: updating .venv ..."
    assert checkout.calls("python -m pip")[0].endswith(f"--editable {checkout.folder}[dev]")
    assert checkout.run("hwcheck").stderr == ""
    (checkout.folder / "pyproject.toml").write_text("[project] # changed\n")
    checkout.run("hwcheck")
    assert checkout.calls("python -m pip")[0].endswith("[dev]")


@pytest.mark.parametrize("changed", ["pyproject.toml", "hwcheck/__init__.py"])
def test_changed_needs_update(checkout: Checkout, changed: str) -> None:
    """New dependencies or a new version update the environment in place, once."""
    checkout.run("hwcheck")
    (checkout.folder / changed).write_text("# changed\n")
    checkout.calls()
    assert checkout.run("hwcheck").stderr == "run: updating .venv ...\n"
    assert checkout.calls("python -m venv") == []
    assert checkout.run("hwcheck").stderr == ""


def test_failed_update_keeps_what_was(checkout: Checkout) -> None:
    """After an update that failed (no network) the next one is an update again, not a set-up from nothing."""
    checkout.run("hwcheck")
    (checkout.folder / "pyproject.toml").write_text("# changed\n")
    (checkout.fakes / "pip.sh").write_text("exit 1")
    assert checkout.run("hwcheck").returncode == 2
    (checkout.fakes / "pip.sh").unlink()
    result = checkout.run("hwcheck")
    assert (0, "run: updating .venv ...\n") == (result.returncode, result.stderr)


def test_other_python_makes_anew(checkout: Checkout) -> None:
    """Asking for another Python makes the environment anew, and it stays when nothing is asked for."""
    checkout.run("hwcheck")
    checkout.calls()
    checkout.run("hwcheck", HWCHECK_PYTHON="other-python")
    assert len(checkout.calls("python -m venv")) == 1
    checkout.run("hwcheck", HWCHECK_PYTHON="other-python")
    checkout.run("hwcheck")
    assert checkout.calls("python") == []


def test_moved_checkout_makes_anew(checkout: Checkout) -> None:
    """A moved checkout, whose environment holds the old paths, gets a new environment."""
    checkout.run("hwcheck")
    checkout.calls()
    checkout.folder = checkout.folder.rename(checkout.folder.with_name("moved"))
    checkout.run("hwcheck")
    assert len(checkout.calls("python -m venv")) == 1


def test_killed_set_up_is_repaired(checkout: Checkout) -> None:
    """After a set-up that was killed half-way the next start begins from nothing."""
    (checkout.fakes / "pip.sh").write_text("kill -9 $PPID")
    assert checkout.run("hwcheck").returncode == -9
    (checkout.fakes / "pip.sh").unlink()
    (checkout.folder / ".venv" / "half-written").touch()
    assert checkout.run("hwcheck").returncode == 0
    assert not (checkout.folder / ".venv" / "half-written").exists()


def test_failed_set_up_is_no_verdict(checkout: Checkout) -> None:
    """A set-up that fails shows the end of its log and exits with 2, never 1, which would say that a node failed."""
    (checkout.fakes / "pip.sh").write_text("echo no such host; exit 1")
    result = checkout.run("hwcheck", "check")
    assert (2, "") == (result.returncode, result.stdout)
    assert "no such host" in result.stderr


def test_no_python(checkout: Checkout) -> None:
    """Without a fit Python the script names what it tried and how to choose one."""
    (checkout.fakes / "bin" / "python3").unlink()
    result = checkout.run("hwcheck")
    assert result.returncode == 2
    assert "python3.11" in result.stderr
    assert "HWCHECK_PYTHON" in result.stderr


def test_two_first_starts(checkout: Checkout) -> None:
    """Two first starts at once make one environment: the second waits and then uses it."""
    if not shutil.which("flock"):
        pytest.skip("no flock")
    gate = checkout.fakes / "gate"
    os.mkfifo(gate)
    (checkout.fakes / "pip.sh").write_text('timeout 20 cat "$FAKES/gate"')
    with checkout.start("hwcheck") as first:
        assert first.stderr is not None
        assert "setting up" in first.stderr.readline()
        with checkout.start("hwcheck") as second:
            assert second.stderr is not None
            assert "waiting" in second.stderr.readline()
            gate.write_text("go on\n")
    assert (0, 0) == (first.returncode, second.returncode)
    assert len(checkout.calls("python -m venv")) == 1


def test_whole_suite_runs_on_all_cores(checkout: Checkout) -> None:
    """Without arguments the tests run on all cores; with arguments those alone decide."""
    checkout.run("test")
    assert checkout.calls("python -m pytest") == ["python -m pytest -n auto --dist worksteal"]
    checkout.run("test", "tests/test_x.py", "-k", "a b")
    assert checkout.calls() == ["python -m pytest tests/test_x.py -k a b"]


def test_lint_runs_all_tools(checkout: Checkout) -> None:
    """Lint runs all its tools although the first fails, and fails then."""
    (checkout.fakes / "exit-.").write_text("1")
    assert checkout.run("lint").returncode == 1
    assert checkout.calls()[-4:] == [
        "ruff check .", "ruff format --check .", "mypy --strict hwcheck", "ansible-lint -q playbooks roles inventories",
    ]  # fmt: skip


def test_bench_lists_and_runs(checkout: Checkout) -> None:
    """Without a name the benchmarks are listed; with one it runs, with its arguments."""
    folder = checkout.folder / "tests" / "bench"
    folder.mkdir(parents=True)
    for name in ("judge.py", "_tools.py"):
        (folder / name).touch()
    assert checkout.run("bench").stdout == "judge\n"
    checkout.run("bench", "judge", "--quick")
    assert checkout.calls()[-1] == "python -m tests.bench.judge --quick"


def test_demo_is_the_whole_loop_on_lab_nodes(checkout: Checkout) -> None:
    """With the arguments it is given."""
    result = checkout.run("demo", "--form", "tree")
    assert result.returncode == 0
    assert checkout.calls()[-1] == "hwcheck lab demo --form tree"


def test_broken_demo_fails(checkout: Checkout) -> None:
    """A demo whose nodes do not end as they should is no success."""
    (checkout.fakes / "exit-demo").write_text("2")
    assert checkout.run("demo").returncode == 2


@pytest.mark.parametrize(
    ("arguments", "environment", "installs"),
    [
        (("test", "-q"), {}, False),
        (("test", "-q"), {"CI": "true"}, True),
        (("setup",), {}, False),
        (("setup", "--system"), {}, True),
    ],
)
def test_machine_is_changed_only_when_asked(
    checkout: Checkout, arguments: tuple[str, ...], environment: dict[str, str], *, installs: bool
) -> None:
    """Debian packages are installed only in CI or with --system; else the tests skipped without them are named."""
    script = checkout.folder / "run"
    script.write_text(
        re.sub(r'^system_packages=".*"$', 'system_packages="chrony:lab"', script.read_text(), flags=re.MULTILINE)
    )
    checkout.add_fake("dpkg-query", "#!/bin/sh\nexit 1\n")
    checkout.add_fake("id", "#!/bin/sh\necho 0\n")
    checkout.add_fake("apt-get", RECORDER)
    result = checkout.run(*arguments, **environment)
    assert result.returncode == 0
    assert bool(checkout.calls("apt-get install -qq -y --no-install-recommends chrony")) == installs
    assert ("marked lab are skipped for want of chrony" in result.stderr) == (arguments[0] == "test" and not installs)
