"""
``mlxlink``: a link as the NIC's firmware sees it: state, error rates, module.

Source: ``mlxlink -d DEVICE [-m] [-c]`` of NVIDIA MFT (4.35 seen); public outputs of 400G links.
Shape: sections of ``key : value`` lines; one link an output. The subject is the port named in the command; without a
    command it is ``mlxlink:LINE/1``. A second ``Operational Info`` begins another link.
Units: temperature C, voltage mV, current mA, power dBm, times in minutes. ``54 [-5..75]`` is a value with its limits.
Missing: ``N/A`` is absent. Passive copper has no sensors: zeros and ``[0..0]`` there, and its LOS and LOL bits, mean
    nothing and make no sensor. ``15E-255`` is the tool's way to write "no error".
"""

from __future__ import annotations

import re
from typing import Any

from hwcheck.evidence import Output
from hwcheck.facts import Subject, count, port, real
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_SECTIONS = (
    r"(?:Operational Info|Supported Info|Troubleshooting Info|Tool Information|Module Info|"
    r"Physical Counters and BER Info|FEC Capability Info|FEC Histogram|Eye Opening Info|Serdes \w+|"
    r"Management (?:PCIe )?Performance Counters Info|Raw Physical Errors|Link Flap Counters Info|Device Info)\b"
)
_VALUE = re.compile(r"^\s*([A-Z][\w ()/,.\[\]-]{1,60}?)\s*:[ \t]*(\S.*)?$")
_COMMAND = re.compile(r"(?:-d|--device)[ =]?(\S{1,64})")
_COMMAND_PORT = re.compile(r"(?:\s-p|--port)[ =]?(\d{1,3})\b")
_RANGED = re.compile(r"^([-\d.,]{1,120})\s*\[(-?[\d.]{1,10})\.\.(-?[\d.]{1,10})\]$")
_SENSORS = ("Temperature", "Voltage", "Bias Current", "Rx Power Current", "Tx Power Current")


def _text(text: str) -> str:
    text = text.strip()
    if not text.isprintable() or len(text) > 120:
        raise ValueError("not a short text")
    return text


def _lanes(text: str) -> tuple[int, ...]:
    return tuple(count(part) for part in text.split(",")[:16])


_READ: dict[str, tuple[str, Any]] = {
    "State": ("rdma.link.state", _text),
    "Physical state": ("rdma.link.phys_state", _text),
    "Speed": ("rdma.link.speed", _text),
    "Width": ("rdma.link.width", _text),
    "FEC": ("rdma.link.fec", _text),
    "Status Opcode": ("rdma.link.opcode", count),
    "Recommendation": ("rdma.link.recommendation", _text),
    "Time Since Last Clear [Min]": ("rdma.link.minutes", real),
    "Effective Physical Errors": ("rdma.link.effective_errors", count),
    "Effective Physical BER": ("rdma.link.effective_ber", real),
    "Raw Physical BER": ("rdma.link.raw_ber", real),
    "Raw Physical Errors Per Lane": ("rdma.link.raw_errors", _lanes),
    "Symbol Errors": ("rdma.link.symbol_errors", count),
    "Symbol BER": ("rdma.link.symbol_ber", real),
    "Link Down Counter": ("rdma.link.downs", count),
    "Link Error Recovery Counter": ("rdma.link.recoveries", count),
    "Identifier": ("rdma.module.identifier", _text),
    "Cable Technology": ("rdma.module.technology", _text),
    "Cable Type": ("rdma.module.technology", _text),
    "Vendor Name": ("rdma.module.vendor", _text),
    "Vendor Part Number": ("rdma.module.part", _text),
    "Vendor Serial Number": ("rdma.module.serial", _text),
}


@fmt(
    "mlxlink",
    "mlxlink",
    # What every call gives, and what -c adds; nothing of -m: a missing sensor is judged where the section is there.
    gives=("rdma.link.state", "rdma.link.recommendation"),
    opens=rf"\s*{_SECTIONS}\s*$",
    continues=(
        rf"\s*(?:[A-Za-z][\w ()/,.\[\]-]{{1,80}}\s:(?:\s|$)|-{{3,}}\s*$|{_SECTIONS}\s*$|-[EWI]-|$"
        r"|[A-Z][\w &/()-]{2,50} (?:Info|Information|Counters|Histogram)\s*$)"
    ),
    command=r"(?:^|[\s/|;&])mlxlink\s",
)
def parse_mlxlink(output: Output, facts: FactSink) -> None:
    """Read the sections; the same section again is another link."""
    subject, seen, sensors = _subject(output, 0), set[str](), list[dict[str, Any]]()
    sensor_line, passive = 0, False
    for index, text in enumerate(output.lines):
        line = output.first_line + index
        heading = re.match(rf"\s*({_SECTIONS})\s*$", text)
        if heading and heading[1] in seen:
            _close(facts, subject, [] if passive else sensors, sensor_line)
            subject, seen, sensors = _subject(output, line), set(), []
            sensor_line, passive = 0, False
        if heading:
            seen.add(heading[1])
        elif match := _VALUE.match(text):
            key, told = match[1], (match[2] or "").strip()
            if key.partition(" [")[0] in _SENSORS:
                sensor_line = sensor_line or line
                sensors += _sensor(key, told)
            elif key in _READ:
                facts.read(subject, *_READ[key], told, line)
                passive |= key.startswith("Cable ") and "passive" in told.lower()
        elif text.startswith("-E-"):
            facts.cut_off(f"mlxlink: {text.strip()[:120]}", ("rdma.link.*", "rdma.module.*"))
    _close(facts, subject, [] if passive else sensors, sensor_line)


def _subject(output: Output, line: int) -> Subject:
    """Name the link: by the command, and where there is none, or it cannot be this link's, by the line."""
    match = _COMMAND.search(output.command)
    if match is None or line:
        return port(f"mlxlink:{line or output.first_line}")
    number_ = _COMMAND_PORT.search(output.command)
    return port(match[1].rpartition("/")[2], number_[1] if number_ else 1)


def _sensor(key: str, text: str) -> list[dict[str, Any]]:
    """Read ``54 [-5..75]``; nothing where there is no range, or one of zero (no sensor)."""
    match = _RANGED.match(text)
    if match is None:
        return []
    try:
        values = tuple(real(part) for part in match[1].split(",") if part)
        low, high = real(match[2]), real(match[3])
    except ValueError:
        return []
    if low >= high or not values:
        return []
    return [{"name": key, "values": values, "low": low, "high": high}]


def _close(facts: FactSink, subject: Subject, sensors: list[dict[str, Any]], line: int) -> None:
    if sensors:
        facts.put(subject, "rdma.module.sensors", tuple(sensors), line)
