"""
One-line errors of the NVIDIA tools, and what the fabric manager says when it does not start.

Source: nvidia-smi, nvidia-container-cli and their users (container runtimes), nvidia-fabricmanager-start.sh and
nv-fabricmanager of branches 470 to 595.
Shape: the message as a fact: of the node, or of the GPU it names.
Units: none.
Missing: ``Insufficient Permissions`` is denied; else the message is the fact. Behind ``wsl`` at a Windows prompt
(Windows Subsystem for Linux) the same words say nothing about the hardware: one GPU in TCC mode makes NVML there fail
for all; ``platform.wsl`` tells the checks.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import NODE, Reason, gpu_at
from hwcheck.parse.format import fmt
from hwcheck.parse.log_prefix import DAEMON_LINE
from hwcheck.parse.sink import FactSink

_HANDLE = re.compile(
    r"^Unable to determine the device handle for (?:GPU|gpu)\s?\d{0,3}:?\s*"
    r"([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.\d)?)\s*:\s*(.{1,120})$"
)
_NODE_MESSAGES = (
    ("driver.container_error", re.compile(r"nvidia-container-cli: .{0,300}")),
    ("driver.nvml_mismatch", re.compile(r"(?i:driver/library version mismatch)")),
    (
        "driver.unreachable",
        re.compile(r"^NVIDIA-SMI (?:has failed because it couldn't communicate|couldn't find libnvidia)"),
    ),
    ("driver.unreachable", re.compile(r"^Failed to initialize NVML: (?:Driver Not Loaded|Unknown Error|GPU access)")),
    ("driver.no_devices", re.compile(r"^No devices (?:were )?found")),
)
_LIBRARY = re.compile(r"^NVML library version: (\d{3,4}\.\d{1,4}(?:\.\d{1,4})?)\s*$")
_LINE = (
    r"Failed to initialize NVML: |NVML library version: \d|No devices (?:were )?found\b"
    r"|NVIDIA-SMI (?:has failed because it couldn't|couldn't find libnvidia)"
    r"|Unable to determine the device handle for (?:GPU|gpu)|.{0,300}?nvidia-container-cli: "
)


@fmt(
    "nvidia.errors",
    "error message of an NVIDIA tool",
    gives=(
        "driver.nvml_mismatch",
        "driver.unreachable",
        "driver.no_devices",
        "driver.container_error",
        "gpu.handle_error",
    ),
    opens=_LINE,
    continues=rf"^(?:{_LINE}|Make sure that the latest NVIDIA driver)",
    rank=60,
)
def nvidia_errors(output: Output, facts: FactSink) -> None:
    """Put each message where it belongs."""
    if re.search(r"(?:^|[\s/\\>])wsl(?:\.exe)?\s", output.command[:500]):
        facts.put(NODE, "platform.wsl", value=True, line=output.first_line)
    for number, line in enumerate((text[:800].rstrip() for text in output.lines), output.first_line):
        handle, library = _HANDLE.match(line), _LIBRARY.match(line)
        if handle:
            facts.put(gpu_at(handle[1]), "gpu.handle_error", handle[2].strip(), number)
        elif library:
            facts.put(NODE, "driver.library_version", library[1], number)
        elif line.startswith("Failed to initialize NVML: Insufficient Permissions"):
            facts.missing(NODE, "driver.unreachable", Reason.DENIED, "NVML says insufficient permissions", number)
        for name, pattern in _NODE_MESSAGES:
            found = pattern.search(line)
            if found:
                facts.put(NODE, name, (found[0] if name == "driver.container_error" else line).strip()[:300], number)


_REFUSED = re.compile(
    r"fabric manager NVIDIA GPU driver interface version (\S{1,30}) (?:don't|doesn't|does not|do not) match with "
    r"driver version ([\d.]{1,30}?)\.?(?:\s|$)"
)
_IDLE = re.compile(
    r"(?:request to query NVSwitch device information failed.{0,120}|.{0,40}NV_WARN_NOTHING_TO_DO.{0,10})"
)
_MANAGER_LINE = (
    rf"{DAEMON_LINE}(?:(?:nv-fabricmanager|nvidia-fabricmanager-start\.sh)(?:\[\d+\])?: )?"
    r"(?:fabric manager NVIDIA GPU driver interface version \S+ (?:do|does)|Detected (?:Pre-)?NVL5"
    r"|request to query NVSwitch device information failed|\s*(?:WARNING )?Nothing to do \[NV_WARN_NOTHING_TO_DO\])"
)


@fmt(
    "fabric-manager.start",
    "start message of the fabric manager",
    gives=("driver.fabric_manager.version", "driver.fabric_manager.wanted", "driver.fabric_manager.idle"),
    opens=_MANAGER_LINE,
    lines=True,
    rank=20,
)
def fabric_manager_start(output: Output, facts: FactSink) -> None:
    """Read why the fabric manager did not start: another version than the driver, or no NVSwitch."""
    idle_text = ""
    for number, line in enumerate((text[:800] for text in output.lines), output.first_line):
        refused, idle = _REFUSED.search(line), _IDLE.search(line)
        if refused:
            facts.put(NODE, "driver.fabric_manager.version", refused[1], number)
            facts.put(NODE, "driver.fabric_manager.wanted", refused[2], number)
        elif idle and not idle_text:
            idle_text = idle[0].strip()
            facts.put(NODE, "driver.fabric_manager.idle", idle_text, number)
