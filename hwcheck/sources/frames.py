r"""
The stream that a node sends back: one frame a source, as results arrive; the end is a frame too.

A frame is one header line and its payload::

    HWC1 <kind> <status> <milliseconds> <length> <detail> <command>\n<length bytes>

``kind`` is a format of hwcheck.parse, ``status`` one of :data:`STATUSES`; detail and command are percent-encoded, ``-``
when empty. The first frame is ``hello`` (payload: ``key=value`` lines about node and program), the last ``end``.
In between ``beat`` says that the node is still at it. A stream without ``end`` was cut off: what had arrived counts,
everything else is unknown.
"""

import os

MAGIC = "HWC1"
STATUSES = ("ok", "absent", "denied", "timeout", "failed", "truncated")
HELLO, BEAT, END = "hello", "beat", "end"
_SAFE = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-/=,+@")


def encode(text):
    """Percent-encode a text so that it is one word; ``-`` stands for the empty one."""
    if not text:
        return "-"
    word = "".join(chr(b) if b in _SAFE else "%%%02X" % b for b in text.encode("utf-8", "replace")[:2000])
    return "%2D" if word == "-" else word


def write_all(fd, data):
    """Write every byte; a reader that is gone raises BrokenPipeError."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def send(fd, kind, status, payload=b"", seconds=0.0, detail="", command=""):
    """Send one frame."""
    header = "%s %s %s %d %d %s %s\n" % (
        MAGIC, kind, status, int(seconds * 1000), len(payload), encode(detail), encode(command),
    )  # fmt: skip
    write_all(fd, header.encode("ascii") + payload)
