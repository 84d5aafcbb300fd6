"""
NCCL: its environment variables, and what its log says about the network.

Source: lines ``NCCL_NAME=value`` of ``env``, ``/etc/nccl.conf`` or a job script; NCCL_DEBUG=INFO logs of NCCL 2.x.
Shape: variables become one record of the node. Log lines stand anywhere between others; of them are kept the ports
    in use (``NET/IB : Using``), whether a channel uses GPUDirect RDMA, variables taken over, and failed completions.
Units: none.
Missing: nothing; a line that is not understood is passed over, a log says only what it says.
"""

from __future__ import annotations

import re
from typing import Any

from hwcheck.evidence import Output
from hwcheck.facts import NODE
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_ASSIGN = re.compile(r"^\s*(?:export\s+|declare -x\s+|-x\s+)?(NCCL_[A-Z0-9_]{2,60})=(.{0,400}?)\s*$")
_SET = re.compile(r"(NCCL_[A-Z0-9_]{2,60}) set(?: by environment)? to (\S{1,200}?)\.?\s*$")
_HCA = re.compile(r"\[\d{1,3}\]([\w.-]{1,32}:\d{1,3}/(?:IB|RoCE))")
_COMPLETION = re.compile(
    r"Got completion from peer (\S{1,80}) with status=(\d{1,4}) opcode=\d{1,4} len=\d{1,12} vendor err (\d{1,6})"
)
_COMPLETION_HCA = re.compile(r" hca ([\w.-]{1,32})")
_LOG = (
    r"(?:\[?[\dT:., +-]{8,40}\]?\s+)?\S{1,255}:\d{1,10}:\d{1,10} \[\d{1,4}\] (?:\S{1,120}:\d{1,6} )?"
    r"NCCL (?:INFO|WARN|ERROR|TRACE)\b"
)
MOST = 1000
"""Completions kept; a job that dies writes the same one for every channel."""


@fmt(
    "nccl.env",
    "NCCL environment",
    gives=("nccl.env",),
    opens=r"\s*(?:export\s+|declare -x\s+|-x\s+)?NCCL_[A-Z0-9_]{2,60}=",
    continues=r"\s*(?:export\s+|declare -x\s+|-x\s+)?NCCL_[A-Z0-9_]{2,60}=|\s*$",
    command=r"(?:^|[\s/|;&])(?:env|printenv)\b.*\bNCCL|/nccl\.conf\s*$",
)
def parse_nccl_env(output: Output, facts: FactSink) -> None:
    """Collect the variables; the last of one name counts, as for a shell."""
    found: dict[str, str] = {}
    first = 0
    for index, text in enumerate(output.lines):
        if match := _ASSIGN.match(text):
            first = first or output.first_line + index
            found[match[1]] = match[2].strip("\"'")
    if found:
        facts.put(NODE, "nccl.env", found, first)


@fmt(
    "nccl.log",
    "NCCL log",
    gives=("nccl.log.*",),
    opens=_LOG,
    lines=True,
    rank=45,
)
def parse_nccl_log(output: Output, facts: FactSink) -> None:
    """Collect what the log says about the network."""
    variables: dict[str, str] = {}
    hcas: list[str] = []
    completions: list[dict[str, Any]] = []
    at = {"env": 0, "hcas": 0, "gdr": 0}
    for index, text in enumerate(output.lines):
        line = output.first_line + index
        if "NET/IB" in text or "NCCL_" in text:
            if "Using" in text and (found := _HCA.findall(text)):
                at["hcas"] = line
                hcas += [hca for hca in found if hca not in hcas][:64]
            if match := _SET.search(text[:1000]):
                at["env"] = line
                variables[match[1]] = match[2]
            if "GDRDMA" in text:
                at["gdr"] = at["gdr"] or line
            if (match := _COMPLETION.search(text)) and len(completions) < MOST:
                completions.append(_completion(match, text, line))
    if variables:
        facts.put(NODE, "nccl.log.env", variables, at["env"])
    if hcas:
        facts.put(NODE, "nccl.log.hcas", tuple(hcas), at["hcas"])
    if at["gdr"]:
        facts.put(NODE, "nccl.log.gdr", value=True, line=at["gdr"])
    if completions:
        facts.put(NODE, "nccl.log.completions", tuple(completions), completions[0]["line"])


def _completion(match: re.Match[str], text: str, line: int) -> dict[str, Any]:
    hca = _COMPLETION_HCA.search(text, match.end())
    return {
        "status": int(match[2]), "vendor": int(match[3]), "hca": hca[1] if hca else "", "peer": match[1], "line": line,
    }  # fmt: skip
