"""
Xid and SXid lines: what the driver prints when a GPU or an NVSwitch reports an error.

Forms of an Xid::

    NVRM: Xid (PCI:0000:4f:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
    NVRM: Xid (PCI:0000:4f:00): 43, pid=31007, name=python3, Ch 0000000c
    NVRM: Xid (PCI:0000:4f:00): 74, ..., NVLink: fatal error detected on link 5(0x0, 0x0, 0x80000, 0x0, 0x0, 0x0, 0x0)
    NVRM: Xid (PCI:0009:01:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 02 (0x040848c2 0x00000008 0x0 0x0 0x0 0x0)
    NVRM: Xid (PCI:0000:4f:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)

Forms of an SXid; each event prints several of them::

    nvidia-nvswitch0: SXid (PCI:0000:c4:00.0): 20034, Fatal, Link 30 LTSSM Fault Up
    nvidia-nvswitch0: SXid (PCI:0000:c4:00.0): 20034, Severity 1 Engine instance 30 Sub-engine instance 00
    nvidia-nvswitch0: SXid (PCI:0000:c4:00.0): 20034, Data {0x10000000, 0x00000000, ...}
    nvidia-nvswitch0: SXid (PCI:0000:c4:00.0): 26006, SOE HALTED

The number is followed by a comma in every form; a line that ends behind the digits is cut off, and 14 may be 145. Words
in brackets count only when the bracket is closed, for the same reason.
"""

from __future__ import annotations

import re
from typing import NamedTuple

# Words are parted by blanks or commas; two that run into each other are of a broken line, and no word is read.
_WORDS = r"(?P<words>0x[0-9a-fA-F]{1,16}(?:[ ,]{1,2}0x[0-9a-fA-F]{1,16}){0,11}[ ,]{0,2})"

_XID = re.compile(
    r"NVRM: Xid \((?:PCI:)?(?P<at>[0-9A-Fa-f:.]{7,20})[^)]{0,32}\): (?P<code>\d{1,6}),\s?"
    r"(?:pid=(?:'<unknown>'|<unknown>|(?P<pid>\d{1,10})),\s?)?(?:name=(?P<name>[^,]{0,64}),\s?)?(?P<text>.*)"
)
_NVLINK5 = re.compile(
    r"(?P<unit>[A-Z][A-Z0-9_]{1,30}(?: [A-Z][a-z]{2,12})?) (?P<severity>(?:Link )?Fatal|Non-?fatal)"
    rf"(?: XC-?\d{{1,4}} i-?\d{{1,4}}(?: Link (?P<link>-?\d{{1,4}})(?= ))?(?: \({_WORDS}\))?)?"
)
_NVLINK4 = re.compile(rf"link (?P<link>\d{{1,4}})\s?\((?:{_WORDS}\))?")
_ACTION = re.compile(r"recovery action changed from .{1,60}? to 0x[0-9a-fA-F]+ \((?P<action>[^)]{1,60})\)")
_PLACE = re.compile(r"\((GPC \d{1,4}, TPC \d{1,4}(?:, SM \d{1,4})?)\)")

_SXID = re.compile(
    r"SXid \(PCI:(?P<at>[0-9A-Fa-f:.]{7,20})\): (?P<code>\d{1,6}),\s?"
    r"(?:(?P<printed>Fatal|Non-?fatal), )?(?:Severity (?P<severity>\d) )?(?P<data>Data \{)?"
    r"(?:Link (?P<link>\d{1,4}) )?(?P<text>.*)"
)


class XidLine(NamedTuple):
    """
    One Xid as printed.

    Attributes:
        at: PCI address, in the driver's spelling.
        code: the number.
        pid, name: process that was hit; "" when the driver does not know.
        text: the rest of the line.
        unit: NVLink5 unit; "" elsewhere.
        fatal: what an NVLink5 line says; None elsewhere.
        link: NVLink number, -1 for all links; None when the line names none.
        words: hexadecimal words of the line (seven registers of 74; intrinfo, status and data of 144 to 150).
        action: what Xid 154 asks for; "" elsewhere.
        place: ``GPC 2, TPC 1, SM 0``; "" when the line names none.
    """

    at: str
    code: int
    pid: str
    name: str
    text: str
    unit: str
    fatal: bool | None
    link: int | None
    words: tuple[int, ...]
    action: str
    place: str


class SXidLine(NamedTuple):
    """
    One line of an SXid.

    Attributes:
        at: PCI address of the switch.
        code: the number.
        fatal: what the line says; None when it does not.
        link: port of the switch; None when the line names none.
        text: the meaning; "" for lines that carry data only.
    """

    at: str
    code: int
    fatal: bool | None
    link: int | None
    text: str


def read_xid(message: str) -> XidLine | None:
    """Read an Xid line; None when it is none or is cut off before the number ends."""
    match = _XID.search(message)
    if match is None:
        return None
    code, text = int(match["code"]), match["text"].strip()
    detail = (_NVLINK5 if 144 <= code <= 150 else _NVLINK4).search(text) if code == 74 or 144 <= code <= 150 else None
    named = detail.groupdict() if detail is not None else {}
    severity = named.get("severity")
    action = _ACTION.search(text) if code == 154 else None
    place = _PLACE.search(text) if "GPC" in text else None
    name = match["name"] or ""
    return XidLine(
        at=match["at"],
        code=code,
        pid=match["pid"] or "",
        name="" if name == "<unknown>" else name,
        text=text,
        unit=named.get("unit") or "",
        fatal=severity.endswith("Fatal") if severity else None,
        link=int(named["link"]) if named.get("link") else None,
        words=tuple(int(word, 16) for word in (named.get("words") or "").replace(",", " ").split()),
        action=action["action"] if action is not None else "",
        place=place[1] if place is not None else "",
    )


def read_sxid(message: str) -> SXidLine | None:
    """Read an SXid line; None when it is none or is cut off before the number ends."""
    match = _SXID.search(message)
    if match is None:
        return None
    fatal = match["printed"] == "Fatal" if match["printed"] else None
    if match["severity"]:
        fatal = match["severity"] == "1"  # the driver's numbers: 0 non-fatal, 1 fatal
    link = int(match["link"]) if match["link"] else None
    only_data = match["data"] or match["severity"]
    return SXidLine(match["at"], int(match["code"]), fatal, link, "" if only_data else match["text"].strip())
