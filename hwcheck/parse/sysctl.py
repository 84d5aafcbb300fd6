"""
Kernel parameters.

Source: ``sysctl -a``, ``sysctl KEY...``, ``sysctl -p``.
Shape: ``sysctl.values`` of the node: dotted name → text as printed; some also as a fact of their own.
Units: as the kernel has them.
Missing: ``cannot stat ... No such file`` is a key this kernel does not have: no entry; ``permission denied`` likewise.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import NODE, Reason
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_ROOTS = r"(?:abi|debug|dev|fs|kernel|net|sunrpc|user|vm)"
_LINE = re.compile(rf"^({_ROOTS}\.[A-Za-z0-9_.:/@-]{{1,120}}) ?= ?(.{{0,400}})$")
_NUMBERS = {
    "kernel.numa_balancing": "sysctl.numa_balancing",
    "vm.max_map_count": "sysctl.max_map_count",
    "vm.min_free_kbytes": "sysctl.min_free_kbytes",
}
_DENIED = re.compile(rf"^sysctl: permission denied on key ['\"]?({_ROOTS}\.[\w.]{{1,120}})")


@fmt(
    "sysctl",
    "sysctl",
    gives=("sysctl.*",),
    opens=rf"{_ROOTS}\.[a-z0-9_]+(?:\.[A-Za-z0-9_:/@-]+)* = \S",
    continues=rf"^{_ROOTS}\.[A-Za-z0-9_.:/@-]+ ?=|^sysctl: ",
    command=r"(?:^|[\s/|;&])sysctl(?:\s|$)",
)
def sysctl(output: Output, facts: FactSink) -> None:
    """Read every parameter as text, and the few that are judged as numbers."""
    values: dict[str, str] = {}
    for number, line in enumerate(output.lines, output.first_line):
        denied = _DENIED.match(line[:300])
        if denied and denied[1] in _NUMBERS:
            facts.missing(NODE, _NUMBERS[denied[1]], Reason.DENIED, "permission denied", number)
        found = _LINE.match(line[:600])
        if not found:
            continue
        key, text = found[1], found[2].strip()
        values[key] = text
        if key in _NUMBERS:
            if re.fullmatch(r"-?\d{1,18}", text):
                facts.put(NODE, _NUMBERS[key], int(text), number)
            else:
                facts.unparsable(NODE, _NUMBERS[key], text, number)
    if values:
        facts.put(NODE, "sysctl.values", values, output.first_line)
