"""
The stream of a node, decoded as it comes: bytes → answers. Trusts nothing in it.

Imports nothing of the parsers: while the node reads, this side can still load them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn
from urllib.parse import unquote

from hwcheck.lines import clean
from hwcheck.scrub import scrub

MAX_FRAME = 64 << 20
MAX_STREAM = 256 << 20
MAX_FRAMES = 2000
MAX_HEADER = 16_000
MAX_NOISE = 64 << 10
"""Bytes before the first frame: login scripts of a node greet whoever comes, also a program."""
_MAGIC, _FIRST = b"HWC1 ", b"HWC1 hello "
_HEADER = re.compile(
    rb"HWC1 ([a-z0-9][a-z0-9_.-]{0,59}) (ok|absent|denied|timeout|failed|truncated) "
    rb"(\d{1,9}) (\d{1,9}) (\S{1,6000}) (\S{1,6000})"
)


class StreamError(Exception):
    """What came is no stream of the node program."""


@dataclass(frozen=True, slots=True)
class Answer:
    """
    One frame: what a source said, or how it ended.

    Attributes:
        kind: format of the payload.
        status: ``ok``, ``absent``, ``denied``, ``timeout``, ``failed`` or ``truncated``.
        seconds: how long it took.
        detail, command: clean text.
        payload: the bytes as they came, less secrets.
    """

    kind: str
    status: str
    seconds: float
    detail: str
    command: str
    payload: bytes


class Decoder:
    """
    Feed it bytes in any pieces; it gathers the answers.

    Args:
        heard: called with each answer as it comes; None for nobody.

    Attributes:
        hello: what the node said of itself: host, boot_id, time ...
        ended: the end frame has come; without it the stream was cut off.
        usage: what the end frame says: cpu, children_cpu.
        answers: in the order they came.
        asked, heard: the reader's clock when the program was sent and when the hello came; 0 before.
    """

    def __init__(self, heard: Callable[[Answer], None] | None = None) -> None:
        self._heard = heard
        self.hello: dict[str, str] = {}
        self.usage: dict[str, str] = {}
        self.ended = False
        self.answers: list[Answer] = []
        self.asked = self.heard = 0.0
        self._buffer = bytearray()
        self._begun = False
        self._want: tuple[bytes, ...] | None = None
        self._total = 0
        self._frames = 0

    def feed(self, data: bytes) -> None:
        """
        Take the next bytes; those after the end frame are dropped.

        Raises:
            StreamError: no frame where one must be (a crash, a shell's error), or more than the limits.
        """
        self._total += len(data)
        if self._total > MAX_STREAM:
            raise StreamError(f"the node sent more than {MAX_STREAM >> 20} MiB")
        self._buffer += data
        while not self.ended and self._step():
            pass

    def _begin(self) -> bool:
        """Pass over what login scripts print before the first frame; tells whether that has come."""
        at = 0 if self._buffer.startswith(_MAGIC) else self._buffer.find(_FIRST)
        if at < 0 and len(self._buffer) > MAX_NOISE:
            self._refuse(self._buffer)
        if at >= 0:
            del self._buffer[:at]
            self._begun = True
        return self._begun

    @property
    def noise(self) -> str:
        """What came in place of a first frame, for a message; "" once that has come."""
        return "" if self._begun else _shown(self._buffer)

    def _step(self) -> bool:
        if not self._begun and not self._begin():
            return False
        if self._want is None and not self._header():
            return False
        assert self._want is not None  # noqa: S101 - narrows the type
        length = int(self._want[3])
        if len(self._buffer) < length:
            return False
        payload = bytes(self._buffer[:length])
        del self._buffer[:length]
        self._frame(self._want, payload)
        self._want = None
        return True

    def _header(self) -> bool:
        end = self._buffer.find(b"\n", 0, MAX_HEADER)
        if end < 0:
            # a flood without a line end, or a line that begins otherwise, is no frame: no need to wait for its end
            if len(self._buffer) > MAX_HEADER or not _MAGIC.startswith(self._buffer[:5]):
                self._refuse(self._buffer)
            return False
        match = _HEADER.fullmatch(bytes(self._buffer[:end]))
        if match is None:
            self._refuse(self._buffer)
        del self._buffer[: end + 1]
        self._want = match.groups()
        self._frames += 1
        if int(self._want[3]) > MAX_FRAME or self._frames > MAX_FRAMES:
            raise StreamError(
                f"the node sent more than {MAX_FRAMES} answers, or one of more than {MAX_FRAME >> 20} MiB"
            )
        return True

    def _refuse(self, data: bytearray) -> NoReturn:
        """Say what came in place of a frame: a login banner, an error of the shell."""
        raise StreamError(f"instead of evidence came {_shown(data)!r}")

    def _frame(self, header: tuple[bytes, ...], payload: bytes) -> None:
        kind, status, milliseconds, _, detail, command = (part.decode("ascii") for part in header)
        if kind == "hello":
            self.hello = _rows(payload)
            self.heard = time.time()
        elif kind == "beat":
            self._frames -= 1  # however long it takes, they do not count
        elif kind == "end":
            self.usage, self.ended = _rows(payload), True
            self._buffer.clear()
        else:
            seconds = int(milliseconds) / 1000
            self.answers.append(Answer(kind, status, seconds, _text(detail), _text(command), scrub(payload)))
            if self._heard is not None:
                self._heard(self.answers[-1])


def _shown(data: bytearray) -> str:
    return clean(bytes(data[:300]).decode("utf-8", "replace").replace("\n", " ")).strip()[:200]


def _text(word: str) -> str:
    return "" if word == "-" else clean(scrub(unquote(word).encode()).decode())[:500]


def _rows(payload: bytes) -> dict[str, str]:
    rows: dict[str, str] = {}
    for line in payload[:20_000].decode("utf-8", "replace").split("\n")[:100]:
        key, found, text = line.partition("=")
        if found and key.isidentifier():
            rows[key] = clean(text)[:300]
    return rows
