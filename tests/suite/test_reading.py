"""Reading a node through a back end that only runs commands."""

from __future__ import annotations

import base64
import subprocess
from dataclasses import dataclass

import pytest

from hwcheck.suite.reading import read
from hwcheck.transports.request import Request


@dataclass
class Result:
    """What a back end returns."""

    rc: int
    stdout: str
    stderr: str = ""


@dataclass
class Host:
    """A back end: the shell of this machine, or words of its own."""

    says: Result | None = None

    def run(self, command: str) -> Result:
        """Run a command."""
        if self.says is not None:
            return self.says
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, timeout=60)
        return Result(done.returncode, done.stdout, done.stderr)


def test_a_node_is_read_with_one_command() -> None:
    """What comes is the same evidence as over any transport."""
    evidence = read(Host(), Request(only=("cmdline",)))
    assert not evidence.unreachable
    assert evidence.outputs[0].kind == "node.hello"
    assert evidence.broken == []


@pytest.mark.parametrize(("rc", "stdout", "stderr", "words"), [
    (127, "", "sh: 1: python3: not found", "not found"),
    (0, "Welcome to gpu-1", "", ""),
    (0, base64.b64encode(b"no stream of ours").decode(), "", "instead of evidence came"),
    (255, "", "Connection refused", "Connection refused"),
])  # fmt: skip
def test_a_node_that_does_not_answer_is_said_to_be_so(rc: int, stdout: str, stderr: str, words: str) -> None:
    """With its own words; never an empty node that passes."""
    evidence = read(Host(Result(rc, stdout, stderr)), Request())
    assert evidence.unreachable
    assert words in evidence.unreachable


def test_a_stream_that_is_cut_off_leaves_what_came() -> None:
    """And what is owed is missing with a reason."""
    whole = Host().run
    cut = base64.b64decode(read_raw(whole))[:-2000]
    evidence = read(Host(Result(0, base64.b64encode(cut).decode())), Request())
    assert evidence.broken


def read_raw(run: object) -> str:
    """Return what the program prints on this machine."""
    said: list[str] = []

    class Spy:
        """Keeps what came."""

        def run(self, command: str) -> Result:
            """Run it here."""
            result: Result = run(command)  # type: ignore[operator]
            said.append(result.stdout)
            return result

    read(Spy(), Request())
    return said[0]
