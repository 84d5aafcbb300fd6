"""Bytes of one source → its output, the same for a live node, a folder and a bundle. Pure: it is given the stream."""

from __future__ import annotations

from typing import BinaryIO

from hwcheck.errors import EvidenceError
from hwcheck.evidence import Output
from hwcheck.facts import Reason
from hwcheck.lines import lines
from hwcheck.parse.format import FORMATS

REASONS = {
    "ok": None,
    "absent": Reason.ABSENT,
    "denied": Reason.DENIED,
    "timeout": Reason.TIMEOUT,
    "failed": Reason.FAILED,
    "truncated": Reason.UNPARSABLE,
}
"""How reading a source ended, in the node's stream and in a manifest → why its facts are missing."""


def fill(output: Output, stream: BinaryIO) -> None:
    """Put a text into an output: into the digest of its format where that has one, else as clean lines."""
    spec = FORMATS.get(output.kind)
    output.digest = spec.digest() if spec is not None and spec.digest else None
    try:
        for number, line in enumerate(lines(stream), 1):
            if output.digest is None:
                output.lines.append(line)
            else:
                output.digest.feed(line, number)
            output.count = number
    except (EvidenceError, OSError) as error:
        output.reason, output.detail = Reason.UNPARSABLE, str(error)
