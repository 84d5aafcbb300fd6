"""
Space and inodes of file systems.

Source: ``df``, ``df -P``, ``df -k``, ``df -h``, ``df -i`` of coreutils and busybox, English headings.
Shape: ``storage.space.size``, ``storage.space.used``, ``storage.inodes.used`` per mount point.
Units: per cent of what users can have, rounded up; MiB where the blocks are KiB.
Missing: ``-`` in place of a share: the file system has none (no fixed number of inodes).
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import Subject
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_HEAD = re.compile(r"^Filesystem\s+(?:Type\s+)?(1024-blocks|1K-blocks|Size|Inodes)\s+I?Used\s+")
_ROW = re.compile(r"^\S.*?\s+(\d[\d.]*[KMGTPE]?)\s+\d[\d.]*[KMGTPE]?\s+-?\d[\d.]*[KMGTPE]?\s+(\d{1,3})%\s+(/.*)$")
_KIB = ("1024-blocks", "1K-blocks")


@fmt(
    "df",
    "df",
    gives=("storage.space.*", "storage.inodes.used"),
    opens=r"Filesystem\s+(?:Type\s+)?(?:1024-blocks|1K-blocks|Size|Inodes)\s+I?Used\s+",
    continues=r"^Filesystem\s|^\S.{0,300}\s/",
    command=r"(?:^|[\s/|;&])df(?:\s|$)",
)
def df(output: Output, facts: FactSink) -> None:
    """Read each table by its heading."""
    heading = ""
    for number, line in enumerate((text[:600] for text in output.lines), output.first_line):
        head = _HEAD.match(line)
        if head:
            heading = head[1]
            continue
        row = _ROW.match(line)
        if not row or not heading:
            continue
        mount = Subject("mount", row[3].replace("\\040", " ").strip()[:200])
        if heading == "Inodes":
            facts.put(mount, "storage.inodes.used", int(row[2]), number)
            continue
        facts.put(mount, "storage.space.used", int(row[2]), number)
        if heading in _KIB and row[1].isdigit():
            facts.put(mount, "storage.space.size", int(row[1][:18]) // 1024, number)
