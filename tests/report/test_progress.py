"""Progress: plain lines in a log, a bar on a terminal, nothing when it is not wanted."""

from __future__ import annotations

import io

import pytest

from hwcheck.report.progress import Progress


class Clock:
    """A clock that goes two seconds a look."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """Return the time."""
        self.now += 2.0
        return self.now


class Terminal(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        """Say that it is one."""
        return True


def fold(names: list[str]) -> str:
    """Join names."""
    return "+".join(names)


@pytest.fixture
def stream() -> io.StringIO:
    """Return what is no terminal."""
    return io.StringIO()


def test_a_log_has_a_line_now_and_then(stream: io.StringIO) -> None:
    """Done, failing, unreachable with their names, and when it will be over."""
    with Progress(40, fold, stream=stream, clock=Clock()) as progress:
        for number in range(39):
            progress.count(f"n{number}", failing=number == 3, unreachable=number == 5)
        progress.count("n39")
    lines = stream.getvalue().splitlines()
    assert 5 < len(lines) < 40
    assert "1 failing (n3), 1 unreachable (n5), about" in lines[4]
    assert lines[-1].startswith("hwcheck: 40 of 40 nodes done, 1 failing (n3), 1 unreachable (n5), ")


@pytest.mark.parametrize(("total", "quiet"), [(1, False), (40, True)])
def test_nothing_is_said_of_one_node_or_when_quiet(total: int, quiet: bool, stream: io.StringIO) -> None:  # noqa: FBT001 - a table of cases
    """One node is over before a line is read."""
    with Progress(total, fold, quiet=quiet, stream=stream, clock=Clock()) as progress:
        progress.count("n0", failing=True)
    assert stream.getvalue() == ""


def test_a_terminal_has_a_bar_and_keeps_the_last_line() -> None:
    """Names of nodes bring no escapes of their own."""
    stream = Terminal()
    with Progress(3, fold, stream=stream, clock=Clock()) as progress:
        for number in range(3):
            progress.count(f"n{number}\x1b[31m", failing=True)
            with progress.hidden():
                pass
    assert "1 of 3 nodes done" in stream.getvalue()
    assert stream.getvalue().rstrip().splitlines()[-1].endswith("s")
    assert "\x1b[31m" not in stream.getvalue()


def test_many_names_are_cut() -> None:
    """A line stays a line."""
    progress = Progress(500, fold, stream=io.StringIO(), clock=Clock())
    for number in range(300):
        progress.count(f"node-{number}", failing=True)
    assert len(progress.line()) < 250
