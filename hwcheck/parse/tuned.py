"""
Which profile TuneD applies at boot.

Source: ``/etc/tuned/active_profile`` (one line), as the node program or ``tail -n +1`` prints it.
Shape: ``cpu.tuned_profile`` of the node.
Units: none.
Missing: no file: TuneD is not installed.
"""

from __future__ import annotations

from hwcheck.evidence import Output
from hwcheck.facts import NODE
from hwcheck.parse.flattened import files, gap
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink


@fmt(
    "tuned",
    "TuneD",
    gives=("cpu.tuned_profile",),
    opens=r"==> /etc/tuned/(?:active_profile|profile_mode) <==\s*$",
    continues=r"^==> /etc/tuned/|^[\w .-]{1,80}$|^$",
)
def tuned(output: Output, facts: FactSink) -> None:
    """Read the name; an empty file is a TuneD without a profile."""
    for path, first, lines in files(output):
        if path == "/etc/tuned/active_profile" and lines and not gap(lines[0]):
            facts.put(NODE, "cpu.tuned_profile", lines[0].strip()[:80], first)
