"""
The kernel command line.

Source: ``/proc/cmdline``, or the ``Command line:`` line of the boot log without its prefix.
Shape: ``kernel.cmdline`` and ``kernel.arg.*`` of the node: arguments in order. Some (``pci=``, ``console=``) stand
several times and all count, so it is a list and no map. A value in double quotes keeps its blanks.
Units: none.
Missing: an empty line is unparsable: no kernel boots without arguments of the boot loader here.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import NODE
from hwcheck.parse.format import fmt
from hwcheck.parse.kernel_arguments import ARGUMENTS, put_arguments, split
from hwcheck.parse.sink import FactSink

_LIMIT = 8192


@fmt(
    "proc-cmdline",
    "/proc/cmdline",
    gives=ARGUMENTS,
    opens=r"(?:Kernel command line: |Command line: )?BOOT_IMAGE=\S",
    continues=r"(?!)",
    command=r"/proc/cmdline\b",
)
def proc_cmdline(output: Output, facts: FactSink) -> None:
    """Read the arguments of the first line that has any."""
    for number, line in enumerate(output.lines, output.first_line):
        text = re.sub(r"^(?:Kernel command line|Command line):\s*", "", line.strip())
        if text:
            put_arguments(facts, split(text[:_LIMIT]), number)
            if len(text) > _LIMIT:
                facts.cut_off(f"kernel command line of more than {_LIMIT} characters", ARGUMENTS)
            return
    facts.unparsable(NODE, "kernel.cmdline", "", output.first_line)
