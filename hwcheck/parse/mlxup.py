"""
``mlxup`` / ``mlxfwmanager`` and ``mstflint``: firmware in flash and firmware that runs.

Source: the query of ``mlxup`` and ``mlxfwmanager --query`` (NVIDIA MFT), ``mstflint -d DEVICE query`` (also ``flint``).
Shape: one block a device; the subject is the NIC by its PCI address, or the name that the tool prints.
Units: none.
Missing: ``FW (Running)`` / ``FW Version(Running)`` is printed only where it differs from flash, by newer versions of
    the tools: without it nothing is said of what runs. ``N/A`` and ``--`` are absent; a device that the tool
    failed to open has FAILED firmware.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import Reason, Subject, pci_address
from hwcheck.parse import port_words as words
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_DEVICE = re.compile(r"^\s*Device #\d{1,4}:\s*$")
_VALUE = re.compile(r"^\s*([A-Z][\w ()]{1,30}?):[ \t]+(\S.*)$")
_VERSION = re.compile(r"^\s+(FW|FW \(Running\))[ \t]+(\S{1,40})(?:[ \t]+(\S{1,40}))?\s*$")
_FLINT_DEVICE = re.compile(r"(?:-d|--device)[ =]?(\S{1,64})")


def nic_named(text: str) -> Subject:
    """Name a NIC by its PCI address where the text is one, else by the last part of the path (``mt4129_pciconf0``)."""
    return Subject("nic", pci_address(text) or text.strip().rpartition("/")[2][:64])


@fmt(
    "mlxup",
    "mlxup / mlxfwmanager query",
    gives=("rdma.device.fw_flashed", "rdma.device.psid"),
    opens=r"Querying (?:Mellanox|NVIDIA) devices firmware|Device #\d{1,4}:\s*$",
    continues=r"\s*$|\s+\S|-{4,}\s*$|Device #\d{1,4}:|Querying |-[EWI]-|Found \d|Status:",
    command=r"(?:^|[\s/|;&])(?:mlxup|mlxfwmanager)\b",
)
def parse_mlxup(output: Output, facts: FactSink) -> None:
    """Read the block of each device; its name comes before its versions."""
    nic: Subject | None = None
    waiting: list[tuple[str, str, int]] = []
    device_line = 0
    for index, text in enumerate(output.lines):
        line = output.first_line + index
        if _DEVICE.match(text):
            nic, waiting, device_line = None, [], line
        elif match := _VERSION.match(text):
            _version(facts, nic, match, line)
        elif match := _VALUE.match(text):
            key, told = match[1], match[2].strip()
            if key == "PCI Device Name" and told:
                nic = nic_named(told)
                for name, value, at in waiting:
                    facts.read(nic, name, words.short, value, at)
            elif key in ("PSID", "Part Number"):  # both come before the name
                waiting.append(("rdma.device.psid" if key == "PSID" else "rdma.device.part", told, line))
            elif key == "Status" and nic:
                _status(facts, nic, told, line)
    if device_line and nic is None:
        facts.cut_off("the query ends before the name of the last device", ("rdma.device.fw_flashed",))


def _version(facts: FactSink, nic: Subject | None, match: re.Match[str], line: int) -> None:
    if nic is None:
        return
    if match[1] == "FW (Running)":
        facts.read(nic, "rdma.device.fw", words.short, match[2], line)
        return
    facts.read(nic, "rdma.device.fw_flashed", words.short, match[2], line)
    if match[3]:
        facts.read(nic, "rdma.device.fw_available", words.short, match[3], line)


def _status(facts: FactSink, nic: Subject, text: str, line: int) -> None:
    facts.put(nic, "rdma.device.fw_status", text[:60], line)
    if text.lower().startswith("fail"):
        facts.missing(nic, "rdma.device.fw_flashed", Reason.FAILED, text[:60], line)


_FLINT = {
    "FW Version": "rdma.device.fw_flashed",
    "FW Version(Running)": "rdma.device.fw",
    "PSID": "rdma.device.psid",
}
_FLINT_VALUE = re.compile(r"^\s*([A-Z][\w ]{1,30}(?:\(Running\))?):[ \t]+(\S.*)$")


@fmt(
    "mstflint",
    "mstflint / flint query",
    gives=("rdma.device.fw_flashed", "rdma.device.psid"),
    opens=r"Image type:\s+\w{2,8}\s*$",
    continues=r"[A-Z][\w ]{1,30}(?:\(Running\))?:\s|\s+\S|-[EWI]-|\s*$",
    command=r"(?:^|[\s/|;&])(?:mst)?flint\s.*\bq(?:uery)?\b",
)
def parse_mstflint(output: Output, facts: FactSink) -> None:
    """Read the query of one device, named by the command, else by its line."""
    named = _FLINT_DEVICE.search(output.command)
    nic = nic_named(named[1]) if named else Subject("nic", f"mstflint:{output.first_line}")
    for index, text in enumerate(output.lines):
        match = _FLINT_VALUE.match(text)
        if match and match[1] in _FLINT:
            told = match[2].strip()
            facts.read(nic, _FLINT[match[1]], words.short, told, output.first_line + index)
        elif text.startswith("-E-"):
            facts.cut_off(f"mstflint: {text.strip()[:120]}", ("rdma.device.fw_flashed", "rdma.device.psid"))
