"""
Loaded kernel modules.

Source: ``lsmod`` of kmod, or ``/proc/modules``, whole or filtered through one grep.
Shape: names in the order printed, and the pattern of the filter: a filtered list proves absence only of names that
match the pattern. Subject is the node.
Units: none; sizes and use counts are not kept.
Missing: a line that is no module line is left alone; a list without any module line is unparsable.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import NODE
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_MODULE = re.compile(r"^([A-Za-z]\w{0,63})\s+\d{1,12}\s+-?\d{1,6}(?:\s|$)")
_GREP = re.compile(r"\|\s*e?grep\s+(?:-[A-Za-z]+\s+)*(?:\"([^\"]{1,200})\"|'([^']{1,200})'|(\S{1,200}))")


@fmt(
    "lsmod",
    "lsmod",
    gives=("kernel.modules", "kernel.modules.filter", "kernel.nouveau"),
    opens=r"Module\s+Size\s+Used by\b",
    continues=r"^[A-Za-z]\w{0,63}\s+\d{1,12}\s+-?\d{1,6}(?:\s|$)",
    command=r"(?:^|[\s/|;&])lsmod\b|\bcat\s+/proc/modules\b",
)
def lsmod(output: Output, facts: FactSink) -> None:
    """Read the names, and by which pattern they were filtered."""
    found = {
        match[1]: number
        for number, line in enumerate(output.lines, output.first_line)
        if (match := _MODULE.match(line[:300]))
    }
    pattern = _filter(output.command)
    if not found and not pattern:
        facts.unparsable(NODE, "kernel.modules", output.lines[0] if output.lines else "", output.first_line)
        return
    facts.put(NODE, "kernel.modules", tuple(found), output.first_line if output.lines else 0)
    facts.put(NODE, "kernel.modules.filter", pattern, output.first_line if output.lines else 0)
    if "nouveau" in found:
        facts.put(NODE, "kernel.nouveau", "nouveau", found["nouveau"])


def _filter(command: str) -> str:
    """Return the pattern of the last grep in the command; "?" for a filter that is not understood."""
    command = command[:2000]
    greps = _GREP.findall(command)
    if greps:
        return str(next(part for part in greps[-1] if part))
    return "?" if "|" in command else ""
