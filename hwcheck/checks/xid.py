"""Xids: what the NVIDIA driver logged about its GPUs, judged by the catalogue."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hwcheck.checks.log_lines import EXCERPT, Record, origin_of, proves, times_of
from hwcheck.checks.relation import Answer, Given, Some, ok, relation, skip
from hwcheck.checks.xid_nvlink import judge_nvlink
from hwcheck.checks.xid_verdict import Verdict, with_text
from hwcheck.facts import Subject
from hwcheck.findings import Remedy, Status, Urgency
from hwcheck.knowledge import Xid, xid, xids

HARMLESS = frozenset({14, 106, 107, 162, 174})
"""Test messages, a fake error, power smoothing back on, a silent kill: nothing happened to anybody."""

FOLLOWERS = frozenset({43, 45})
APPLICATION = ("RESTART_APP",)
MEMORY = frozenset({48, 63, 64, 92, 94, 95, 171, 172})

_REMAP = (
    "Drain the node when its running jobs have ended, then reset the GPU (nvidia-smi --gpu-reset) or reboot: the remap "
    "becomes active with the reset. If it returns on this GPU again and again: vendor support."
)
_UNRELATED_JOBS = 3  # jobs on one GPU from which on an application Xid is no longer the application's

_ACTIONS = {
    "none": (Urgency.NOTE, "The driver asks for nothing."),
    "drain p2p": (
        Urgency.JOB_END,
        "The driver asks to drain peer-to-peer traffic: start no new job here, reset at the jobs' end.",
    ),
    "drain and reset": (Urgency.JOB_END, "The driver asks to drain the node and then reset the GPU."),
    "gpu reset required": (
        Urgency.NOW, "The driver asks for a reset of the GPU: drain, then nvidia-smi --gpu-reset.",
    ),
    "node reboot required": (Urgency.NOW, "The driver asks for a reboot of the node: drain, then reboot."),
}  # fmt: skip


@relation(
    "xid.events",
    needs=(Some("xid.events"),),
    urgency=Urgency.NOW,
    ids=(*(f"xid.{code}" for code in xids()), "xid.unlisted"),
)
def xids_of_gpus(given: Given) -> Iterator[Answer]:
    """
    The driver reports no error of a GPU.

    What it checks: every Xid of the kernel log, one finding for each code of each GPU. The verdict follows the
    catalogue: codes that ask for a reset, a restart of the node or hands fail; a code that only a job suffers from is a
    warning; NVLink5 codes (144 to 150) and Xid 74 are judged by what their line says; Xid 154 says what the driver
    wants done about the one before it, and fails where no Xid of this GPU that fails explains it. A row remap that
    waits for a reset (63) fails: the reset can wait until the running jobs have ended.

    Why it matters: an Xid is the driver's own statement that something went wrong on this GPU. Some end one job, some
    leave the GPU unusable until it is reset, some mean that a part must be replaced.

    How to fix: do what the finding's remedy says; it is the catalogue's action for this code. An error from before the
    driver was loaded again is history unless it comes back.

    Applies to: any GPU of which the log holds an Xid. An application fault (13, 31, 43, 45 and others) that hits one
    GPU in three or more unrelated jobs points to the GPU.

    Source: NVIDIA Xid catalogue of 2025-09-30, and the rows' own sources for newer codes.
    """
    by_gpu = given["xid.events"]
    lonely = {record["code"] for records in by_gpu.values() for record in records} == {45}
    for gpu, records in by_gpu.items():
        codes = {record["code"] for record in records}
        wanted = _wanted(records)
        groups = {code: [record for record in records if record["code"] == code] for code in codes}
        verdicts = {code: judge(code, same, codes, wanted, lonely=lonely) for code, same in groups.items()}
        verdicts = {code: _history(verdict, groups[code]) for code, verdict in verdicts.items()}
        if wanted and any(verdicts[code].status is Status.FAIL for code in codes - {154}):
            verdicts[154] = _history(_recovery(xid(154), wanted, explained=True), groups[154])
        for code in sorted(codes, key=lambda one: min(record["line"] for record in groups[one])):
            yield _answer(given, gpu, code, groups[code], verdicts[code], wanted)


def _wanted(records: tuple[Record, ...]) -> str:
    """Return the recovery that the last Xid 154 of a GPU asks for, "" where there is none."""
    asked = [record for record in records if record["code"] == 154 and record["action"]]
    return str(max(asked, key=lambda record: record["last_line"])["action"]) if asked else ""


def _history(verdict: Verdict, records: list[Record]) -> Verdict:
    """Take a failure from before the driver was loaded again for a warning."""
    if verdict.status is not Status.FAIL or not all(record["stale"] for record in records):
        return verdict
    text = f"{verdict.text}; the driver was loaded again since, and it did not return"
    remedy = f"Watch this GPU. If the Xid comes back: {verdict.remedy}"
    return Verdict(Status.WARN, Urgency.MAINTENANCE, text, verdict.kind, remedy)


def _answer(given: Given, gpu: Subject, code: int, records: list[Record], verdict: Verdict, wanted: str) -> Answer:
    entry = xid(code)
    title = f" ({entry.title})" if entry is not None else ", which is not in the catalogue"
    least = "at least " if records[0]["limited"] and code in (119, 120) else ""
    message = f"Xid {code}{title}, {least}{times_of(records)}{verdict.text}"
    asked = _ACTIONS.get(wanted.lower()) if code != 154 and wanted.lower() != "none" else None
    remedy = with_text(verdict, asked[1] if asked is not None else "")
    return Answer(
        verdict.status,
        message,
        observed=_observed(code, records),
        expected="none" if verdict.status is not Status.PASS else None,
        check=f"xid.{code}" if entry is not None else "xid.unlisted",
        subject=gpu,
        urgency=verdict.urgency,
        remedy=remedy,
        origin=origin_of(given, "xid.events", records[0]),
    )


def _observed(code: int, records: list[Record]) -> dict[str, Any]:
    links = sorted({record["link"] for record in records if record["link"] is not None})
    observed: dict[str, Any] = {"xid": code, "lines": sum(record["count"] for record in records)}
    if links:
        observed["links"] = "all" if -1 in links else links
    return observed


def judge(code: int, records: list[Record], codes: set[int], wanted: str, *, lonely: bool) -> Verdict:
    """
    Judge one code of one GPU.

    Args:
        code: the Xid.
        records: its groups of lines on this GPU.
        codes: all codes of this GPU.
        wanted: what Xid 154 asks for, "" when it asks for nothing.
        lonely: the log holds nothing but Xid 45.
    """
    entry = xid(code)
    if entry is None:
        text = "Take nvidia-bug-report.sh and ask vendor support what this code means."
        return Verdict(Status.WARN, Urgency.MAINTENANCE, "", "act", text)
    if code == 74 or 144 <= code <= 150:
        return judge_nvlink(entry, records, wanted)
    if code in HARMLESS:
        return Verdict(Status.PASS, Urgency.NOTE, ": nothing to do", "act", entry.remedy)
    if code == 154:
        return _recovery(entry, wanted, explained=False)
    if code in MEMORY:
        return _memory(entry, codes)
    if code in FOLLOWERS or entry.now in APPLICATION:
        return _application(entry, records, lonely=lonely)
    if entry.severity in ("critical", "fatal"):
        now = Urgency.MAINTENANCE if entry.now == "IGNORE" else Urgency.NOW
        return Verdict(Status.FAIL, now, "", "hands" if entry.now == "CHECK_MECHANICALS" else "act", entry.remedy)
    quiet = entry.severity == "info"
    return Verdict(Status.WARN, Urgency.NOTE if quiet else Urgency.MAINTENANCE, "", "act", entry.remedy)


def _recovery(entry: Xid | None, wanted: str, *, explained: bool) -> Verdict:
    """Judge what Xid 154 asks for; ``explained`` by another Xid of this GPU that fails by itself."""
    own = entry.remedy if entry is not None else ""
    if wanted.lower() == "none":
        return Verdict(Status.PASS, Urgency.NOTE, ": the driver asks for no recovery any more", "act", own)
    if not wanted:
        text = ": the driver asks for a recovery that the line does not name"
        return Verdict(Status.WARN, Urgency.NOW, text, "act", own)
    urgency, remedy = _ACTIONS.get(wanted.lower(), (Urgency.NOW, own))
    text = f": the driver asks for {wanted}"
    if explained:
        text += "; it answers the other Xid of this GPU"
        return Verdict(Status.WARN, Urgency.NOTE, text, "act", remedy)
    text += "; no other Xid of this GPU that is in the log explains it"
    return Verdict(Status.FAIL, urgency, text, "act", remedy)


def _memory(entry: Xid, codes: set[int]) -> Verdict:
    if entry.severity == "critical":
        contained = 94 in codes and not codes & {64, 95, 140}
        remapped = " and a row remap was recorded" if 63 in codes else ""
        if contained and entry.code in (48, 171, 172):
            text = f": it was contained{remapped}, so the reset can wait until the running jobs have ended"
            return Verdict(Status.FAIL, Urgency.JOB_END, text, "act", entry.remedy)
        return Verdict(Status.FAIL, Urgency.NOW, "", "act", entry.remedy)
    if entry.code == 63:
        text = ": a row remap is pending and waits for a reset of the GPU"
        return Verdict(Status.FAIL, Urgency.JOB_END, text, "act", _REMAP)
    text = ": only the job that touched the bad memory was stopped" if entry.code == 94 else ""
    urgency = Urgency.MAINTENANCE if entry.code == 92 else Urgency.JOB_END
    return Verdict(Status.WARN, urgency, text, "act", entry.remedy)


def _application(entry: Xid, records: list[Record], *, lonely: bool) -> Verdict:
    programs = max(record["programs"] for record in records)
    places = max(record["places"] for record in records)
    if programs >= _UNRELATED_JOBS and entry.code != 45:
        text = f": it hit {programs} different programs on this GPU one after another, which points to the GPU"
        remedy = f"Drain and run dcgmi diag -r 3 on this GPU, then the field diagnostic. {entry.remedy}"
        return Verdict(Status.WARN, Urgency.JOB_END, text, "act", remedy)
    if entry.code == 45:
        text = ": nothing else is logged" if lonely else ": cleanup after another error"
        return Verdict(Status.WARN, Urgency.NOTE, text, "act", entry.remedy)
    where = f" on {places} different SMs" if places > 1 else ""
    text = f"{where}: a fault of the application, not of the GPU"
    return Verdict(Status.WARN, Urgency.NOTE, text, "act", entry.remedy)


@relation(
    "xid.none",
    needs=("kernel.log.xids",),
    uses=("kernel.log.window", "evidence.collected"),
    urgency=Urgency.NOTE,
    remedy=Remedy("act", "Post the whole kernel log: dmesg -T, or journalctl -k -b.", disturbs="nothing"),
)
def no_xid(given: Given) -> Answer | None:
    """
    The kernel log holds no Xid.

    What it checks: that no line of the kernel log reports an Xid, over a time that the log is known to cover.

    Why it matters: absence is good news only where the log would have shown it. A few posted lines prove nothing.

    How to fix: nothing to fix; where this is skipped, post the whole log since boot.

    Applies to: logs that show a boot with the driver loading, a grep for Xid without an answer, and collected nodes.

    Source: NVIDIA Xid documentation (Xids are printed to the kernel log).
    """
    if given["kernel.log.xids"]:
        return None
    covered = proves(given, "xid")
    return ok(f"no Xid {covered}", observed=0) if covered else skip(f"no Xid in these lines; {EXCERPT}")
