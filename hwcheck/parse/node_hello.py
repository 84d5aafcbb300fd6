"""
The node program's first words: which boot, when, and how far its clock is from the reader's.

Source: first frame of the stream (hwcheck.sources.program), with the reader's own clock before and after added by the
transport as ``asked`` and ``heard``.

Shape: ``key=value`` lines.

Units: seconds since 1970, as the clocks say.

Missing: an image has no boot; a time that is no number is unparsable. Without ``asked`` and ``heard`` (an older bundle)
there is no skew.
"""

from __future__ import annotations

from hwcheck.evidence import Output
from hwcheck.facts import NODE, real
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

KIND = "node.hello"
_LATEST = 1e11
"""Seconds; a clock beyond the year 5000 is no reading."""


@fmt(KIND, "the node's first words", gives=("evidence.boot_id", "evidence.taken", "time.skew", "time.skew.slack"))
def parse_node_hello(output: Output, facts: FactSink) -> None:
    """Read who answered, and bound its clock by the round trip."""
    rows = {key: (text, number) for number, line in enumerate(output.lines) for key, _, text in [line.partition("=")]}
    boot, line = rows.get("boot_id", ("", 0))
    if boot:
        facts.put(NODE, "evidence.boot_id", boot, output.first_line + line)
    times: dict[str, float] = {}
    for key in ("time", "asked", "heard"):
        text, line = rows.get(key, ("", 0))
        try:
            times[key] = real(text) if text else -1.0
        except ValueError:
            times[key] = -1.0
            facts.unparsable(NODE, "evidence.taken" if key == "time" else "time.skew", text, output.first_line + line)
    taken, asked, heard = times["time"], times["asked"], times["heard"]
    if 0 <= taken < _LATEST:
        facts.put(NODE, "evidence.taken", taken, output.first_line + rows["time"][1])
        if 0 <= asked <= heard < _LATEST:
            # the node read its clock after it was asked and before it was heard: outside of that the clocks differ
            late, early = taken - asked, taken - heard
            skew = late if late < 0 else early if early > 0 else 0.0
            facts.put(NODE, "time.skew", round(skew, 6), output.first_line + rows["time"][1])
            facts.put(NODE, "time.skew.slack", round(heard - asked, 6), output.first_line + rows["time"][1])
