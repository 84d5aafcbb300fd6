"""
What an NVML log tells beyond the one table: links, chip-to-chip links, processes, workload power profiles.

Source: rows of a log of hwcheck.nvml/1 with the argument ``links``: the value is a list, one answer a link, an error in
it by its name. Other rows hold a list of processes, or the masks of power profiles.
Shape: the records of ``nvidia-smi nvlink -s``, ``-e`` and ``c2c -s``, of the process list of ``-q -x``, and names of
profiles.
Units: NVML gives a link's speed in MB/s; the records hold GB/s, as nvidia-smi prints it.
Missing: a GPU without links answers NOT_SUPPORTED: absent. A link that answers with another error makes the list of
this GPU failed; a link without its speed makes only the list unparsable, the number of those that are up stands.
"""

from __future__ import annotations

from typing import Any

from hwcheck.facts import Missing, Reason, Subject
from hwcheck.parse.sink import FactSink

Key = tuple[str, tuple[str, ...]]
Answers = dict[Key, tuple[Any, int]]

LINK_GIVES = ("nvlink.links", "nvlink.active_count", "nvlink.errors", "c2c.links")
_FIELDS = "nvmlDeviceGetFieldValues"
_STATE: Key = ("nvmlDeviceGetNvLinkState", ("links",))
_SPEED: Key = (_FIELDS, ("NVML_FI_DEV_NVLINK_GET_SPEED", "links"))
_NONE = ("NVML_ERROR_NOT_SUPPORTED", "NVML_ERROR_INVALID_ARGUMENT")

_COUNTERS = {
    "ERROR_DL_REPLAY": "Replay Errors",
    "ERROR_DL_RECOVERY": "Recovery Errors",
    "ERROR_DL_CRC": "CRC Errors",
    "COUNT_MALFORMED_PACKET_ERRORS": "Malformed packet Errors",
    "COUNT_BUFFER_OVERRUN_ERRORS": "Buffer overrun Errors",
    "COUNT_RCV_ERRORS": "Rx Errors",
    "COUNT_RCV_REMOTE_ERRORS": "Rx remote Errors",
    "COUNT_RCV_GENERAL_ERRORS": "Rx General Errors",
    "COUNT_LOCAL_LINK_INTEGRITY_ERRORS": "Local link integrity Errors",
    "COUNT_XMIT_DISCARDS": "Tx discards",
    "COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS": "Link recovery successful events",
    "COUNT_LINK_RECOVERY_FAILED_EVENTS": "Link recovery failed events",
    "COUNT_LINK_RECOVERY_EVENTS": "Total link recovery events",
    "COUNT_EFFECTIVE_ERRORS": "Effective Errors",
    "COUNT_SYMBOL_ERRORS": "Symbol Errors",
}
"""Field value, without ``NVML_FI_DEV_NVLINK_`` → name as ``nvidia-smi nvlink -e`` prints it."""

_PROFILES = (
    "MAX_P", "MAX_Q", "COMPUTE", "MEMORY_BOUND", "NETWORK", "BALANCED", "LLM_INFERENCE", "LLM_TRAINING", "RBM",
    "DCPCIE", "HMMA_SPARSE", "HMMA_DENSE", "SYNC_BALANCED", "HPC", "MIG",
)  # fmt: skip


def put_more(gpu: Subject, answers: Answers, facts: FactSink) -> None:
    """Put links, processes and profiles of one GPU."""
    _put_nvlinks(gpu, answers, facts)
    _put_c2c(gpu, answers, facts)
    _put_errors(gpu, answers, facts)
    _put_processes(gpu, answers, facts)
    _put_profiles(gpu, answers, facts)


def _put_nvlinks(gpu: Subject, answers: Answers, facts: FactSink) -> None:
    count, line = answers.get((_FIELDS, ("NVML_FI_DEV_NVLINK_LINK_COUNT",)), (None, 0))
    if _STATE in answers:
        states, line = answers[_STATE]
    elif isinstance(count, Missing):
        states = count
    elif count == 0:
        states = Missing(Reason.ABSENT, "no NVLink")
    else:
        return
    links = _links(states, answers.get(_SPEED, (None, 0))[0])
    facts.put(gpu, "nvlink.links", links, line)
    up = _numbers(states)
    number = up if isinstance(up, Missing) else sum(state == 1 for state in up.values())
    facts.put(gpu, "nvlink.active_count", number, line)


def _put_c2c(gpu: Subject, answers: Answers, facts: FactSink) -> None:
    count, line = answers.get((_FIELDS, ("NVML_FI_DEV_C2C_LINK_COUNT",)), (None, 0))
    states, at = answers.get((_FIELDS, ("NVML_FI_DEV_C2C_LINK_GET_STATUS", "links")), (None, 0))
    if states is None:
        states, at = (Missing(Reason.ABSENT, "no C2C link") if count == 0 else count), line
    if states is not None and not isinstance(states, int):
        speeds = answers.get((_FIELDS, ("NVML_FI_DEV_C2C_LINK_GET_MAX_BW", "links")), (None, 0))[0]
        facts.put(gpu, "c2c.links", _links(states, speeds), at)


def _links(states: Any, speeds: Any) -> Any:
    """Join states and speeds into records, or say why there are none."""
    up, rates = _numbers(states), _numbers(speeds)
    if isinstance(up, Missing):
        return up
    records = []
    for link, state in up.items():
        speed = None if isinstance(rates, Missing) or not rates.get(link) else rates[link] / 1000
        if state == 1 and speed is None:
            return Missing(Reason.UNPARSABLE, f"link {link} is up and has no speed")
        records.append({"link": link, "active": state == 1, "speed": speed if state == 1 else None})
    return tuple(records)


def _numbers(answer: Any) -> dict[int, int] | Missing:
    """Read a list of answers: link → number; links that are not there are left out."""
    if isinstance(answer, Missing):
        return answer
    if not isinstance(answer, list) or len(answer) > 64:
        return Missing(Reason.UNPARSABLE, "not a list of links")
    found: dict[int, int] = {}
    for link, value in enumerate(answer):
        if type(value) is int and 0 <= value < 1 << 64:
            found[link] = value
        elif value not in _NONE:
            return Missing(Reason.FAILED, f"link {link}: {str(value)[:60]}")
    return found or Missing(Reason.ABSENT, "no link answers")


def _put_errors(gpu: Subject, answers: Answers, facts: FactSink) -> None:
    records: list[dict[str, Any]] = []
    lines: list[int] = []
    missing: Missing | None = None
    for field, name in _COUNTERS.items():
        answer, line = answers.get((_FIELDS, (f"NVML_FI_DEV_NVLINK_{field}", "links")), (None, 0))
        if answer is None:
            continue
        values = _numbers(answer)
        if isinstance(values, Missing):
            missing = values if missing is None or values.reason is not Reason.ABSENT else missing
            continue
        lines.append(line)
        records += [{"link": link, "counter": name, "value": value} for link, value in values.items()]
    if missing is not None and (missing.reason is not Reason.ABSENT or not records):
        facts.put(gpu, "nvlink.errors", missing)
    elif records:
        records.sort(key=lambda record: record["link"])
        facts.put(gpu, "nvlink.errors", tuple(records), lines[0])


def _put_processes(gpu: Subject, answers: Answers, facts: FactSink) -> None:
    """Join compute and graphics processes; NOT_SUPPORTED of one of them (MIG, no display) is no gap of the other."""
    found, line = [], 0
    for kind, call in (("C", "Compute"), ("G", "Graphics")):
        listed, at = answers.get((f"nvmlDeviceGet{call}RunningProcesses_v3", ()), (None, 0))
        if kind == "C" and isinstance(listed, Missing):
            facts.put(gpu, "gpu.processes", listed, at)
            return
        if not isinstance(listed, list):
            if kind == "C":
                return
            continue
        line = line or at
        for entry in listed[:1000]:
            if isinstance(entry, dict) and type(entry.get("pid")) is int:
                name = str(entry.get("name") or "")[:120]
                found.append({"pid": str(entry["pid"]), "type": kind, "name": name if name.isprintable() else ""})
    facts.put(gpu, "gpu.processes", tuple(found), line)


def _put_profiles(gpu: Subject, answers: Answers, facts: FactSink) -> None:
    masks, line = answers.get(("nvmlDeviceWorkloadPowerProfileGetCurrentProfiles", ()), (None, 0))
    for key, name in (("requestedProfilesMask", "requested"), ("enforcedProfilesMask", "enforced")):
        if isinstance(masks, Missing):
            facts.put(gpu, f"gpu.power_profile.{name}", masks, line)
        elif isinstance(masks, dict):
            facts.put(gpu, f"gpu.power_profile.{name}", _profiles(masks.get(key)), line)


def _profiles(words: Any) -> tuple[str, ...] | Missing:
    """Read a mask of 8 × 32 bits."""
    if not isinstance(words, list) or len(words) > 8 or not all(type(word) is int for word in words):
        return Missing(Reason.UNPARSABLE, "not a mask of profiles")
    bits = [32 * index + bit for index, word in enumerate(words) for bit in range(32) if word >> bit & 1]
    return tuple(_PROFILES[bit] if bit < len(_PROFILES) else f"profile {bit}" for bit in bits)
