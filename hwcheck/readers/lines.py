"""
Bytes → clean lines, as a stream: encodings, escapes, carriage returns, absurd lengths.

A posted file may be UTF-8 with a BOM, UTF-16 from a Windows console, coloured, CRLF, 5 GB long, one line of a gigabyte,
or no text at all. What leaves here is text without control characters, at most :data:`MAX_LINE` a line.
"""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from hwcheck.errors import EvidenceError

MAX_LINE = 1 << 16
CHUNK = 1 << 18
MAX_UNPACKED = 8 << 30
MAX_RATIO = 300
RATIO_FROM = 64 << 20
"""A gzip of a kernel log shrinks 10 to 40 times; one that grows 300 times over 64 MiB is a bomb."""

_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_BINARY = bytes(set(range(32)) - {7, 8, 9, 10, 12, 13, 27}) + b"\x7f"


class NotText(EvidenceError):
    """The file holds no text."""


def clean(line: str) -> str:
    """Remove escape sequences and control characters (all but tab)."""
    if "\x1b" in line:
        line = _ANSI.sub("", line)
    return _CONTROL.sub("", line)


def lines(stream: BinaryIO) -> Iterator[str]:
    """
    Go through the clean lines of a stream; gzip is unpacked on the way.

    Raises:
        NotText: the first bytes are no text in any encoding posted files come in.
        EvidenceError: a gzip that is broken or grows beyond the limits. What came before was yielded.
    """
    blocks = _blocks(stream)
    head = next(blocks, b"")
    encoding = _encoding(head)
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    carry = ""
    overlong = False
    for block in _chain(head, blocks):
        text = decoder.decode(block)
        text = f"{carry}{text}" if carry else text
        pieces = text.split("\n")
        carry = pieces.pop()
        for index, piece in enumerate(pieces):
            if overlong and index == 0:
                overlong = False  # the rest of a line that was already given, shortened
                continue
            yield _shape(piece)
        if len(carry) > MAX_LINE:
            if not overlong:
                yield _shape(carry)
            overlong, carry = True, ""
    carry += decoder.decode(b"", True)
    if carry and not overlong:
        yield _shape(carry)


def _shape(piece: str) -> str:
    if len(piece) > MAX_LINE:
        piece = piece[:MAX_LINE]
    if piece.isascii() and piece.isprintable():
        return piece
    return clean(piece.removesuffix("\r")).rstrip("\r")


def _chain(head: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield head
    yield from rest


def _blocks(stream: BinaryIO) -> Iterator[bytes]:
    head = stream.read(CHUNK)
    if not head.startswith(b"\x1f\x8b"):
        while head:
            yield head
            head = stream.read(CHUNK)
        return
    packed, unpacked = len(head), 0
    inflate = zlib.decompressobj(16 + zlib.MAX_WBITS)
    data = head
    try:
        while data:
            out = inflate.decompress(data, CHUNK)
            unpacked += len(out)
            if unpacked > MAX_UNPACKED or (unpacked > RATIO_FROM and unpacked > MAX_RATIO * packed):
                raise EvidenceError(f"gzip grows beyond the limits ({unpacked >> 20} MiB from {packed >> 10} KiB)")
            if out:
                yield out
            data = inflate.unconsumed_tail
            if inflate.eof:
                data = inflate.unused_data.lstrip(b"\0")
                inflate = zlib.decompressobj(16 + zlib.MAX_WBITS)
            if not data:
                data = stream.read(CHUNK)
                packed += len(data)
    except zlib.error as error:
        raise EvidenceError(f"broken gzip: {error}") from error
    if not inflate.eof and unpacked and inflate.unconsumed_tail:
        raise EvidenceError("gzip ends early")


def _encoding(head: bytes) -> str:
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    sample = head[:4096]
    if len(sample) > 3 and sample[1::2].count(0) > len(sample) // 2 * 0.6 and sample[0::2].count(0) == 0:  # noqa: PLR2004
        return "utf-16-le"
    if sample and (sample.count(0) or len(sample.translate(None, _BINARY)) < 0.9 * len(sample)):  # noqa: PLR2004
        raise NotText("no text")
    return "utf-8-sig" if head.startswith(codecs.BOM_UTF8) else "utf-8"


def is_gzip(head: bytes) -> bool:
    """Tell whether these first bytes are of a gzip."""
    return head.startswith(b"\x1f\x8b")


__all__ = ["NotText", "clean", "is_gzip", "lines"]
