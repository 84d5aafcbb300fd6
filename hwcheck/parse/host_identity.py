"""
What kind of machine this is, in one word: virtual or not, its product name, and who looked.

Source: ``systemd-detect-virt``, ``/sys/class/dmi/id/product_name``, ``dmidecode -s system-product-name``, ``id -un``,
``whoami``. Only the command tells what the word means.
Shape: ``platform.*`` of the node.
Units: none.
Missing: an answer of more than one line is not understood and left alone.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import NODE
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink


@fmt(
    "systemd-detect-virt",
    "systemd-detect-virt",
    gives=("platform.virtualization",),
    command=r"(?:^|[\s/|;&])systemd-detect-virt\b",
)
def detect_virt(output: Output, facts: FactSink) -> None:
    """Read ``kvm``, ``microsoft``, ``none``."""
    _word(output, facts, "platform.virtualization", r"[a-z][a-z0-9-]{1,30}")


@fmt(
    "dmi.product_name",
    "DMI product name",
    gives=("platform.product",),
    command=r"/sys/class/dmi/id/product_name\b|dmidecode\s+-s\s+system-product-name",
)
def product_name(output: Output, facts: FactSink) -> None:
    """Read the product name as the firmware gives it."""
    _word(output, facts, "platform.product", r".{1,100}")


@fmt("whoami", "whoami", gives=("platform.user",), command=r"^(?:id\s+-u?n?u?n?|whoami)\s*$")
def whoami(output: Output, facts: FactSink) -> None:
    """Read the user that took the evidence; ``id -u`` prints 0 for root."""
    _word(output, facts, "platform.user", r"[\w.-]{1,64}")


def _word(output: Output, facts: FactSink, name: str, pattern: str) -> None:
    lines = [(number, line.strip()) for number, line in enumerate(output.lines, output.first_line) if line.strip()]
    if len(lines) == 1 and re.fullmatch(pattern, lines[0][1]):
        facts.put(NODE, name, lines[0][1], lines[0][0])
