"""
A log of NVML calls and their answers: what live collection keeps of NVML.

Source: JSON lines; the first is ``{"format": "hwcheck.nvml/1"}``, each other one ``{"call": NAME, "device": INDEX |
null, "args": [CONSTANT, ...], "value": ANSWER}`` or ``... "error": NVML_ERROR_NAME``. Answers are as NVML gives them: a
scalar, or an object of the struct's fields; arguments are NVML's constant names.
Shape: facts of :mod:`hwcheck.parse.gpu_table` and :mod:`hwcheck.parse.nvml_links` per device; versions and count of
the node.
Units: NVML's own (bytes, mW, ns, enums), converted by the table.
Missing: NOT_SUPPORTED absent · NO_PERMISSION denied · TIMEOUT timeout · any other error failed. In a log that broke off
(the driver hung), the GPU that was asked last and those behind it are unknown where nothing was said; the others were
read whole.
"""

from __future__ import annotations

import json
from typing import Any, TypeGuard

from hwcheck.errors import ParseError
from hwcheck.evidence import Output
from hwcheck.facts import NAMES, NODE, Missing, Reason, Subject, gpu_at, gpu_index
from hwcheck.parse.format import fmt
from hwcheck.parse.gpu_table import GIVES, GPU_FACTS, NODE_FIELDS, NVML_FACTS, GpuFact, Nvml
from hwcheck.parse.nvml_links import LINK_GIVES, Answers, put_more
from hwcheck.parse.sink import FactSink

VERSION = "hwcheck.nvml/1"
NVML_GIVES = (*GIVES, *LINK_GIVES, "hbm.bus_width", "topo.gpu_numa", "driver.nvml_version")
MOST_DEVICES = 64
_ERRORS = {
    "NVML_ERROR_NOT_SUPPORTED": Reason.ABSENT,
    "NVML_ERROR_NOT_FOUND": Reason.ABSENT,
    "NVML_ERROR_FUNCTION_NOT_FOUND": Reason.ABSENT,
    "NVML_ERROR_DEPRECATED": Reason.ABSENT,
    # Hwcheck's own arguments are constants: a driver that refuses one does not know the query.
    "NVML_ERROR_INVALID_ARGUMENT": Reason.ABSENT,
    "NVML_ERROR_ARGUMENT_VERSION_MISMATCH": Reason.ABSENT,
    "NVML_ERROR_VGPU_ECC_NOT_SUPPORTED": Reason.ABSENT,
    "NVML_ERROR_NO_DATA": Reason.ABSENT,
    "NVML_ERROR_NO_PERMISSION": Reason.DENIED,
    "NVML_ERROR_TIMEOUT": Reason.TIMEOUT,
}
_UNKNOWN = "NVML_ERROR_UNKNOWN"
_WORDS = {
    "NVML_ERROR_GPU_IS_LOST": "GPU is lost",
    "NVML_ERROR_RESET_REQUIRED": "GPU requires reset",
    _UNKNOWN: "Unknown Error",
}
"""Errors that say something of the GPU and not of the question, in nvidia-smi's words."""
_TABLE = {(row.nvml.call, row.nvml.args) for row in GPU_FACTS if row.nvml is not None}
"""What nvidia-smi -q asks too: only there an unknown error is known to be no matter of the question."""
_INIT, _HANDLE = "nvmlInit_v2", "nvmlDeviceGetHandleByIndex_v2"
_FABRIC = "nvmlDeviceGetGpuFabricInfoV"


@fmt("nvml", "NVML calls", gives=NVML_GIVES, opens=r'\{"format": ?"hwcheck\.nvml/', continues=r"\s*\{", rank=5)
def parse_nvml(output: Output, facts: FactSink) -> None:
    """Index the log by device and call, then look each row of the table up."""
    devices: dict[int | None, Answers] = {}
    for number, line in enumerate(output.lines, output.first_line):
        if line.strip():
            _record(line, number, devices, facts)
    node = devices.pop(None, {})
    _node(node, facts)
    subjects = {index: _device(index, devices[index], facts) for index in sorted(filter(_is_index, devices))}
    if devices:
        facts.put(NODE, "gpu.listed_count", len(devices))
    _say_what_lacks(node, subjects, facts)


def _is_index(device: int | None) -> TypeGuard[int]:
    return device is not None


def _device(index: int, answers: Answers, facts: FactSink) -> Subject:
    subject = _subject(index, answers)
    facts.put(subject, "gpu.index", index)
    handle, at = answers.get((_HANDLE, ()), (True, 0))
    if isinstance(handle, Missing):
        facts.put(subject, "gpu.handle_error", _WORDS.get(handle.detail, handle.detail), at)
        facts.cut_off(f"NVML cannot open the GPU: {handle.detail}", NVML_GIVES, (subject,))
        return subject
    for row in (*GPU_FACTS, *NVML_FACTS):
        if row.nvml is not None and (row.nvml.call, row.nvml.args) in answers:
            value, line_number = answers[row.nvml.call, row.nvml.args]
            facts.put(subject, row.name, _value(row, row.nvml, value), line_number)
    put_more(subject, answers, facts)
    for key, (value, line_number) in answers.items():
        if isinstance(value, Missing) and value.detail in _WORDS and (value.detail != _UNKNOWN or key in _TABLE):
            facts.put(subject, "gpu.access_error", _WORDS[value.detail], line_number)
            break
    return subject


def _say_what_lacks(node: Answers, subjects: dict[int, Subject], facts: FactSink) -> None:
    """
    Say which GPUs are not described whole: after a timeout the one that was asked last, and all behind it.

    Those read before keep their answers: what they do not have is absent, not unknown.
    """
    count = node.get(("nvmlDeviceGetCount_v2", ()), (None, 0))[0]
    if type(count) is not int or not 0 <= count <= MOST_DEVICES:
        return
    broke_off = facts.output.reason is not None
    lacking = [index for index in range(count) if index not in subjects or (broke_off and index >= max(subjects))]
    about = [subjects.get(index, gpu_index(index)) for index in lacking]
    for index in lacking:
        if index not in subjects:
            facts.put(gpu_index(index), "gpu.index", index)
    if broke_off and subjects:
        facts.only_about(about)
    elif not broke_off and lacking:
        facts.cut_off(f"the log tells of {len(subjects)} of {count} GPUs", NVML_GIVES, about)


def _record(line: str, number: int, devices: dict[int | None, Answers], facts: FactSink) -> None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        facts.cut_off(f"line {number} is no JSON", NVML_GIVES)
        return
    if not isinstance(record, dict) or ("format" in record and record["format"] != VERSION):
        raise ParseError(f"not a log of {VERSION}", number)
    call, device, args = record.get("call"), record.get("device"), record.get("args") or []
    if not isinstance(call, str) or not isinstance(args, list):
        return
    if device is not None and not (type(device) is int and 0 <= device < MOST_DEVICES):
        return
    if "error" in record:
        error = str(record["error"])[:60]
        answer: Any = Missing(_ERRORS.get(error, Reason.FAILED), error)
    elif "value" in record:
        answer = record["value"]
    else:
        return
    devices.setdefault(device, {})[call, tuple(map(str, args))] = (answer, number)


def _subject(index: int, answers: Answers) -> Subject:
    pci, _ = answers.get(("nvmlDeviceGetPciInfo", ()), ({}, 0))
    address = pci.get("busId") if isinstance(pci, dict) else None
    return gpu_at(address) if isinstance(address, str) else gpu_index(index)


def _value(row: GpuFact, nvml: Nvml, answer: Any) -> Any:
    if isinstance(answer, Missing):
        return answer
    try:
        if nvml.call == _FABRIC and _unsaid(nvml.field, answer["state"]):
            return Missing(Reason.ABSENT, "N/A")
        if nvml.field.startswith("&"):
            answer = int(answer) & int(nvml.field[1:], 16)
        elif nvml.field:
            answer = answer[nvml.field]
        value = nvml.read(answer)
    except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
        return Missing(Reason.UNPARSABLE, f"{nvml.call}: {type(error).__name__}")
    if isinstance(value, Missing):
        return value
    wanted = NAMES[row.name].type
    if wanted is float and type(value) is int:
        value = float(value)
    return value if type(value) is wanted else Missing(Reason.UNPARSABLE, f"{nvml.call}: not a {wanted.__name__}")


def _unsaid(field: str, state: int) -> bool:
    """Tell whether NVML leaves this field of the fabric info open: no fabric at all, or no registration yet."""
    return state == 0 or (field == "status" and state != 3)


def _node(answers: Answers, facts: FactSink) -> None:
    failed, at = answers.get((_INIT, ()), (True, 0))
    if isinstance(failed, Missing):
        _put_init_error(failed, at, facts)
    calls = {name: call for name, (_, _, _, call) in NODE_FIELDS.items()}
    for name, call in {**calls, "driver.nvml_version": "nvmlSystemGetNVMLVersion"}.items():
        if (call, ()) not in answers:
            continue
        value, number = answers[call, ()]
        if name == "driver.cuda_version" and type(value) is int:
            value = f"{value // 1000}.{value % 1000 // 10}"
        good = isinstance(value, Missing) or type(value) is NAMES[name].type
        facts.put(NODE, name, value if good else Missing(Reason.UNPARSABLE, call), number)
        if name == "gpu.attached_count" and type(value) is int and value == 0:
            facts.put(NODE, "driver.no_devices", "NVML counts no devices", number)


def _put_init_error(failed: Missing, line: int, facts: FactSink) -> None:
    """NVML did not start: what nvidia-smi prints then, under the same names."""
    error = failed.detail
    if error == "NVML_ERROR_LIB_RM_VERSION_MISMATCH":
        facts.put(NODE, "driver.nvml_mismatch", "NVML: Driver/library version mismatch", line)
    elif failed.reason is Reason.DENIED:
        facts.put(NODE, "driver.unreachable", failed, line)
    else:
        facts.put(NODE, "driver.unreachable", f"NVML does not start: {error}", line)
    facts.cut_off(f"NVML does not start: {error}", NVML_GIVES)
