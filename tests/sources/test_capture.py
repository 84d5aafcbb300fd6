"""The capture engine: whatever one source does, the others are heard, in time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hwcheck.transports.request import Request
from hwcheck.transports.stream import Answer, Decoder

RUN = """

from hwcheck.sources import capture
from hwcheck.sources.source import Context, Source

def boom(context):
    raise ValueError("a number of 5000 digits")

def ring(context):
    return ring(context)

def flood(context):
    while True:
        yield b"y" * 1000000

def whole(context):
    return b"all\\n"

sources = [%s, Source("last", "uname", whole), Source("child", "lspci", whole, child=True)]
capture.run(sources, Context(), 1, %s)
"""


def run(source: str, deadline: float = 20.0) -> dict[str, Answer]:
    """Run the engine on this source and two good ones; returns the answers by kind."""
    words = [sys.executable, "-c", RUN % (source, deadline)]
    done = subprocess.run(words, capture_output=True, timeout=60, check=True)
    decoder = Decoder()
    decoder.feed(done.stdout)
    return {answer.kind: answer for answer in decoder.answers}


@pytest.mark.parametrize(
    ("call", "words"),
    [("boom", "ValueError: a number of 5000 digits"), ("ring", "RecursionError"), ("boom, child=True", "ValueError")],
)
def test_a_source_that_breaks_is_a_failed_answer_and_ends_nothing(call: str, words: str) -> None:
    """Also in the process that reads files, by an error that nobody foresaw."""
    answers = run(f'Source("bad", "ibstat", {call})')
    assert answers["ibstat"].status == "failed"
    assert words in answers["ibstat"].detail
    assert (answers["uname"].status, answers["lspci"].status) == ("ok", "ok")


@pytest.mark.parametrize("source", ["flood, child=True", 'argv=("yes",)', 'argv=("sh", "-c", "setsid yes & yes")'])
def test_a_flood_ends_with_its_deadline(source: str) -> None:
    """One that writes as fast as we read holds up nobody, and what it said is a timeout."""
    began = time.monotonic()
    answers = run(f'Source("bad", "ibstat", {source}, deadline=1.0)')
    assert time.monotonic() - began < 15
    assert answers["ibstat"].status == "timeout"
    assert (answers["uname"].status, answers["lspci"].status) == ("ok", "ok")


def test_a_reader_that_is_gone_ends_all() -> None:
    """No child of a source that hangs outlives the one who asked, also while there is nothing to say."""
    code = RUN % ('Source("bad", "ibstat", argv=("sleep", "4321"), deadline=60.0)', 60.0)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        time.sleep(0.5)
        (child,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        process.stdout.close()
        process.wait(10)
    assert is_gone(child)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_program_that_is_told_to_end_takes_its_children_along(number: signal.Signals, tmp_path: Path) -> None:
    """Whatever they hang in; they have groups of their own, and nobody else could find them."""
    tool = tmp_path / "systemctl"
    tool.write_text("#!/bin/sh\nexec sleep 4321\n")
    tool.chmod(0o755)
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
    ) as process:  # fmt: skip
        assert process.stdin is not None
        process.stdin.write(Request(only=("units",)).program())
        process.stdin.close()
        folder = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        for _ in range(100):
            if children := folder.read_text().split():
                break
            time.sleep(0.05)
        time.sleep(0.1)
        process.send_signal(number)
        assert process.wait(10) == 128 + number
    assert len(children) == 1
    assert is_gone(children[0])


def is_gone(pid: str) -> bool:
    """Tell whether a process ends soon."""
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]
        except OSError:
            return True
        if state in "ZX":
            return True
        time.sleep(0.05)
    return False


def test_the_first_kernel_runs_when_all_others_have_answered() -> None:
    """It opens a context on every GPU, which NVML would tell as a process and as clocks of work."""
    request = Request(tier="deep", only=("cuda-sanity", "processes", "space", "nvml"))
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-"], input=request.program(), capture_output=True, timeout=60, check=True
    )
    decoder = Decoder()
    decoder.feed(done.stdout)
    assert [answer.kind for answer in decoder.answers][-1] == "cuda.sanity"
