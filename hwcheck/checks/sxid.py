"""SXids: what NVSwitches reported, in the kernel log and in Fabric Manager's log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hwcheck.checks.log_lines import EXCERPT, Record, origin_of, proves, times_of
from hwcheck.checks.relation import Answer, Given, ok, relation, skip
from hwcheck.findings import Remedy, Status, Urgency
from hwcheck.knowledge import SXid, sxid, sxids

_KERNEL, _MANAGER = "sxid.events", "fabricmanager.log.switch_errors"

STALLS = 12028
"""Called non-fatal; yet the GPU behind the port gets no answer any more and hangs until a restart."""

RESET_ALL = frozenset({19084})
"""Called non-fatal, but always stands beside a fatal one, and the guide asks for a reset of the board."""

WATCH = frozenset({11004, 20012, 22012})
"""Depend on what the partition or the other end did: a warning."""

_BARE_METAL = "On bare metal: drain, reset all GPUs and NVSwitches of the board together, or reboot."


@relation(
    "sxid.events",
    scope="switch",
    any_of=(_KERNEL, _MANAGER),
    urgency=Urgency.NOW,
    ids=(*(f"sxid.{code}" for code in sxids()), "sxid.unlisted"),
)
def sxids_of_switches(given: Given) -> Iterator[Answer]:
    """
    The NVSwitches report no error.

    What it checks: every SXid of the kernel log and every NVSwitch error of Fabric Manager's log, one finding for each
    code of each switch. Always-fatal codes fail; potentially fatal ones fail where the line says Fatal and warn
    otherwise; corrected errors are noise. 12028 fails although it is called non-fatal.

    Why it matters: a fatal SXid on an access port takes the NVLinks of one GPU down, one on a trunk port those of the
    whole partition; always-fatal codes stop the board.

    How to fix: as the finding says. Where a GPU fell off the bus (Xid 79) or logged Xid 74 at the same time, the SXid
    is the other end of that fault: treat the GPU first.

    Applies to: HGX boards whose NVSwitches the node itself drives. NVLink5 boards report Xid 144 to 150 instead.

    Source: NVIDIA Fabric Manager user guide, appendix D.
    """
    kernel, manager = given.maybe(_KERNEL) or (), given.maybe(_MANAGER) or ()
    codes = dict.fromkeys(record["code"] for record in (*kernel, *manager))
    for code in codes:
        here = [record for record in kernel if record["code"] == code]
        there = [record for record in manager if record["code"] == code]
        yield _answer(given, code, here, there)


def _answer(given: Given, code: int, kernel: list[Record], manager: list[Record]) -> Answer:
    records = kernel or manager
    entry = sxid(code)
    fatal = _fatal([*kernel, *manager])
    status, urgency, text = _judge(code, entry, fatal=fatal)
    if status is Status.PASS and not kernel:
        status = Status.SKIP  # Fabric Manager's log is no record of all that its switches report
    if status is Status.FAIL and kernel and all(record["stale"] for record in kernel) and not manager:
        status, urgency = Status.WARN, Urgency.MAINTENANCE
        text += "; the driver was loaded again since, and it did not return"
    ports = sorted({record["link"] for record in (*kernel, *manager) if record["link"] is not None})
    named = entry.name if entry is not None else _meaning(records)
    where = f" on port{'s' if len(ports) != 1 else ''} {', '.join(map(str, ports))}" if ports else ""
    message = f"SXid {code} ({named}){where}, {times_of(records)}{text.format(ports=_behind(ports))}"
    return Answer(
        status,
        message,
        observed=_observed(code, ports, fatal=fatal),
        check=f"sxid.{code}" if entry is not None else "sxid.unlisted",
        urgency=urgency,
        remedy=_remedy(code, entry),
        origin=origin_of(given, _KERNEL if kernel else _MANAGER, records[0]),
    )


def _fatal(records: list[Record]) -> bool | None:
    said = {record["fatal"] for record in records}
    return True if True in said else False if False in said else None


def _judge(code: int, entry: SXid | None, *, fatal: bool | None) -> tuple[Status, Urgency, str]:
    severity = entry.severity if entry is not None else "unlisted"
    if code == STALLS:
        text = ": called non-fatal, yet the GPU behind {ports} stalls until a restart"
        return Status.FAIL, Urgency.NOW, text
    if fatal or severity in ("always-fatal", "unknown") or code in RESET_ALL:
        how = ", printed as fatal" if fatal else ", treated as fatal"
        return Status.FAIL, Urgency.NOW, how
    if severity == "non-fatal" and code not in WATCH:
        return Status.PASS, Urgency.NOTE, ": corrected by the hardware or harmless"
    if severity == "unlisted":
        return Status.WARN, Urgency.MAINTENANCE, ", which is not in the catalogue"
    return Status.WARN, Urgency.MAINTENANCE, ", not printed as fatal"


def _behind(ports: list[int]) -> str:
    if not ports:
        return "that port"
    return f"port{'s' if len(ports) > 1 else ''} {', '.join(map(str, ports))}"


def _meaning(records: list[Record]) -> str:
    return next((record["meaning"] for record in records if record.get("meaning")), "no name")


def _observed(code: int, ports: list[int], *, fatal: bool | None) -> dict[str, Any]:
    said = {True: "fatal", False: "non-fatal", None: "not said"}[fatal]
    return {"sxid": code, "ports": ports, "printed": said}


def _remedy(code: int, entry: SXid | None) -> Remedy:
    if code == STALLS:
        text = (
            "Drain; look for Xid 45 and 74 at that time; restart the node (in a guest: the VM), or reset all GPUs and "
            "NVSwitches together. A restart of Fabric Manager alone does not help. If the same port repeats: "
            "vendor support."
        )
    elif entry is None:
        text = f"Ask vendor support what this code means. {_BARE_METAL}"
    elif entry.severity == "unknown":
        text = f"Keep the log for vendor support; no public action is known. {_BARE_METAL}"
    elif entry.severity == "non-fatal" and code not in RESET_ALL | WATCH:
        text = f"{entry.remedy[0].upper()}{entry.remedy[1:]}."
    else:
        text = f"{entry.remedy[0].upper()}{entry.remedy[1:]}. {_BARE_METAL}"
    return Remedy("act", text, disturbs="board")


@relation(
    "sxid.none",
    needs=("kernel.log.sxids",),
    uses=("kernel.log.window", "evidence.collected"),
    urgency=Urgency.NOTE,
)
def no_sxid(given: Given) -> Answer | None:
    """
    The kernel log holds no SXid.

    What it checks: that no line of the kernel log reports an NVSwitch error, over a time that the log is known to
    cover.

    Why it matters: absence is good news only where the log would have shown it.

    How to fix: nothing to fix; where this is skipped, post the whole log since boot.

    Applies to: logs that show a boot with the NVSwitches probed, a grep for SXid without an answer, collected nodes.

    Source: NVIDIA Fabric Manager user guide, appendix D (SXids are printed to the kernel log).
    """
    if given["kernel.log.sxids"]:
        return None
    covered = proves(given, "sxid")
    return ok(f"no SXid {covered}", observed=0) if covered else skip(f"no SXid in these lines; {EXCERPT}")
