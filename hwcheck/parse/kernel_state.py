"""
What the kernel says of itself: release, taint, boot id, time since boot, traces of crashes.

Source: /proc/sys/kernel, /proc/uptime; /sys/fs/pstore, /var/lib/systemd/pstore and /var/crash (kdump) by name and time.
Shape: ``PATH: value`` lines; ``kernel.*`` of the node. A trace is ``PATH: left at SECONDS`` since 1970; its age is
    counted from the time of reading; ``/sys/fs/pstore: N traces of crashes`` ends the list.
Units: seconds.
Missing: a value that is no number is unparsable.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import NODE, real, whole
from hwcheck.parse.file_text import gap_of, rows
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_LEFT = re.compile(r"left at (\d{1,12})")


@fmt(
    "proc.kernel",
    "/proc/sys/kernel",
    gives=(
        "kernel.release", "kernel.taint", "kernel.boot_id", "kernel.hung_tasks", "kernel.uptime", "kernel.crashes",
    ),
)  # fmt: skip
def proc_kernel(output: Output, facts: FactSink) -> None:
    """Read one value a line."""
    crashes = []
    for path, text, number in rows(output):
        left = _LEFT.fullmatch(text)
        gap = gap_of(text)
        if left:
            crashes.append({"path": path[:200], "time": int(left[1]), "age": _age(output.time, int(left[1]))})
        elif gap is not None and path in _VALUES:
            facts.put(NODE, _VALUES[path][0], gap, number)
        elif path in _VALUES:
            name, reader = _VALUES[path]
            facts.read(NODE, name, reader, text, number)
        elif text == f"{len(crashes)} traces of crashes":
            facts.put(NODE, "kernel.crashes", tuple(crashes[:100]), number)


def _age(now: str, then: int) -> int | None:
    try:
        return int(real(now)) - then
    except ValueError:
        return None


def _word(text: str) -> str:
    if not re.fullmatch(r"[\w.+~:-]{1,100}", text):
        raise ValueError("not one word")
    return text


def _uptime(text: str) -> float:
    return real(text.split(" ", 1)[0])


_VALUES = {
    "/proc/sys/kernel/osrelease": ("kernel.release", _word),
    "/proc/sys/kernel/tainted": ("kernel.taint", whole),
    "/proc/sys/kernel/random/boot_id": ("kernel.boot_id", _word),
    "/proc/sys/kernel/hung_task_detect_count": ("kernel.hung_tasks", whole),
    "/proc/uptime": ("kernel.uptime", _uptime),
}
