"""
NVMe drives: identity, state, health.

Source: kernel ABI sysfs-nvme; NVM Express Base Specification, SMART / Health Information log page (02h): the page
    itself in hexadecimal (node program), or the text of ``nvme smart-log``.
Shape: ``storage.nvme.*`` and ``storage.smart.*`` of each disk ``nvme0``.
Units: kelvin in the page, C in the facts; per cent; counts of 128 bits.
Missing: a drive that answers with an error has failed health.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import Reason, Subject, count, quantity
from hwcheck.parse.flattened import attributes, gap
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

_FILES = {
    "model": "storage.nvme.model",
    "serial": "storage.nvme.serial",
    "firmware_rev": "storage.nvme.firmware",
    "state": "storage.nvme.state",
    "transport": "storage.nvme.transport",
    "address": "storage.nvme.address",
}
_PAGE: dict[str, tuple[int, int]] = {
    "storage.smart.warning": (0, 1),
    "storage.smart.spare": (3, 1),
    "storage.smart.spare_threshold": (4, 1),
    "storage.smart.used": (5, 1),
    "storage.smart.media_errors": (160, 16),
}
"""Fact → offset and size in the page, little endian."""

_GIVES = (*_PAGE, "storage.smart.temperature")
_LINE = re.compile(r"^/dev/(nvme\d{1,4}) health: (hex:[0-9a-f]{1024}|!\S.{0,100})$")


@fmt(
    "sysfs.nvme",
    "/sys/class/nvme",
    gives=tuple(_FILES.values()),
    opens=r"/sys/class/nvme/nvme\d+/\w+:",
    continues=r"^/sys/class/nvme/",
)
def sysfs_nvme(output: Output, facts: FactSink) -> None:
    """Read one attribute a line."""
    for line, path, value in attributes(output, "/sys/class/nvme/"):
        name, _, file = path.partition("/")
        if file not in _FILES or not re.fullmatch(r"nvme\d{1,4}", name):
            continue
        reason = gap(value)
        if reason:
            facts.missing(Subject("disk", name), _FILES[file], reason, value[:60], line)
        elif value:
            facts.put(Subject("disk", name), _FILES[file], value[:100], line)


@fmt(
    "nvme.health_page",
    "NVMe health log page",
    gives=_GIVES,
    opens=r"/dev/nvme\d+ health: (?:hex:|!)",
    continues=r"^/dev/nvme\d+ health: ",
)
def nvme_health_page(output: Output, facts: FactSink) -> None:
    """Read the fields of each page."""
    for number, line in enumerate(output.lines, output.first_line):
        found = _LINE.match(line[:1200])
        if not found:
            continue
        disk = Subject("disk", found[1])
        if not found[2].startswith("hex:"):
            for name in _GIVES:
                facts.missing(disk, name, gap(found[2]) or Reason.FAILED, found[2].lstrip("!")[:60], number)
            continue
        page = bytes.fromhex(found[2][4:])
        for name, (offset, size) in _PAGE.items():
            facts.put(disk, name, int.from_bytes(page[offset : offset + size], "little"), number)
        kelvin = int.from_bytes(page[1:3], "little")
        if kelvin:
            facts.put(disk, "storage.smart.temperature", kelvin - 273, number)


_HEAD = re.compile(r"^Smart Log for NVME device:(nvme\d{1,4})(?:n\d{1,4})?\s+namespace-id:[0-9a-f]{1,8}\s*$")
_WORDS = {
    "available_spare": "storage.smart.spare",
    "available_spare_threshold": "storage.smart.spare_threshold",
    "percentage_used": "storage.smart.used",
    "media_errors": "storage.smart.media_errors",
}


@fmt(
    "nvme.smart_log",
    "nvme smart-log",
    gives=_GIVES,
    opens=r"Smart Log for NVME device:nvme\d+",
    continues=r"^[A-Za-z][\w /()-]{2,60}\s*:|^\s+\S",
    command=r"(?:^|[\s/|;&])nvme\s+smart-log\b",
)
def nvme_smart_log(output: Output, facts: FactSink) -> None:
    """Read the report for people, of nvme-cli 1 and 2."""
    disk: Subject | None = None
    for number, line in enumerate(output.lines, output.first_line):
        head = _HEAD.match(line[:200])
        if head:
            disk = Subject("disk", head[1])
            continue
        label, colon, value = (part.strip() for part in line[:200].partition(":"))
        if disk is None or not colon:
            continue
        if label == "critical_warning":
            facts.read(disk, "storage.smart.warning", lambda text: int(count(str(int(text, 0)))), value, number)
        elif label == "temperature":
            facts.read(disk, "storage.smart.temperature", _celsius, value, number)
        elif label in _WORDS:
            facts.read(disk, _WORDS[label], _percent_or_count, value, number)


def _percent_or_count(text: str) -> int:
    return count(text.rstrip("%").replace(",", "").strip())


def _celsius(text: str) -> int:
    found = re.match(r"(-?\d{1,3})\s*(?:\u00b0|deg\s*)?C\b", text)
    return int(found[1]) if found else int(quantity(text, "C"))
