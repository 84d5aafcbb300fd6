"""Run the node program as a node does, and take its frames apart."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from urllib.parse import unquote

from hwcheck.evidence import Evidence, Output
from hwcheck.facts import Reason, Snapshot
from hwcheck.parse.snapshot import take_snapshot
from hwcheck.transports.request import Request

REASONS = {
    "ok": None, "absent": Reason.ABSENT, "denied": Reason.DENIED, "timeout": Reason.TIMEOUT, "failed": Reason.FAILED,
    "truncated": Reason.UNPARSABLE,
}  # fmt: skip


@dataclass(frozen=True)
class Frame:
    """One frame of the stream."""

    kind: str
    status: str
    seconds: float
    detail: str
    text: str

    @property
    def output(self) -> Output:
        """The frame as evidence."""
        output = Output(self.kind, self.text.splitlines(), file=self.kind)
        output.reason, output.detail = REASONS[self.status], self.detail
        return output


def ask(request: Request, environment: dict[str, str], python: str = sys.executable) -> dict[str, Frame]:
    """Return the frames of a run, by kind."""
    done = subprocess.run(
        [python, "-I", "-S", "-"], input=request.program(), capture_output=True, env=os.environ | environment,
        timeout=60, check=True,
    )  # fmt: skip
    assert done.stderr == b""
    found, data = {}, done.stdout
    while data:
        header, _, data = data.partition(b"\n")
        _, kind, status, milliseconds, length, detail, _ = header.decode("ascii").split(" ")
        text, data = data[: int(length)].decode(), data[int(length) :]
        found[kind] = Frame(kind, status, int(milliseconds) / 1000, unquote(detail).removeprefix("-"), text)
    assert "end" in found
    return found


def snapshot(*frames: Frame) -> Snapshot:
    """Parse frames as one node."""
    return take_snapshot(Evidence("node", [frame.output for frame in frames], collected=True))
