"""Pages about error codes: Xid of GPUs, SXid of NVSwitches."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from hwcheck.checks import Relation
from hwcheck.checks.xid import judge
from hwcheck.findings import Status
from hwcheck.knowledge import SXid, Xid, sxid, xid
from hwcheck.knowledge.catalogue import nvlink5_table
from hwcheck.report.entries import URGENCIES
from hwcheck.report.page import Block, Page, Table, sections_of

_XID = {
    "unused": "Reserved: no driver of these GPUs prints it.",
    "info": "Information only.",
    "warning": "The job is hit, the GPU is not.",
    "critical": "The GPU needs a reset or a service.",
    "fatal": "The node needs a restart, or hands.",
}
_SXID = {
    "non-fatal": "Corrected by the hardware, or without effect on running jobs.",
    "potentially-fatal": "On an access port it hits one GPU, on a trunk port every GPU of the partition.",
    "always-fatal": "It stops the whole board.",
    "unknown": "The guide does not grade it; hwcheck takes it for fatal.",
}
Sections = dict[str, list[Block]]

_RECOVERY = (
    "The driver says which recovery this GPU needs from now on. It is no error of its own, yet until that is done the "
    "GPU works in a state that NVIDIA does not vouch for."
)
_UNLISTED = {
    "xid": (
        "Xid {code} is in no catalogue that hwcheck has. An Xid that is not listed is a warning to be looked into in "
        "the next maintenance window, under the id xid.unlisted; it is never taken for harmless and never fails a node."
    ),
    "sxid": (
        "SXid {code} is in no catalogue that hwcheck has. An SXid that is not listed fails where its line says Fatal "
        "and is a warning otherwise, under the id sxid.unlisted."
    ),
}


def unlisted_page(id: str) -> Page | None:
    """
    Explain ``xid.12345``: how a code that no catalogue knows is judged.

    Returns:
        the page; None for an id that has not the form of a code.
    """
    family, _, number = id.partition(".")
    if family not in _UNLISTED or not (number.isascii() and number.isdecimal() and len(number) < 7):
        return None
    code = int(number)
    name, of = ("Xid", "GPU error") if family == "xid" else ("SXid", "NVSwitch error")
    page = Page(id, of, f"{name} {code}: in no catalogue")
    page.add("How hwcheck judges it", _UNLISTED[family].format(code=code))
    page.add(
        "How to fix", "Read the whole line, take nvidia-bug-report.sh, and ask vendor support what the code means."
    )
    return page


_BY_LINE = frozenset({74, *range(144, 151)})
_STATUS = {
    Status.PASS: "nothing: it is no fault",
    Status.WARN: "a warning",
    Status.FAIL: "a fail",
    Status.UNKNOWN: "unknown",
}


def code_page(id: str, relation: Relation) -> Page | None:
    """
    Explain ``xid.79`` or ``sxid.20034``.

    Returns:
        the page; None for an id that is no code of a catalogue.
    """
    family, _, number = id.partition(".")
    if not (number.isascii() and number.isdecimal() and len(number) < 7) or family not in ("xid", "sxid"):
        return None
    how = sections_of(relation.text)
    if family == "xid":
        return _xid_page(id, xid(int(number)), how)
    return _sxid_page(id, sxid(int(number)), how)


def _xid_page(id: str, entry: Xid | None, how: Sections) -> Page | None:
    if entry is None:
        return None
    page = Page(id, "GPU error", f"Xid {entry.code}: {entry.title}")
    page.add("What it checks", f"Lines of the kernel log in which the driver reports Xid {entry.code} ({entry.name}).")
    severity = _RECOVERY if entry.code == 154 else f"Severity {entry.severity}: {_XID[entry.severity]}"
    page.add("Why it matters", severity, "" if entry.code == 154 else _sentence(entry.note))
    page.add("How to fix", entry.remedy)
    buckets = [f"at once {entry.now}" if entry.now else "", f"to investigate {entry.then}" if entry.then else ""]
    said = "" if entry.code == 154 else ", ".join(filter(None, buckets))
    page.add("How to fix", f"NVIDIA's words for it: {said}." if said else "")
    if entry.since_154:
        page.add("How to fix", f"The driver adds an Xid 154 with the recovery that it wants ({entry.since_154}).")
    chips = ", ".join(entry.applies)
    page.add(
        "Applies to",
        f"Chips it exists on: {chips}." if chips else "None of A100, H100, B100 and GB200 by the catalogue.",
    )
    page.add("Applies to", *how.get("Applies to", ()))
    page.add("How hwcheck judges it", _verdict(entry), *how.get("What it checks", ()))
    page.add("Decoding", _decoding(entry.code), _DECODING if 144 <= entry.code <= 150 else "")
    page.add("Source", f"NVIDIA Xid {entry.source}." if entry.source.startswith("catalogue") else f"{entry.source}.")
    return page


_DECODING = (
    "The line prints the unit and two words; the second one, the error status, picks the row. Where the line says "
    "Fatal or Nonfatal itself, the line wins. XID_154_EVAL: do what the Xid 154 beside it asks for."
)


def _verdict(entry: Xid) -> str:
    """Say what one line of this code on one GPU is judged as."""
    if entry.code in _BY_LINE:
        return "By what its line says: link, unit, words."
    if entry.code == 154:
        return (
            "By the action that its line names: None is no fault; any other is a fail with the remedy of that action, "
            "unless another Xid of this GPU fails already: then it is a note that follows that Xid."
        )
    once: dict[str, Any] = defaultdict(lambda: 1)  # one line, one job, one place: whatever is counted is 1
    verdict = judge(entry.code, [once], {entry.code}, lonely=False, wanted="")
    when = URGENCIES.get(verdict.urgency)
    act = f"; act: {when}" if when and verdict.status is not Status.PASS else ""
    return f"Seen once, it is {_STATUS[verdict.status]}{act}."


def _decoding(code: int) -> Table:
    rows: dict[tuple[str, ...], list[str]] = {}
    for cause in nvlink5_table():
        if cause.xid == code:
            key = ("/".join(cause.units), cause.severity, cause.resolution, cause.investigate)
            rows.setdefault(key, []).extend(f"{status:#x}" for status in cause.statuses or ())
    return Table(
        ("unit", "severity", "at once", "investigate", "error status"),
        [(*key, ", ".join(dict.fromkeys(statuses)) or "any") for key, statuses in rows.items()],
    )


def _sxid_page(id: str, entry: SXid | None, how: Sections) -> Page | None:
    if entry is None:
        return None
    page = Page(id, "NVSwitch error", f"SXid {entry.code}: {entry.name}")
    page.add(
        "What it checks",
        f"Lines of the kernel log, and of Fabric Manager's log, in which an NVSwitch reports SXid {entry.code}.",
    )
    page.add("Why it matters", f"Severity {entry.severity}: {_SXID[entry.severity]}")
    page.add("How to fix", _sentence(entry.remedy))
    page.add("Applies to", *how.get("Applies to", ()))
    page.add("How hwcheck judges it", *how.get("What it checks", ()))
    page.add("Source", f"{entry.source}.")
    return page


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:].rstrip('.')}." if text else ""
