"""
What the error codes of NVIDIA GPUs and NVSwitches mean and ask for.

Three tables lie beside this file; each row names its source. They are read once, when first asked for.

``xid.csv``
    One row a code: name, our severity, and ``action``: tokens ``now=`` (NVIDIA's bucket for the immediate action),
    ``then=`` (for the investigation), ``xid154=`` (whether and since when the driver also logs Xid 154 with the
    recovery it wants), ``applies=`` (chips), ``gpud=`` (the action of another public tool where NVIDIA has none),
    and free words.
``sxid.csv``
    One row an NVSwitch code: name, severity as in the Fabric Manager user guide, action in words.
``xid_nvlink5.csv``
    Decoding of Xid 144 to 150: which unit and sub-code, by masks over the first word that the line prints
    (``intrinfo``), and by the second word (``error status``), means what.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources

XID_SEVERITIES = ("unused", "info", "warning", "critical", "fatal")
"""unused: reserved, no driver of these parts prints it · info: nothing to do · warning: the job is hit, the GPU is
not · critical: the GPU needs a reset or a service · fatal: the node needs a restart or hands."""

SXID_SEVERITIES = ("non-fatal", "potentially-fatal", "always-fatal", "unknown")
NVLINK5_SEVERITIES = ("Non-fatal", "Link Fatal", "Fatal")

_BUCKETS = {
    "RESTART_APP": "Restart the job; if the code comes back with other jobs on this GPU, run dcgmi diag -r 3 on it.",
    "IGNORE": "Nothing to do now; call vendor support if it goes on.",
    "RESET_GPU": "Drain, then reset the GPU (nvidia-smi --gpu-reset; on an NVSwitch board all its GPUs together) "
    "or reboot the node; call vendor support if it comes back.",
    "RESTART_BM": "Drain and power-cycle the node: a GPU reset does not bring a GPU back that is off the bus. "
    "If it returns on this slot: check power, riser and seating and the PCIe AER log, then RMA.",
    "CHECK_MECHANICALS": "Drain, power off, check the auxiliary power cable, the seating and the slot of the GPU.",
    "CONTACT_SUPPORT": "Take nvidia-bug-report.sh and call vendor support.",
    "UPDATE_SWFW": "Bring driver, vGPU host and guest software to matching versions.",
    "RESTART_VM": "Restart the virtual machine that owns the GPU.",
    "CHECK_UVM": "Reset the GPU where unified memory or vGPU is in use; else nothing to do.",
    "XID_154": "Do what the text asks for; the Xid that came before is the fault.",
    "RebootSystem": "Drain and reboot the node; call vendor support if it comes back.",
    "CheckUserAppAndGPU": "Check the application first, then the GPU with dcgmi diag -r 3.",
    "": "Watch the GPU; call vendor support if it comes back.",
}

_SPECIAL = {
    13: "Restart the job. Errors on many SMs come from the application; the same GPC/TPC again with other jobs points "
    "to hardware: run dcgmi diag -r 3.",
    31: "Restart the job: an illegal access of the application. If it hits this GPU with several unrelated jobs, "
    "run dcgmi diag -r 3.",
    43: "Restart the job: its own fault stopped the channel; the GPU stays healthy.",
    45: "Follow the Xid that came before it. Where it stands alone on an NVSwitch board, restart Fabric Manager.",
    48: "Drain and reset the GPU, then run the field diagnostic. If nvidia-smi -q says that the SRAM threshold is "
    "exceeded, or a row remap failed, go the RMA way.",
    63: "A row remap is recorded: reset the GPU when the running jobs have ended, which makes it active.",
    64: "The row remap could not be recorded: drain and reset the GPU; if it comes back, call vendor support (RMA).",
    74: "Drain, then reset all GPUs of the NVLink fabric together or reboot; check nvidia-smi nvlink -s and -e. If the "
    "same link fails again, run the field diagnostic, check the connection, then RMA.",
    92: "Nothing to do now; if the rate of corrected errors stays high, call vendor support.",
    94: "Restart the one job that was hit; reset the GPU when the running jobs have ended.",
    95: "Drain and reset the GPU before any new work runs on it.",
    119: "Drain and reset the GPU (nvidia-smi --gpu-reset); if it stays, reboot or power-cycle the node; if it comes "
    "back, update the driver, then call vendor support.",
    120: "Drain and reset the GPU (nvidia-smi --gpu-reset); if it stays, reboot or power-cycle the node; if it comes "
    "back, update the driver, then call vendor support.",
    157: "No spare is left to retire the bad resource: work may go on, plan the replacement of the GPU.",
    161: "A memory channel could not be retired: work may go on, plan the replacement of the GPU.",
    167: "Drain and reboot the node, then check the PCIe path of the GPU (AER log, seating, riser).",
    168: "Switch ECC on (so that rows can be remapped) and reboot the node.",
}


@dataclass(frozen=True, slots=True)
class Xid:
    """
    One GPU error code.

    Attributes:
        code: the number behind ``NVRM: Xid (PCI:...):``.
        name: NVIDIA's identifier, in capitals.
        title: the meaning in words, where NVIDIA gives one; else the identifier.
        severity: one of :data:`XID_SEVERITIES`.
        now, then: NVIDIA's buckets for the immediate action and the investigation; "" where none is public.
        since_154: whether the driver also logs Xid 154 for it (``from R565``); "" when it does not.
        applies: chips the code exists on; empty when it is on none of A100, H100, B100 and GB200.
        note: free words of the table.
        remedy: what to do, one or two sentences.
        source: where the row comes from.
    """

    code: int
    name: str
    title: str
    severity: str
    now: str
    then: str
    since_154: str
    applies: tuple[str, ...]
    note: str
    remedy: str
    source: str


@dataclass(frozen=True, slots=True)
class SXid:
    """
    One NVSwitch error code.

    Attributes:
        code: the number behind ``SXid (PCI:...):``.
        name: its meaning.
        severity: one of :data:`SXID_SEVERITIES`; ``potentially-fatal`` hits one GPU on an access port and the
            partition on a trunk port, ``always-fatal`` the whole board.
        remedy: what to do.
        source: where the row comes from.
    """

    code: int
    name: str
    severity: str
    remedy: str
    source: str


@dataclass(frozen=True, slots=True)
class NVLink5Cause:
    """
    One row of the decoding of Xid 144 to 150.

    Attributes:
        xid: 144 to 150.
        units: names under which the driver prints the unit; older and newer ones.
        masks: patterns over the 32 bits of the first word, highest bit first, ``-`` for any: before R575, from R575.
        statuses: values of the second word; empty for any.
        resolution: NVIDIA's bucket: IGNORE, RESET_GPU, or XID_154_EVAL (take the action of the Xid 154 beside it).
        investigate: bucket of the investigation: INVESTIGATE_PEER_DEVICE, INVESTIGATE_LINK_SI_AND_CABLES ...
        severity: one of :data:`NVLINK5_SEVERITIES`; Fatal takes all links of the GPU down.
        source: where the row comes from.
    """

    xid: int
    units: tuple[str, ...]
    masks: tuple[str, str]
    statuses: tuple[int, ...]
    resolution: str
    investigate: str
    severity: str
    source: str


@cache
def xids() -> dict[int, Xid]:
    """Return the table of GPU codes."""
    return {entry.code: entry for entry in map(_xid, _rows("xid.csv"))}


@cache
def sxids() -> dict[int, SXid]:
    """Return the table of NVSwitch codes."""
    return {entry.code: entry for entry in map(_sxid, _rows("sxid.csv"))}


@cache
def nvlink5_table() -> tuple[NVLink5Cause, ...]:
    """Return the decoding of Xid 144 to 150."""
    return tuple(map(_nvlink5, _rows("xid_nvlink5.csv")))


def xid(code: int) -> Xid | None:
    """Look up a GPU code; None when the catalogue does not know it."""
    return xids().get(code)


def sxid(code: int) -> SXid | None:
    """Look up an NVSwitch code; None when the catalogue does not know it."""
    return sxids().get(code)


def nvlink5_causes(code: int, unit: str, intrinfo: int, status: int) -> list[NVLink5Cause]:
    """
    Decode one NVLink5 Xid.

    The layout of the first word changed with R575 and the line does not say which driver wrote it, so both masks are
    tried; the printed unit tells false matches apart. Status words are bits for 144 to 148: a word with two bits set
    has two causes.

    Args:
        code: 144 to 150.
        unit: as printed, ``RLW_SRC_TRACK``.
        intrinfo: first word.
        status: second word.

    Returns:
        The rows that fit, the worst severity first; empty when the table does not know the combination.
    """
    fitting = [
        cause
        for cause in nvlink5_table()
        if cause.xid == code
        and unit in cause.units
        and any(_fits(mask, intrinfo) for mask in cause.masks)
        and _status_fits(cause, status)
    ]
    exact = [cause for cause in fitting if status in cause.statuses]
    return sorted(exact or fitting, key=lambda cause: -NVLINK5_SEVERITIES.index(cause.severity))


def _fits(mask: str, word: int) -> bool:
    bits = f"{word & 0xFFFFFFFF:032b}"
    return all(wanted in ("-", bit) for wanted, bit in zip(mask, bits, strict=True))


def _status_fits(cause: NVLink5Cause, status: int) -> bool:
    if not cause.statuses or status in cause.statuses:
        return True
    return cause.xid < 149 and any(wanted & status for wanted in cause.statuses)


def _rows(name: str) -> Iterator[dict[str, str]]:
    text = resources.files("hwcheck.knowledge").joinpath(name).read_text(encoding="utf-8")
    return csv.DictReader(io.StringIO(text))


def _one_of(word: str, known: tuple[str, ...], where: str) -> str:
    if word not in known:
        raise ValueError(f"{where}: unknown severity {word!r}; there are {', '.join(known)}")
    return word


def _xid(row: dict[str, str]) -> Xid:
    code = int(row["code"])
    tokens, words = _tokens(row["action"])
    name, _, title = row["name"].partition(" (")
    now = tokens.get("now", "")
    note = "; ".join(words)
    return Xid(
        code=code,
        name=name,
        title=title.removesuffix(")") or name,
        severity=_one_of(row["severity"], XID_SEVERITIES, f"Xid {code}"),
        now=now,
        then=tokens.get("then", ""),
        since_154=tokens.get("xid154", ""),
        applies=tuple(chip for chip in tokens.get("applies", "").split("+") if chip not in ("", "none")),
        note=note,
        remedy=_xid_remedy(code, row["severity"], now or tokens.get("gpud", "")),
        source=row["source"],
    )


def _xid_remedy(code: int, severity: str, bucket: str) -> str:
    if code in _SPECIAL:
        return _SPECIAL[code]
    if bucket in _BUCKETS and (bucket or severity not in ("critical", "fatal")):
        return _BUCKETS[bucket]
    return _BUCKETS["RESET_GPU"]  # the NVLink5 workflow, and critical codes without a public action


def _tokens(action: str) -> tuple[dict[str, str], list[str]]:
    """Split ``now=RESET_GPU; then=IGNORE; free words`` into tokens and words."""
    tokens: dict[str, str] = {}
    words: list[str] = []
    for part in filter(None, map(str.strip, action.split(";"))):
        key, equals, value = part.partition("=")
        if equals and key in ("now", "then", "xid154", "applies", "gpud"):
            tokens[key] = value
        else:
            words.append(part)
    return tokens, words


def _sxid(row: dict[str, str]) -> SXid:
    code = int(row["code"])
    severity = _one_of(row["severity"], SXID_SEVERITIES, f"SXid {code}")
    return SXid(code, row["name"], severity, row["action"], row["source"])


def _nvlink5(row: dict[str, str]) -> NVLink5Cause:
    code = int(row["xid"])
    return NVLink5Cause(
        xid=code,
        units=tuple(row["unit"].split("/")),
        masks=(row["intrinfo_mask_before_r575"], row["intrinfo_mask_from_r575"]),
        statuses=tuple(int(value, 16) for value in row["error_status"].split("/") if value),
        resolution=row["resolution"],
        investigate=row["investigate"],
        severity=_one_of(row["severity"].rstrip("*?"), NVLINK5_SEVERITIES, f"NVLink5 Xid {code}"),
        source=row["source"],
    )
