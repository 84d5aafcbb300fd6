"""
``show_gids``: the GID table of every RoCE port.

Source: the ``show_gids`` script of OFED / DOCA; public outputs.
Shape: a table with the columns device, port, index, GID, IPv4 (may be empty), version, interface (may be empty);
    the subject is the port, the fact a tuple of rows.
Units: none. In a container the index need not begin at 0: entries of other network namespaces are left out.
Missing: a table that does not end in ``n_gids_found=N``, or holds another number of rows, is cut off.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import Subject, port
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_ROW = re.compile(
    r"^\s*([\w.:-]{1,64})\s+(\d{1,3})\s+(\d{1,4})\s+([0-9a-fA-F:]{15,39})\s+"
    r"(?:(\d{1,3}(?:\.\d{1,3}){3})\s+)?(v[12])(?:\s+([\w.:@-]{1,32}))?\s*$"
)
_END = re.compile(r"^\s*n_gids_found=(\d{1,6})\s*$")
_GIVES = ("rdma.port.gids",)


@fmt(
    "show_gids",
    "show_gids",
    gives=_GIVES,
    opens=r"\s*DEV\s+PORT\s+INDEX\s+GID\s+IPv4\s+VER",
    continues=r"\s*(?:DEV\s+PORT|---|n_gids_found=|[\w.:-]{1,64}\s+\d{1,3}\s+\d{1,4}\s+[0-9a-fA-F:]{2,39}|$)",
    ends=r"\s*n_gids_found=\d",
    command=r"(?:^|[\s/|;&])show_gids\b",
)
def parse_show_gids(output: Output, facts: FactSink) -> None:
    """Collect the rows of each port."""
    ports: dict[Subject, tuple[list[dict[str, object]], int]] = {}
    count, told = 0, -1
    for index, text in enumerate(output.lines):
        if match := _ROW.match(text):
            rows, _ = ports.setdefault(port(match[1], match[2]), ([], output.first_line + index))
            gid = {"index": int(match[3]), "gid": match[4].lower(), "ip": match[5] or "", "version": match[6]}
            rows.append({**gid, "netdev": match[7] or ""})
            count += 1
        elif match := _END.match(text):
            told = int(match[1])
    for subject, (rows, line) in ports.items():
        facts.put(subject, "rdma.port.gids", tuple(rows), line)
    if told != count and any(text.strip() for text in output.lines):
        facts.cut_off(f"show_gids: {count} rows understood, {'no end' if told < 0 else f'{told} announced'}", _GIVES)
