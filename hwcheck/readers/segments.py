"""
One text → outputs of known formats, and what is left over.

A paste mixes shell prompts, several tools, log lines and prose. Line by line, the first of these that fits claims it:

1. a log format (kernel log, fabric manager log): its lines may stand anywhere;
2. a shell prompt or separator: ends the output before it; its command may tell the format of what follows;
3. the current output, if its format says which lines continue it;
4. the ``opens`` of a format: begins an output;
5. a JSON document: handed whole to the format whose key stands in it;
6. the current output, if its format takes all lines until something else begins.

Anything else is left over, and said in the report.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from hwcheck.evidence import EXCERPT_LENGTH, Evidence, Leftover, Output
from hwcheck.parse import FORMATS, Format
from hwcheck.readers.prefixes import find_prefix

HEAD = 400
_PROMPT = re.compile(
    r"^(?:\([\w.-]{1,40}\) ?)?"
    r"(?:\[?[\w.-]{1,64}@[\w.-]{1,64}[^\]$#>|]{0,200}\]?[$#]|\$|#\s\$|sh-[0-9.]{1,8}[$#]|[A-Za-z]:\\[^>|\"]{0,200}>)"
    r"(?:\s+(?P<command>\S.*)|(?P<windows>\S.*)|\s*)$"
)
_SEPARATOR = re.compile(r"^(?:#{8,}|_{8,}|\*{3} (?P<path>\S.{0,200}))\s*$")
_JSON = re.compile(r'^\s*[\[{]\s*(?:$|["{\[])')
_MAX_JSON = 1 << 19  # lines


def _by_rank(log: bool) -> list[Format]:
    chosen = (spec for spec in FORMATS.values() if spec.lines is log and spec.opens and not spec.opens.startswith("json:"))
    return sorted(chosen, key=lambda spec: spec.rank)


def _combined(specs: list[Format]) -> re.Pattern[str] | None:
    """Join all openers into one pattern; the group that matched names the format."""
    if not specs:
        return None
    return re.compile("|".join(f"(?P<f{index}>{spec.opens})" for index, spec in enumerate(specs)))


class _Openers:
    """All formats, ready for recognition; made once, after every parser is imported."""

    def __init__(self) -> None:
        self.logs = [(spec, re.compile(spec.opens or "")) for spec in _by_rank(True)]
        self.specs = _by_rank(False)
        self.pattern = _combined(self.specs)
        self.commands = [spec for spec in FORMATS.values() if spec.command is not None]
        self.json = [(spec.opens[5:], spec) for spec in FORMATS.values() if spec.opens and spec.opens.startswith("json:")]

    def log(self, line: str) -> Format | None:
        return next((spec for spec, pattern in self.logs if pattern.match(line)), None)

    def other(self, line: str) -> Format | None:
        match = self.pattern.match(line) if self.pattern else None
        # the group that closes last is the outer one, the format's own
        return self.specs[int(match.lastgroup[1:])] if match is not None and match.lastgroup else None

    def recognised(self, some: list[str]) -> int:
        return sum(1 for line in some if self.log(line) or self.other(line))


_openers: _Openers | None = None


def openers() -> _Openers:
    """Return the recognisers of all formats."""
    global _openers  # noqa: PLW0603 - compiled once; formats are fixed after import
    if _openers is None:
        _openers = _Openers()
    return _openers


class Segmenter:
    """
    Splits one text of one node. Feed lines in order, then call :meth:`finish`.

    Args:
        evidence: where outputs are added.
        file: name for origins.
    """

    def __init__(self, evidence: Evidence, file: str) -> None:
        self._known = openers()
        self._evidence = evidence
        self._file = file
        self._current: Output | None = None
        self._spec: Format | None = None
        self._guessed = False
        self._logs: dict[str, Output] = {}
        self._json: list[str] | None = None
        self._depth = 0
        self._json_line = 0
        self._command = ""
        self._left = Leftover(file)

    def feed(self, line: str, number: int) -> None:
        """Take one clean line."""
        if self._json is not None:
            self._json_feed(line)
            return
        log = self._known.log(line)
        if log is not None:
            self._log(log, line, number)
        elif not self._prompt(line, number):
            self._content(line, number)

    def finish(self) -> None:
        """Close what is open and add everything to the evidence."""
        if self._json is not None:
            self._json_end()
        self._close()
        if self._left.count:
            self._evidence.leftovers.append(self._left)

    def _log(self, spec: Format, line: str, number: int) -> None:
        output = self._logs.get(spec.kind)
        if output is None:
            output = Output(spec.kind, first_line=number, file=self._file, command=self._command)
            output.digest = spec.digest() if spec.digest else None
            self._logs[spec.kind] = output
            self._evidence.outputs.append(output)
        output.count += 1
        if output.digest is not None:
            output.digest.feed(line, number)
            return
        # keep line numbers true: a log whose lines stand apart is padded with the blanks between
        output.lines.extend([""] * (number - output.first_line - len(output.lines)))
        output.lines.append(line)

    def _prompt(self, line: str, number: int) -> bool:
        match = _PROMPT.match(line)
        if match is not None:
            command = match["command"] or match["windows"] or ""
        else:
            separator = _SEPARATOR.match(line)
            if separator is None:
                return False
            if not separator["path"] and self._guessed and self._current is not None and not self._current.lines:
                self._current.first_line = number + 1
                return True  # a rule under the command line, its output follows
            command = f"cat {separator['path']}" if separator["path"] else ""
        self._close()
        self._command = command.strip()
        if self._command:
            for spec in self._known.commands:
                if spec.command is not None and spec.command.search(self._command):
                    self._open(spec, number + 1)
                    self._guessed = True
                    break
        return True

    def _content(self, line: str, number: int) -> None:
        spec = self._spec
        if spec is not None and spec.continues is not None and spec.continues.match(line):
            self._append(line)
            return
        other = self._known.other(line)
        if other is not None and (spec is None or other.kind != spec.kind):
            if self._guessed and self._current is not None and not self._current.lines:
                self._guessed = False  # the command was taken for another tool's: the text itself decides
            self._open(other, number)
            self._append(line)
        elif other is not None:
            self._append(line)
        elif _JSON.match(line) and not (spec is not None and spec.continues is not None and self._guessed):
            self._close()
            self._json, self._json_line, self._depth = [], number, 0
            self._json_feed(line)
        elif spec is not None and (spec.continues is None or (self._guessed and self._current and not self._current.lines)):
            self._append(line)
        elif line.strip():
            self._close()
            self._leftover(line, number)
        elif spec is not None:
            self._append(line)

    def _open(self, spec: Format, number: int) -> None:
        self._close()
        self._spec = spec
        self._current = Output(spec.kind, first_line=number, file=self._file, command=self._command)
        self._guessed = False

    def _append(self, line: str) -> None:
        assert self._current is not None and self._spec is not None  # noqa: S101, PT018 - set together by _open
        self._current.lines.append(line)
        if self._spec.ends is not None and self._spec.ends.match(line):
            self._close()

    def _close(self) -> None:
        output, self._current, self._spec = self._current, None, None
        if output is None:
            return
        while output.lines and not output.lines[-1].strip():
            output.lines.pop()
        if output.lines or self._guessed:
            self._evidence.outputs.append(output)
        self._guessed = False

    def _leftover(self, line: str, number: int) -> None:
        if not self._left.count:
            self._left.first_line, self._left.excerpt = number, line.strip()[:EXCERPT_LENGTH]
        self._left.count += 1

    def _json_feed(self, line: str) -> None:
        assert self._json is not None  # noqa: S101 - the caller has looked
        self._json.append(line)
        self._depth += _depth_change(line)
        if self._depth <= 0 or len(self._json) >= _MAX_JSON:
            self._json_end()

    def _json_end(self) -> None:
        document, self._json = self._json or [], None
        for key, spec in self._known.json:
            if any(key in line for line in document):
                output = Output(spec.kind, document, self._json_line, self._file, self._command)
                self._evidence.outputs.append(output)
                return
        for offset, line in enumerate(document):
            if line.strip():
                self._leftover(line, self._json_line + offset)


def _depth_change(line: str) -> int:
    """Count brackets outside of strings."""
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', "", line)
    return bare.count("{") + bare.count("[") - bare.count("}") - bare.count("]")


def split_text(text: Iterable[str], file: str, first: Evidence) -> list[Evidence]:
    """
    Split a text into outputs; host prefixes make several nodes.

    Args:
        text: clean lines.
        file: name for origins.
        first: takes everything, unless the lines carry host names.

    Returns:
        ``[first]``, or one evidence a host.
    """
    stream = iter(text)
    head = [line for _, line in zip(range(HEAD), stream)]
    split = find_prefix(head, openers().recognised)
    segmenters: dict[str, Segmenter] = {}
    evidences: dict[str, Evidence] = {}

    def rest() -> Iterable[str]:
        yield from head
        yield from stream

    for number, line in enumerate(rest(), 1):
        host, bare = split(line) if split else ("", line)
        segmenter = segmenters.get(host)
        if segmenter is None:
            evidences[host] = Evidence(host) if host else first
            segmenter = segmenters[host] = Segmenter(evidences[host], file)
        segmenter.feed(bare, number)
    for segmenter in segmenters.values():
        segmenter.finish()
    return list(evidences.values()) or [first]
