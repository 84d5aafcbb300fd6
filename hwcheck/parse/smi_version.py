"""
``nvidia-smi --version``.

Source: ``nvidia-smi --version``; seen of 590.48.01. Other versions leave lines out.
Shape: driver version and CUDA version of the node. The NVSMI and NVML versions are those of the tool, and are not kept.
Units: versions as printed.
Missing: ``N/A`` and an empty value absent · ``ERR!`` failed · anything that is no version not understood.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import NODE
from hwcheck.parse.format import fmt
from hwcheck.parse.gpu_values import gap
from hwcheck.parse.sink import FactSink

_NAMES = {"driver version": "driver.version", "cuda version": "driver.cuda_version"}
_LINE = re.compile(r"(NVIDIA-SMI|NVML|DRIVER|CUDA) version\s*:\s*(.{0,80})$", re.IGNORECASE)


@fmt(
    "nvidia-smi.version",
    "nvidia-smi --version",
    gives=tuple(_NAMES.values()),
    opens=r"NVIDIA-SMI version\s+:",
    continues=r"(?:NVIDIA-SMI|NVML|DRIVER|CUDA) [Vv]ersion\s*:|\s*$",
    command=r"\bnvidia-smi(?:\.exe)?\s+--version\b",
)
def parse_smi_version(output: Output, facts: FactSink) -> None:
    """Read the two lines that tell of the driver."""
    for offset, text in enumerate(output.lines):
        match = _LINE.match(text)
        name = _NAMES.get(f"{match[1].lower()} version") if match else None
        if match is None or name is None:
            continue
        value, line = match[2].strip(), output.first_line + offset
        missing = gap(value)
        if missing is not None:
            facts.put(NODE, name, missing, line)
        elif re.fullmatch(r"\d+(\.\d+)+", value):
            facts.put(NODE, name, value, line)
        else:
            facts.unparsable(NODE, name, value, line)
