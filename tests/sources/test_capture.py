"""The capture engine: whatever one source does, the others are heard, in time."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

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
