"""
Page sizes and huge pages.

Source: ``/sys/kernel/mm`` (kernel admin guide, transhuge and hugetlbpage), with the page size as ``getconf`` prints it.
Shape: ``memory.thp``, ``memory.thp_defrag``, ``memory.page_size``, ``memory.huge_pages`` of the node.
Units: KiB.
Missing: a kernel without transparent huge pages has no such folder: absent.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import NODE
from hwcheck.parse.flattened import attributes, gap
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_CHOICE = re.compile(r"\[([a-z+]{2,20})\]")
_THP = {"transparent_hugepage/enabled": "memory.thp", "transparent_hugepage/defrag": "memory.thp_defrag"}
_SIZE = re.compile(r"^hugepages/hugepages-(\d{1,9})kB/(nr|free)_hugepages$")


@fmt(
    "sysfs.mm",
    "/sys/kernel/mm",
    gives=("memory.thp", "memory.thp_defrag", "memory.huge_pages", "memory.page_size"),
    opens=r"/sys/kernel/mm/(?:transparent_hugepage|hugepages)/[\w./-]{1,80}:",
    continues=r"^/sys/kernel/mm/|^PAGE_?SIZE\b",
)
def sysfs_mm(output: Output, facts: FactSink) -> None:
    """Read the choice in brackets, and how many pages of each size are reserved."""
    pages: dict[int, dict[str, int]] = {}
    for line, path, value in attributes(output, "/sys/kernel/mm/"):
        choice, size, reason = _CHOICE.search(value), _SIZE.match(path), gap(value)
        if path in _THP:
            if choice:
                facts.put(NODE, _THP[path], choice[1], line)
            elif reason:
                facts.missing(NODE, _THP[path], reason, value[:60], line)
            else:
                facts.unparsable(NODE, _THP[path], value, line)
        elif size and re.fullmatch(r"\d{1,12}", value):
            pages.setdefault(int(size[1]), {})[size[2]] = int(value)
    records = ({"size": size, "count": n["nr"], "free": n["free"]} for size, n in sorted(pages.items()) if len(n) == 2)
    facts.put(NODE, "memory.huge_pages", tuple(records), output.first_line) if pages else None
    for number, line_text in enumerate(output.lines, output.first_line):
        found = re.match(r"PAGE_?SIZE:?\s+(\d{3,7})$", line_text[:60].strip())
        if found:
            facts.put(NODE, "memory.page_size", int(found[1]) // 1024, number)
