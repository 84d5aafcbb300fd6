"""
``nvidia-smi`` outputs that are recognised so that nobody reads a meaning into them, and that give no facts.

Source: ``nvidia-smi -h``, ``--help-query-*``; ``dmon``, ``pmon``; seen of 590.48.01.
Shape: none. Help texts quote words such as "Active" and "Thermal Slowdown" that must not be taken for states. Samples
of ``dmon`` and ``pmon`` are a time series; the states they hold stand in the table and in ``-q`` with more detail.
Units: none.
Missing: none.
"""

from __future__ import annotations

from hwcheck.evidence import Output
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink


@fmt(
    "nvidia-smi.help",
    "nvidia-smi help text",
    gives=(),
    opens=r"NVIDIA System Management Interface -- v|List of valid properties to query for the switch \"",
    command=r"\bnvidia-smi(?:\.exe)?\b.*\s(?:-h|--help(?:-[a-z-]+)?)(?:\s|$)",
    rank=30,
)
def parse_help(output: Output, facts: FactSink) -> None:
    """Give nothing."""


@fmt(
    "nvidia-smi.dmon",
    "nvidia-smi dmon or pmon",
    gives=(),
    opens=r"#\s*gpu\s+(?:pwr|gtemp|pid|sm|mclk|fb|rxpci|pviol)\b",
    continues=r"#\s*(?:gpu|Idx|Date|YYYYMMDD)\s|\s+\d{1,3}\s+[\d-]|\s*$",
    command=r"\bnvidia-smi(?:\.exe)?\s+(?:dmon|pmon)\b(?!.*\s-h)",
)
def parse_monitor(output: Output, facts: FactSink) -> None:
    """Give nothing."""
