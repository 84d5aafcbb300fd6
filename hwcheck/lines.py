"""
Bytes → clean lines, as a stream: encodings, escapes, carriage returns, absurd lengths.

Lives beside the readers and transports, which both need it: what a node sends live and what its bundle holds must read
the same. Pure: it is given the stream.

A posted file may be UTF-8 with a BOM, UTF-16 from a Windows console, coloured, CRLF, 5 GB long, one line of a gigabyte,
or no text at all. What leaves here is text without control characters, at most :data:`MAX_LINE` a line.

A line ends with a line feed, whatever carriage returns stand around it, so that line numbers are those of ``sed -n``. A
carriage return inside of a line (a progress bar) becomes a blank: nothing is lost, and no two words are glued together.
Only a text without any line feed has carriage returns for line ends.
"""

from __future__ import annotations

import codecs
import itertools
import re
import zlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from hwcheck.errors import EvidenceError

MAX_LINE = 1 << 16
CHUNK = 1 << 18
HEAD = 1 << 14
"""Bytes that tell the encoding and the line ends."""

MAX_UNPACKED = 8 << 30
MAX_RATIO = 300
RATIO_FROM = 64 << 20
"""A gzip of a kernel log shrinks 10 to 40 times; one that grows 300 times over 64 MiB is a bomb."""

_ESCAPE = re.compile(
    r"\x1b(?:"
    r"\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC, DCS ...: window titles, links
    r"|[ -/]+[0-~]"  # character sets: ESC ( B, which "tput sgr0" sends
    r"|[0-OQ-WYZ\\`-~]"  # single ones: keypad, save cursor, reset
    r")"
)
_CONTROL = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f"
    "\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"  # invisible, or turning the reading order
    "\U000e0000-\U000e007f]"
)
_BLANKS = str.maketrans(dict.fromkeys("\u00a0\u2007\u202f\r", " "))
"""Pages and chat clients turn the blanks of an indentation into no-break spaces."""
_BINARY = bytes(set(range(32)) - {7, 8, 9, 10, 12, 13, 27}) + b"\x7f"


class NotTextError(EvidenceError):
    """The file holds no text."""


def clean(line: str) -> str:
    """Remove escape sequences and control characters (all but tab); a carriage return inside becomes a blank."""
    if "\x1b" in line:
        line = _ESCAPE.sub("", line)
    return _CONTROL.sub("", line.strip("\r").translate(_BLANKS))


def lines(stream: BinaryIO) -> Iterator[str]:
    """
    Go through the clean lines of a stream; gzip is unpacked on the way.

    Raises:
        NotTextError: the first bytes are no text in any encoding posted files come in.
        EvidenceError: a gzip that is broken or grows beyond the limits. What came before was yielded.
    """
    head, rest = _head(_blocks(stream))
    encoding = _encoding(head)
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    end = _line_end(head, encoding)
    carry = ""
    overlong = False
    for block in itertools.chain([head], rest):
        text = decoder.decode(block)
        text = f"{carry}{text}" if carry else text
        pieces = text.split(end)
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
    carry += decoder.decode(b"", final=True)
    if carry.strip("\r") and not overlong:
        yield _shape(carry)


def _head(blocks: Iterator[bytes]) -> tuple[bytes, Iterable[bytes]]:
    """Gather the first part: a pipe may give a few bytes at a time, and a break right after it is told in its turn."""
    head = b""
    try:
        for block in blocks:
            head += block
            if len(head) >= HEAD:
                break
    except EvidenceError as error:
        return head, _broken(error)
    return head, blocks


def _broken(error: EvidenceError) -> Iterator[bytes]:
    yield b""
    raise error


def _line_end(head: bytes, encoding: str) -> str:
    """Tell a text of carriage returns alone, as old serial consoles leave it; its first part decides."""
    text = codecs.decode(head, encoding, "replace")
    return "\r" if "\r" in text[:-1] and "\n" not in text else "\n"


def _shape(piece: str) -> str:
    if len(piece) > MAX_LINE:
        piece = piece[:MAX_LINE]
    if piece.isascii() and piece.isprintable():
        return piece
    return clean(piece)


def _blocks(stream: BinaryIO) -> Iterator[bytes]:
    head = stream.read(CHUNK)
    if not head.startswith(b"\x1f\x8b"):
        while head:
            yield head
            head = stream.read(CHUNK)
        return
    yield from _inflated(head, stream)


def _inflated(data: bytes, stream: BinaryIO) -> Iterator[bytes]:
    """Unpack a gzip of one or several members, by pieces of bounded size."""
    packed, unpacked = len(data), 0
    inflate = zlib.decompressobj(16 + zlib.MAX_WBITS)
    begun = True
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
                data = inflate.unused_data.lstrip(b"\0")  # members may be padded
                inflate, begun = zlib.decompressobj(16 + zlib.MAX_WBITS), False
            while not data and (block := stream.read(CHUNK)):
                packed += len(block)
                data = block if begun else block.lstrip(b"\0")
            begun = begun or bool(data)
    except zlib.error as error:
        raise EvidenceError(f"broken gzip: {error}") from error
    if begun:
        raise EvidenceError("the gzip ends early")


def _encoding(head: bytes) -> str:
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    sample = head[:4096]
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    if len(sample) > 3 and max(even, odd) > 0.6 * (len(sample) // 2) and not min(even, odd):
        return "utf-16-le" if odd else "utf-16-be"  # mostly Latin letters: their upper bytes are zero
    if sample and (sample.count(0) or len(sample.translate(None, _BINARY)) < 0.9 * len(sample)):
        raise NotTextError("no text")
    return "utf-8-sig" if head.startswith(codecs.BOM_UTF8) else "utf-8"


def is_gzip(head: bytes) -> bool:
    """Tell whether these first bytes are of a gzip."""
    return head.startswith(b"\x1f\x8b")


__all__ = ["NotTextError", "clean", "is_gzip", "lines"]
