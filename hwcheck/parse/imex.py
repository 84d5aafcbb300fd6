"""
The IMEX domain: nodes, who is connected to whom, and error lines of its log.

Source: ``nvidia-imex-ctl -q`` (one word, the state of this node's daemon); ``nvidia-imex-ctl -N`` of branches 550 to
595 (older ones print no version column), also shortened by hand to ``Node #0 * 10.0.0.1 * READY C``;
``/var/log/nvidia-imex.log``.
Shape: ``imex.state``, ``imex.nodes``, ``imex.matrix``, ``imex.domain_state`` and ``imex.log_errors`` of the node.
Units: none.
Missing: rows of the matrix that do not fit the node list are unparsable. The legend holds the words ``Invalid`` and
``Version mismatch`` in every healthy output, so only node lines and matrix rows are read.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import NODE
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_CELL = r"(?:C|I|N|R|D|A|!V!|!M!)"
_NODE = re.compile(
    rf"^Node #(\d{{1,4}})\s+[-*]?\s*([0-9A-Fa-f.:]{{2,45}}|[\w.-]{{1,80}})\s*[*]?\s*-?\s*([A-Z][A-Z_ ]{{2,30}}?)"
    rf"(?:\s+-\s+Version:\s*([\d.]{{1,20}}))?(?:\s+((?:{_CELL}\s*){{1,64}}))?\s*$"
)
_ROW = re.compile(rf"^\s*(\d{{1,4}})((?:\s+{_CELL}){{1,1024}})\s*$")
_GIVES = ("imex.nodes", "imex.matrix", "imex.domain_state")


@fmt(
    "nvidia-imex-ctl",
    "nvidia-imex-ctl -N",
    gives=_GIVES,
    opens=r"Connectivity Table Legend:|Node #\d{1,4}\s+[-*]",
    continues=r"^$|^\s|^Node #\d|^Nodes:|^Domain State|^(?:[A-Z]|!V!|!M!) - |^\d{1,2}/\d{1,2}/\d{4} ",
    ends=r"^Domain State:",
    command=r"(?:^|[\s/|;&])nvidia-imex-ctl\s+(?:-\S+\s+)*-N\b",
)
def imex_ctl(output: Output, facts: FactSink) -> None:
    """Read node lines, matrix rows and the domain state."""
    nodes, rows = [], []
    first = 0
    state = ""
    for number, line in enumerate((text[:8192] for text in output.lines), output.first_line):
        node, row = _NODE.match(line), _ROW.match(line)
        if node:
            first = first or number
            nodes.append(
                {"index": int(node[1]), "address": node[2], "state": node[3].strip(), "version": node[4] or ""}
            )
            if node[5]:
                rows.append(tuple(node[5].split()))
        elif row:
            rows.append(tuple(row[2].split()))
        elif line.startswith("Node #"):
            facts.unparsable(NODE, "imex.nodes", line, number)
            return
        elif line.startswith("Domain State:"):
            state = line.partition(":")[2].strip()[:20]
            facts.put(NODE, "imex.domain_state", state, number)
    if not nodes:
        facts.cut_off("no node is listed", _GIVES)
        return
    facts.put(NODE, "imex.nodes", tuple(nodes), first)
    if rows:
        facts.put(NODE, "imex.matrix", tuple(rows), first)
    if any("From\\To" in line[:200] for line in output.lines) and not (state and len(rows) == len(nodes)):
        facts.cut_off(f"{len(nodes)} nodes, {len(rows)} rows of the matrix, no end", _GIVES)


_STATE = re.compile(r"^\s*([A-Za-z][A-Za-z_]{1,30}(?: [A-Za-z_]{2,20}){0,2})\s*$")


@fmt(
    "nvidia-imex-ctl.q",
    "nvidia-imex-ctl -q",
    gives=("imex.state",),
    continues=r"\s*[A-Za-z][A-Za-z_ ]{1,60}\s*$",
    command=r"(?:^|[\s/|;&])nvidia-imex-ctl\s+(?:-\S+\s+)*-q\b",
)
def imex_state(output: Output, facts: FactSink) -> None:
    """Read the one word; two lines of words are no answer of this tool."""
    told = [(number, line) for number, line in enumerate(output.lines, output.first_line) if line.strip()]
    match = _STATE.match(told[0][1][:200]) if len(told) == 1 else None
    if match is not None:
        facts.put(NODE, "imex.state", match[1].upper().replace("_", " "), told[0][0])
    elif told:
        facts.unparsable(NODE, "imex.state", told[0][1], told[0][0])


@fmt(
    "nvidia-imex.log",
    "nvidia-imex.log",
    gives=("imex.log_errors",),
    opens=r"(?:\[.{5,40}?\] )?\[?(?:ERROR|INFO|WARNING)[\]:].{0,160}(?:nodes_config\.cfg|\b(?i:imex)\b)",
    lines=True,
    rank=20,
)
def imex_log(output: Output, facts: FactSink) -> None:
    """Keep the error lines; how old they are is not known where they carry no time."""
    errors = [
        (number, line.strip()[:200])
        for number, line in enumerate(output.lines, output.first_line)
        if re.match(r"(?:\[.{5,40}?\] )?\[?ERROR[\]:]", line[:100])
    ]
    if errors:
        facts.put(NODE, "imex.log_errors", tuple(text for _, text in errors), errors[0][0])
