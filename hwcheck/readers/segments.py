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

Lines of an output need not stand together (log lines between them, other hosts). The places between are filled with
empty lines, which mean nothing to any format, so that each line keeps its number.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

from hwcheck.evidence import EXCERPT_LENGTH, Evidence, Leftover, Output
from hwcheck.parse import FORMATS, Format
from hwcheck.readers.prefixes import find_margin, find_prefix
from hwcheck.readers.recognise import PROMPT, ROOT_PROMPT, SEPARATOR, openers

HEAD = 400
_BUG_REPORT_LS = "*** ls: "
_JSON = re.compile(r'^\s*[\[{]\s*(?:$|["{\[])')
_STRING = re.compile(r'"(?:[^"\\]|\\.)*(?:"|$)')
_MAX_JSON = 1 << 19  # lines
MAX_FILLING = 1 << 22
"""Empty lines that one text may cost; beyond it, the numbers of lines that stand far apart are too small."""


class Segmenter:
    """
    Splits one text of one node. Feed lines in order, then call :meth:`finish`.

    Args:
        evidence: where outputs are added.
        file: name for origins.
        logs: kind → output of logs, shared by the tasks of one job; their lines stand in order there.
    """

    def __init__(self, evidence: Evidence, file: str, logs: dict[str, Output] | None = None) -> None:
        self._known = openers()
        self._evidence = evidence
        self._file = file
        self._current: Output | None = None
        self._spec: Format | None = None
        self._guessed = False
        self._logs: dict[str, Output] = {} if logs is None else logs
        self._json: Output | None = None
        self._depth = 0
        self._command = ""
        self._ruled = False
        self._filling = MAX_FILLING
        self._left = Leftover(file)

    def feed(self, line: str, number: int) -> None:
        """Take one clean line."""
        log = self._known.log(line)
        if log is not None:
            self._log(log, line, number)
        elif not self._prompt(line, number):
            if self._json is not None:
                self._json_feed(line, number)
            else:
                self._content(line, number)

    def finish(self) -> None:
        """Close what is open and add everything to the evidence."""
        self._json_end(whole=False)
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
        else:
            self._add(output, line, number)

    def _add(self, output: Output, line: str, number: int) -> None:
        gap = number - output.first_line - len(output.lines)
        if not output.lines:
            output.first_line = number
        elif 0 < gap <= self._filling:
            self._filling -= gap
            output.lines.extend([""] * gap)
        output.lines.append(line)

    def _prompt(self, line: str, number: int) -> bool:
        """Take a shell prompt or a separator."""
        ruled, self._ruled = self._ruled, False
        match = PROMPT.match(line)
        if match is not None:
            self._begin(match["command"] or match["windows"] or "", number)
            return True
        separator = SEPARATOR.match(line)
        if separator is None:
            return self._bare_command(line, number, ruled=ruled)
        path = separator["path"] or ""
        if line.startswith(_BUG_REPORT_LS):
            return True  # nvidia-bug-report lists the file it is about to print
        self._ruled = not path
        if path or not self._waits():
            self._begin(f"cat {path}" if path else "", number)
        return True

    def _bare_command(self, line: str, number: int, *, ruled: bool) -> bool:
        """Take a command without a prompt: under a rule of nvidia-bug-report, or after root's "# "."""
        if ruled and not line.strip():
            self._ruled = True
            return True
        match = ROOT_PROMPT.match(line)
        command = match["command"] if match else line if ruled and line.startswith("/") else ""
        if not command or self._known.asked_by(command, whole=match is not None) is None:
            return False
        if match is not None and self._spec is not None and not self._waits():
            continues = self._spec.continues
            if continues is None or continues.match(line):
                return False  # "# all_reduce_perf" within an output is its own heading
        self._begin(command, number)
        return True

    def _waits(self) -> bool:
        """Tell whether a command was seen and nothing of its output yet."""
        return self._guessed and self._current is not None and not self._current.lines

    def _begin(self, command: str, number: int) -> None:
        self._json_end(whole=False)
        self._close()
        self._command = command.strip()
        spec = self._known.asked_by(self._command)
        if spec is not None:
            self._open(spec, number + 1)
            self._guessed = True

    def _content(self, line: str, number: int, *, json: bool = True) -> None:
        spec = self._spec
        if self._waits() and not line.strip():
            return
        if spec is not None and spec.continues is not None and spec.continues.match(line):
            self._append(line, number)
            return
        other = self._known.other(line)
        if other is not None and (spec is None or other.kind != spec.kind):
            if self._waits():
                self._guessed = False  # the command was taken for another tool's: the text itself decides
            self._open(other, number)
            self._append(line, number)
        elif other is not None:
            self._append(line, number)
        elif json and _JSON.match(line) and not (spec is not None and spec.continues is not None and self._guessed):
            self._close()
            self._json, self._depth = Output("", first_line=number, file=self._file, command=self._command), 0
            self._json_feed(line, number)
        elif spec is not None and (spec.continues is None or self._waits()):
            self._append(line, number)
        elif line.strip():
            self._close()
            self._leftover(line, number)
        elif spec is not None:
            self._append(line, number)

    def _open(self, spec: Format, number: int) -> None:
        self._close()
        self._spec = spec
        self._current = Output(spec.kind, first_line=number, file=self._file, command=self._command)
        self._guessed = False

    def _append(self, line: str, number: int) -> None:
        assert self._current is not None and self._spec is not None  # noqa: S101, PT018 - set together by _open
        self._add(self._current, line, number)
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

    def _json_feed(self, line: str, number: int) -> None:
        assert self._json is not None  # noqa: S101 - the caller has looked
        self._add(self._json, line, number)
        self._depth += _depth_change(line)
        if self._depth <= 0 or len(self._json.lines) >= _MAX_JSON:
            self._json_end(whole=self._depth <= 0)

    def _json_end(self, *, whole: bool) -> None:
        document, self._json = self._json, None
        if document is None:
            return
        for key, spec in self._known.json:
            if any(key in line for line in document.lines):
                document.kind = spec.kind
                self._evidence.outputs.append(document)
                return
        for number, line in enumerate(document.lines, document.first_line):
            if line.strip() and whole:
                self._leftover(line, number)
            elif line.strip():
                self._content(line, number, json=False)  # a lone bracket, no document: the lines speak for themselves


def _depth_change(line: str) -> int:
    """Count brackets outside of strings."""
    bare = _STRING.sub("", line)
    return bare.count("{") + bare.count("[") - bare.count("}") - bare.count("]")


def split_text(text: Iterable[str], file: str, first: Evidence) -> list[Evidence]:
    """
    Split a text into outputs; host prefixes make several nodes.

    Tasks of one job (``srun -l``) are taken for one node, unless two of them print the same: then nothing tells which
    node is which, and each task is judged by itself, as ``task 3``. Judging them together would let the healthy one
    hide the sick one.

    Args:
        text: clean lines.
        file: name for origins.
        first: takes everything that does not name a host.

    Returns:
        ``[first]``, or one evidence a host; ``first`` among them where some lines name no host.
    """
    stream = iter(text)
    known = openers()
    head = list(itertools.islice(stream, HEAD))
    margin = find_margin(head, known.recognised)
    split = find_prefix([margin(line) for line in head] if margin else head, known.recognised)
    segmenters: dict[tuple[str, str], Segmenter] = {}
    evidences: dict[tuple[str, str], Evidence] = {}
    logs: dict[str, Output] = {}
    for number, line in enumerate(itertools.chain(head, stream), 1):
        bare = margin(line) if margin else line
        host, rank, bare = split(bare) if split else ("", "", bare)
        segmenter = segmenters.get((host, rank))
        if segmenter is None:
            evidences[host, rank] = Evidence(host) if host or rank else first
            segmenter = Segmenter(evidences[host, rank], file, None if host else logs)
            segmenters[host, rank] = segmenter
        segmenter.feed(bare, number)
    for segmenter in segmenters.values():
        segmenter.finish()
    return _one_node_unless_told(evidences, first)


def _one_node_unless_told(evidences: dict[tuple[str, str], Evidence], first: Evidence) -> list[Evidence]:
    """Put the tasks of a job together where no two of them print the same."""
    tasks = {rank: evidence for (_, rank), evidence in evidences.items() if rank}
    kinds = [kind for task in tasks.values() for kind in {o.kind for o in task.outputs if not FORMATS[o.kind].lines}]
    apart = len(kinds) != len(set(kinds))
    nodes = [evidence for (_, rank), evidence in evidences.items() if not rank]
    for rank, task in sorted(tasks.items(), key=lambda item: int(item[0])):
        if apart and any(not FORMATS[output.kind].lines for output in task.outputs):
            task.node = f"task {rank}"
            nodes.append(task)
            continue
        if first not in nodes:
            nodes.append(first)
        first.outputs += task.outputs
        first.leftovers += task.leftovers
    return nodes or [first]
