"""The stream of a node, in pieces, cut off, and hostile."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwcheck.sources import frames
from hwcheck.transports.stream import MAX_FRAME, MAX_FRAMES, Decoder, StreamError


def frame(kind: str, payload: bytes = b"", status: str = "ok", detail: str = "-", command: str = "-") -> bytes:
    """Write a frame as a node does."""
    return f"HWC1 {kind} {status} 12 {len(payload)} {detail} {command}\n".encode() + payload


WHOLE = (
    frame("hello", b"host=gpu-1\nboot_id=b\ntime=100.5\n")
    + frame("uname", b"Linux\n")
    + frame("ibstat", b"", "absent", "not%20installed", "ibstat%20-v")
    + frame("end", b"cpu=0.1\n")
)


@given(st.lists(st.integers(1, 60)))
def test_pieces_of_any_size_give_the_same_answers(sizes: list[int]) -> None:
    """Where the network cuts the stream does not matter."""
    decoder = Decoder()
    rest = WHOLE
    for size in sizes:
        decoder.feed(rest[:size])
        rest = rest[size:]
    decoder.feed(rest)
    assert decoder.ended
    assert decoder.hello == {"host": "gpu-1", "boot_id": "b", "time": "100.5"}
    assert decoder.usage == {"cpu": "0.1"}
    assert [(a.kind, a.status, a.payload, a.detail, a.command, a.seconds) for a in decoder.answers] == [
        ("uname", "ok", b"Linux\n", "", "", 0.012),
        ("ibstat", "absent", b"", "not installed", "ibstat -v", 0.012),
    ]


def test_the_node_program_writes_what_the_decoder_reads() -> None:
    """Detail and command survive with blanks, percent signs, newlines and other alphabets."""
    reader, writer = os.pipe()
    frames.send(writer, "dmesg", "failed", b"\x00\xff\n", 1.5, "100 % broken\nreally: é", "-")
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        decoder = Decoder()
        decoder.feed(file.read())
    answer = decoder.answers[0]
    assert (answer.detail, answer.command, answer.seconds) == ("100 % brokenreally: é", "-", 1.5)
    assert answer.payload == b"\x00\xff\n"


@pytest.mark.parametrize("length", range(0, len(WHOLE) - 1, 7))
def test_a_stream_cut_off_anywhere_has_not_ended(length: int) -> None:
    """What had arrived whole counts; nothing else, and no end."""
    decoder = Decoder()
    decoder.feed(WHOLE[:length])
    assert not decoder.ended
    assert all(answer.payload in (b"Linux\n", b"") for answer in decoder.answers)


def test_what_comes_after_the_end_is_dropped() -> None:
    """A node that goes on talking changes nothing any more."""
    decoder = Decoder()
    decoder.feed(WHOLE + frame("uname", b"other\n") + b"garbage")
    assert [answer.kind for answer in decoder.answers] == ["uname", "ibstat"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (frame("hello") + b"Traceback: gpu-1\nand more\n", "Traceback: gpu-1"),
        (frame("hello") + b"x" * 20_000, "xxx"),
        (b"x" * 70_000, "xxx"),
        (frame("hello") + b"HWC1 ../../etc ok 1 0 - -\n", "../../etc"),
        (b"HWC1 .hidden ok 1 0 - -\n", ".hidden"),
        (b"HWC1 uname fine 1 0 - -\n", "fine"),
        (b"HWC1 uname ok 1 -5 - -\n", "-5"),
        (b"HWC1 uname ok 1 99999999999999 - -\n", "99999"),
        (b"HWC1 " + b"a" * 20_000, "aaa"),
        (f"HWC1 uname ok 1 {MAX_FRAME + 1} - -\n".encode(), "more than"),
        (frame("uname") * (MAX_FRAMES + 1), "more than"),
        (frame("hello") + b"\x1b[31mred\x1b[0m\n", "red"),
    ],
)
def test_what_is_no_frame_is_told_without_its_escapes(data: bytes, words: str) -> None:
    """An error after the hello, a flood, a hostile header: refused at once, and shown printable."""
    decoder = Decoder()
    with pytest.raises(StreamError) as error:
        decoder.feed(data)
    assert words in str(error.value)
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 300


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_noise_before_the_hello_is_passed_over(size: int) -> None:
    """A banner up to the limit, in pieces of any size; what came of it is told until the hello is there."""
    decoder = Decoder()
    decoder.feed(b"\x1b[31mWelcome\nHWC")
    assert decoder.noise == "Welcome HWC"
    data = b" HWC1 uname? no\n" + b"." * 2000 + WHOLE
    for start in range(0, len(data), size):
        decoder.feed(data[start : start + size])
    assert decoder.ended
    assert decoder.noise == ""
    assert [answer.kind for answer in decoder.answers] == ["uname", "ibstat"]


def test_secrets_are_gone_as_soon_as_they_arrive() -> None:
    """Neither the text nor the command line of an answer keeps a token."""
    decoder = Decoder()
    decoder.feed(frame("unit", b"Environment=API_TOKEN=abc123 A=1\n", command="tool%20--password%20abc123"))
    answer = decoder.answers[0]
    assert b"abc123" not in answer.payload
    assert "abc123" not in answer.command
    assert b"A=1" in answer.payload


def test_a_beat_is_no_answer_and_does_not_count() -> None:
    """A node that measures for an hour says every second that it is still at it."""
    decoder = Decoder()
    decoder.feed(frame("hello", b"host=a\n") + frame("beat") * (MAX_FRAMES + 1) + frame("uname") + frame("end"))
    assert decoder.ended
    assert [answer.kind for answer in decoder.answers] == ["uname"]
