"""Bytes of any kind → clean lines."""

from __future__ import annotations

import codecs
import gzip
import io
import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwcheck import lines as module
from hwcheck.errors import EvidenceError
from hwcheck.lines import MAX_LINE, NotTextError, clean, lines

TEXT = "Rate: 400\nPhysical state: LinkUp\n"


class Dribble(io.RawIOBase):
    """A pipe that gives at most a few bytes at a time."""

    def __init__(self, data: bytes, size: int) -> None:
        self._data, self._size = io.BytesIO(data), size

    def read(self, size: int = -1) -> bytes:
        """Return less than was asked for."""
        return self._data.read(min(self._size, size) if size >= 0 else self._size)


def read(data: bytes) -> list[str]:
    """Return the lines of some bytes."""
    return list(lines(io.BytesIO(data)))


def read_until_broken(data: bytes) -> tuple[list[str], str]:
    """Return the lines before the stream breaks, and what is said of it."""
    found: list[str] = []
    try:
        for line in lines(io.BytesIO(data)):
            found.append(line)  # noqa: PERF402 - what came before the break counts
    except EvidenceError as error:
        return found, str(error)
    return found, ""


@pytest.mark.parametrize(
    "data",
    [
        TEXT.encode(),
        codecs.BOM_UTF8 + TEXT.encode(),
        TEXT.encode("utf-16"),
        codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le"),
        codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"),
        TEXT.encode("utf-16-le"),
        TEXT.encode("utf-16-be"),
        TEXT.replace("\n", "\r\n").encode(),
        TEXT.replace("\n", "\r\n").encode("utf-16"),
        TEXT.replace("\n", "\r\r\n").encode(),
        TEXT.replace("\n", "\n\r").encode(),
        TEXT.replace("\n", "\r").encode(),
        TEXT.rstrip().encode(),
        gzip.compress(TEXT.encode()),
        gzip.compress(TEXT.encode("utf-16")),
    ],
    ids=["utf-8", "BOM", "utf-16", "LE+BOM", "BE+BOM", "LE", "BE", "CRLF", "CRLF utf-16", "CRCRLF", "LFCR", "CR",
         "no end", "gzip", "gzip utf-16"],
)  # fmt: skip
def test_one_text_in_any_encoding_is_the_same_lines(data: bytes) -> None:
    """Windows consoles, serial lines and packers change the bytes, not the lines."""
    assert read(data) == ["Rate: 400", "Physical state: LinkUp"]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("\x1b[31mFAIL\x1b[0m", "FAIL"),
        ("\x1b[38;5;196mx\x1b[m", "x"),
        ("\x1b[?25lx\x1b[2K", "x"),
        ("\x1b]0;root@node\x07x", "x"),
        ("\x1b]8;;http://a.example\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bP+q544e\x1b\\x", "x"),
        ("x\x1b(B\x1b[m", "x"),
        ("\x1b7x\x1b8\x1b=\x1bc", "x"),
        ("\x1b]0;never closed", "]0;never closed"),
        ("x\x1b", "x"),
        ("a\tb", "a\tb"),
        ("a\x00b\x07c\x7fd\x9be", "abcde"),
        ("\u202eevil\u202c \u2066x\u2069 \u200bzero\ufeff", "evil x zero"),
        ("a\u00a0\u00a0b", "a  b"),
        ("50%\r100%", "50% 100%"),
        ("45 °C – grün", "45 °C – grün"),
    ],
)
def test_what_a_terminal_would_obey_is_removed(line: str, shown: str) -> None:
    """Escapes, control and bidirectional characters go; tabs and letters stay; no two words are glued together."""
    assert clean(line) == shown


def test_latin_1_bytes_are_shown_as_unknown_characters() -> None:
    """A byte that is no UTF-8 costs one character, not the line."""
    assert read(b"temp: 45 \xb0C\nnext\n") == ["temp: 45 \ufffdC", "next"]


def test_an_empty_file_has_no_lines() -> None:
    """Nothing is nothing, packed or not."""
    assert read(b"") == []
    assert read(gzip.compress(b"")) == []
    assert read(codecs.BOM_UTF8) == []


@pytest.mark.parametrize(
    "data",
    [b"\x7fELF\x02\x01\x01" + bytes(9), b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", bytes(64), bytes(range(32)) * 4],
    ids=["ELF", "PNG", "zeros", "controls"],
)
def test_a_binary_file_is_no_text(data: bytes) -> None:
    """A file with NUL bytes, or mostly of control bytes, is refused as a whole."""
    with pytest.raises(NotTextError):
        read(data)


def test_zeros_far_into_a_log_do_not_end_it() -> None:
    """A crash leaves a block of NUL bytes in a log; what stands before and after is read."""
    data = b"before\n" * 1000 + bytes(4096) + b"\nafter\n"
    assert read(data)[-2:] == ["", "after"]


def test_a_line_without_end_is_bounded() -> None:
    """Ten megabytes in one line cost one short line, little time, and no line number."""
    began = time.perf_counter()
    found = read(b"x" * 10_000_000 + b"\nnext\n")
    assert [len(found[0]), *found[1:]] == [MAX_LINE, "next"]
    assert time.perf_counter() - began < 2


def test_members_of_a_gzip_are_one_text() -> None:
    """Rotated logs are appended to each other; padding between them means nothing."""
    packed = gzip.compress(b"one\ntw") + bytes(700_000) + gzip.compress(b"o\nthree\n") + bytes(5)
    assert read(packed) == ["one", "two", "three"]


@pytest.mark.parametrize("missing", [1, 4, 8, 12, 40])
def test_a_gzip_that_is_cut_off_gives_what_is_there_and_says_so(missing: int) -> None:
    """A broken upload keeps its first part; it never passes for the whole."""
    whole = b"".join(b"line %d\n" % number for number in range(5000))
    found, error = read_until_broken(gzip.compress(whole)[:-missing])
    assert found[:2] == ["line 0", "line 1"]
    assert "ends early" in error


def test_garbage_in_a_gzip_is_said() -> None:
    """Damage in the middle, or junk after the end, is an error after the good lines."""
    packed = gzip.compress(b"good\n" * 100)
    assert "broken gzip" in read_until_broken(packed + b"junk junk junk")[1]
    assert read_until_broken(packed + b"junk junk junk")[0][0] == "good"
    assert "broken gzip" in read_until_broken(b"\x1f\x8b\x08" + b"\xff" * 50)[1]


def test_a_gzip_bomb_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that grows beyond all reason is left after the allowed part."""
    bomb = gzip.compress(b"0" * 79 + b"\n" * 400_000)
    assert len(read(bomb)) > 1
    monkeypatch.setattr(module, "RATIO_FROM", 1 << 16)
    monkeypatch.setattr(module, "MAX_RATIO", 20)
    assert "beyond the limits" in read_until_broken(bomb)[1]
    monkeypatch.setattr(module, "MAX_RATIO", 100_000)
    monkeypatch.setattr(module, "MAX_UNPACKED", 300_000)
    assert "beyond the limits" in read_until_broken(bomb)[1]


def plain(char: str) -> bool:
    """Tell whether a terminal just prints the character."""
    invisible = "\u00ad\u061c\u180e\u2028\u2029\ufeff" + "".join(
        map(chr, [*range(0x200B, 0x2010), *range(0x2060, 0x2070)])
    )
    return char == "\t" or (
        unicodedata.category(char) != "Cc" and not "\u202a" <= char <= "\u202e" and char not in invisible
    )


@settings(deadline=None)
@given(st.text() | st.text(alphabet="\x00\x1b\r\n\t[]()0;mabP\\\x07\u202e\u200f\ufeffx"))
def test_no_control_character_ever_leaves(text: str) -> None:
    """Whatever is posted, a line is plain text of bounded length."""
    try:
        found = read(text.encode("utf-8", "surrogatepass"))
    except EvidenceError:
        return
    assert all(plain(char) for line in found for char in line)
    assert all(len(line) <= MAX_LINE for line in found)


@settings(deadline=None)
@given(st.binary(max_size=400))
def test_no_bytes_are_too_strange(data: bytes) -> None:
    """Any bytes are lines of plain text, or an error that is told."""
    try:
        found = read(data)
    except EvidenceError:
        return
    assert all(plain(char) for line in found for char in line)


@settings(deadline=None)
@given(
    st.text(alphabet="ab\r\n\x1b[m\u00e9\u4e2d", max_size=60), st.integers(1, 9), st.sampled_from(["utf-8", "utf-16"])
)
def test_lines_do_not_depend_on_the_borders_of_chunks(text: str, size: int, encoding: str) -> None:
    """A slow pipe gives the same lines as a file."""
    data = text.encode(encoding)
    assert list(lines(Dribble(data, size))) == read(data)  # type: ignore[arg-type]


@pytest.mark.parametrize("length", [MAX_LINE - 1, MAX_LINE, MAX_LINE + 1, 3 * MAX_LINE])
@pytest.mark.parametrize("chunk", [1000, MAX_LINE, MAX_LINE + 7])
def test_a_long_line_is_cut_at_one_place_however_it_comes(length: int, chunk: int) -> None:
    """The limit is of the line, not of the chunks it came in."""
    data = b"first\n" + b"y" * length + b"\nlast"
    assert [len(line) for line in lines(Dribble(data, chunk))] == [5, min(length, MAX_LINE), 4]  # type: ignore[arg-type]
