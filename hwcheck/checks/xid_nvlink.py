"""NVLink Xids: 74 (up to Hopper) and 144 to 150 (Blackwell), judged by what their lines say."""

from __future__ import annotations

from hwcheck.checks.log_lines import Record
from hwcheck.checks.xid_verdict import Verdict
from hwcheck.findings import Status, Urgency
from hwcheck.knowledge import NVLink5Cause, Xid, nvlink5_causes

_ON_PURPOSE = "the link was brought down on purpose: find the software or user that did it"
_INVESTIGATE = {
    "INVESTIGATE_PEER_DEVICE": "look at the other end of the link first (switch tray or peer GPU)",
    "INVESTIGATE_LINK_SI": "check the signal integrity of the link",
    "INVESTIGATE_LINK_SI_AND_CABLES": "check signal integrity and cables of the link",
    "INVESTIGATE_SW_USER": _ON_PURPOSE,
    "INVESTIGATE_SW/USER": _ON_PURPOSE,
    "INVESTIGATE_SW_USER_LINK_SI": f"{_ON_PURPOSE}, then check its signal integrity",
    "INVESTIGATE_HOST": "look at the host that drives the link",
    "CHECK_NVLINK_FAILURE_FLOW": "check the state of the link and of its other end",
    "SYMPATHETIC_REPORT_SOLO": "mostly follows another error; report it where it stands alone",
    "REPORT_ISSUE (if seen >1 per day)": "report it when it is seen more than once a day",
}

_SOURCE_TRACK = "RLW_SRC_TRACK"
_LOST_PACKETS = (0x4, 0x8)

_REGISTER_HINTS = {
    # (register, bit): meaning. Positions hold for Hopper and older; the line does not name the chip.
    **dict.fromkeys([(1, 16)], "perhaps hardware, check the mechanical connection and reseat"),
    **dict.fromkeys([(1, 0), (1, 23), (1, 30)], "may be ignored"),
    **dict.fromkeys([(1, 1), (1, 20), (4, 16), (4, 17), (4, 18)], "mostly secondary, look for the leading Xid or SXid"),
    **dict.fromkeys([(3, 16), (3, 19)], "run the field diagnostic if it repeats"),
    **dict.fromkeys([(5, 20), (5, 23), (5, 26), (5, 29)], "an ECC threshold only"),
}

_RESET = (
    "Drain, then reset the GPU (on a baseboard or tray all its GPUs together) or reboot; check nvidia-smi nvlink -s "
    "and the fabric's view of the link (Fabric Manager or NMX-C)."
)


def judge_nvlink(entry: Xid, records: list[Record], wanted: str) -> Verdict:
    """
    Judge an NVLink code of one GPU.

    Xid 74 fails: its link is down. For 144 to 150 the printed word decides, not the number: Fatal fails, Nonfatal is
    a warning. Catalogue and line may differ about it (both come from NVIDIA); then the line wins, and the message
    says so.
    """
    if entry.code == 74:
        return _hopper(entry, records)
    fatal = [record for record in records if record["fatal"]]
    if fatal:
        return _verdict(Status.FAIL, Urgency.NOW, fatal, _RESET)
    mild = [record for record in records if record["fatal"] is False]
    if mild:
        return _nonfatal(mild, wanted)
    if entry.code == 150:
        return Verdict(Status.FAIL, Urgency.NOW, ": the NVLink firmware stopped", "act", _RESET)
    text = ": the line does not say whether it was fatal"
    return Verdict(Status.UNKNOWN, Urgency.NOTE, text, "act", "Read the whole line in the kernel log (dmesg).")


def _verdict(status: Status, urgency: Urgency, records: list[Record], remedy: str, more: str = "") -> Verdict:
    causes = [cause for record in records for cause in causes_of(record)[:1]]
    hints = dict.fromkeys(_INVESTIGATE[cause.investigate] for cause in causes if cause.investigate in _INVESTIGATE)
    text = ": " + "; ".join(dict.fromkeys(_words(record) for record in records[:8])) + more
    if hints:
        text += "; " + "; ".join(hints)
    advice = "".join(f" {hint[0].upper()}{hint[1:]}." for hint in hints)
    return Verdict(status, urgency, text, "act", remedy + advice)


def _nonfatal(records: list[Record], wanted: str) -> Verdict:
    causes = [cause for record in records for cause in causes_of(record)]
    if any(cause.severity != "Non-fatal" for cause in causes):
        remedy = f"{_RESET} The reset can wait for the end of the running jobs."
        more = "; the catalogue calls this status fatal, the driver did not"
        return _verdict(Status.WARN, Urgency.JOB_END, records, remedy, more)
    if any(cause.resolution == "XID_154_EVAL" for cause in causes):
        look = "Look for an Xid 154 of this GPU and do what it asks for"
        asked = "Do what Xid 154 of this GPU asks for" if wanted else look
        lost = any(r["unit"] == _SOURCE_TRACK and r["words"][1:2] and r["words"][1] in _LOST_PACKETS for r in records)
        more = "; packets were lost" if lost else ""
        remedy = f"{asked}; where there is none, restart the job."
        return _verdict(Status.WARN, Urgency.JOB_END, records, remedy, more)
    remedy = "Restart the job if it failed; call vendor support if the code comes back on the same link."
    return _verdict(Status.WARN, Urgency.NOTE, records, remedy)


def causes_of(record: Record) -> list[NVLink5Cause]:
    """Decode one group of lines, the worst cause first; empty when its words were cut off or the table has no row."""
    if len(record["words"]) < 2:
        return []
    return nvlink5_causes(record["code"], record["unit"], record["words"][0], record["words"][1])


def _words(record: Record) -> str:
    link = record["link"]
    where = "all links" if link == -1 else f"link {link}" if link is not None else "a link it does not name"
    code = record["words"][0] >> 20 & 0x3F if record["words"] and record["unit"].startswith("NETIR_LINK") else None
    detail = f" (sub-code {code})" if code is not None else ""
    return f"{record['unit']} {'Fatal' if record['fatal'] else 'Nonfatal'} on {where}{detail}"


def _hopper(entry: Xid, records: list[Record]) -> Verdict:
    links = sorted({record["link"] for record in records if record["link"] is not None})
    where = f": NVLink error on link{'s' if len(links) > 1 else ''} {', '.join(map(str, links))}" if links else ""
    hints = dict.fromkeys(
        f"register {register} bit {bit}: {hint}"
        for record in records
        for (register, bit), hint in _REGISTER_HINTS.items()
        if len(record["words"]) >= register and record["words"][register - 1] >> bit & 1
    )
    told = f" ({'; '.join(hints)}; if the GPU is a Hopper or older)" if hints else ""
    return Verdict(Status.FAIL, Urgency.NOW, where + told, "act", entry.remedy)
