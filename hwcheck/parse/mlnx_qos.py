"""
``mlnx_qos``: how a NIC treats priorities: trust, PFC, buffers.

Source: ``mlnx_qos -i INTERFACE`` of OFED / DOCA; a public output.
Shape: one interface an output, named by the command only; without a command it is ``mlnx_qos:LINE``.
Units: cable length in metres. PFC is one flag for each of the priorities 0 to 7.
Missing: an output that ends before the row ``enabled`` leaves PFC untold; a row of other than 8 flags is UNPARSABLE.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import Subject, count
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_COMMAND = re.compile(r"(?:-i|--interface)[ =]?([\w.:@-]{1,32})")
_ROW = re.compile(r"^\s*enabled\s+([01 \t]{0,64}?)\s*$")
_TRUST = {"pcp", "dscp", "both"}


@fmt(
    "mlnx_qos",
    "mlnx_qos",
    gives=("roce.pfc", "roce.trust"),
    opens=r"DCBX mode:\s|Priority trust state:\s",
    continues=(
        r"DCBX mode:|Priority trust state:|Receive buffer size|Cable len:|PFC configuration:|tc:\s*\d|dscp2prio "
        r"|default priority|Buffers|[pP]riority|\s+\S|\s*$"
    ),
    command=r"(?:^|[\s/|;&])mlnx_qos\s",
)
def parse_mlnx_qos(output: Output, facts: FactSink) -> None:
    """Read trust, PFC, the owner of the settings, and the cable length."""
    named = _COMMAND.search(output.command)
    netdev = Subject("netdev", named[1] if named else f"mlnx_qos:{output.first_line}")
    pfc = False
    for index, text in enumerate(output.lines):
        line = output.first_line + index
        key, _, told = text.strip().partition(":")
        told = told.strip()
        if key == "Priority trust state":
            if told in _TRUST:
                facts.put(netdev, "roce.trust", told, line)
            else:
                facts.unparsable(netdev, "roce.trust", told, line)
        elif key == "DCBX mode" and told:
            facts.put(netdev, "roce.dcbx", told[:40], line)
        elif key == "Cable len":
            facts.read(netdev, "roce.cable_length", count, told, line)
        elif match := _ROW.match(text):
            pfc = True
            flags = match[1].split()
            if len(flags) == 8 and all(flag in "01" for flag in flags):
                facts.put(netdev, "roce.pfc", tuple(flag == "1" for flag in flags), line)
            else:
                facts.unparsable(netdev, "roce.pfc", text, line)
    if not pfc and any(text.strip() for text in output.lines):
        facts.cut_off("mlnx_qos ends before its PFC rows", ("roce.pfc", "roce.trust"))
