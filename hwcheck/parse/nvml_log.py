"""
A log of NVML calls and their answers: what live collection keeps of NVML.

Source: JSON lines; the first is ``{"format": "hwcheck.nvml/1"}``, each other one ``{"call": NAME, "device": INDEX | null,
"args": [CONSTANT, ...], "value": ANSWER}`` or ``... "error": NVML_ERROR_NAME``. Answers are as NVML gives them: a scalar,
or an object of the struct's fields; arguments are NVML's constant names.
Shape: facts of :mod:`hwcheck.parse.gpu_table` per device; driver and CUDA version and count of the node.
Units: NVML's own (bytes, mW, ns, enums), converted by the table.
Missing: NOT_SUPPORTED absent · NO_PERMISSION denied · TIMEOUT timeout · any other error failed.
"""

from __future__ import annotations

import json
from typing import Any

from hwcheck.errors import ParseError
from hwcheck.evidence import Output
from hwcheck.facts import NAMES, NODE, Missing, Reason, Subject, gpu_at, gpu_index
from hwcheck.parse.format import fmt
from hwcheck.parse.gpu_table import GIVES, GPU_FACTS, NODE_FIELDS, GpuFact, Nvml
from hwcheck.parse.sink import FactSink

VERSION = "hwcheck.nvml/1"
_ERRORS = {
    "NVML_ERROR_NOT_SUPPORTED": Reason.ABSENT,
    "NVML_ERROR_NOT_FOUND": Reason.ABSENT,
    "NVML_ERROR_FUNCTION_NOT_FOUND": Reason.ABSENT,
    "NVML_ERROR_DEPRECATED": Reason.ABSENT,
    "NVML_ERROR_NO_PERMISSION": Reason.DENIED,
    "NVML_ERROR_TIMEOUT": Reason.TIMEOUT,
}
Key = tuple[str, tuple[str, ...]]
Answers = dict[Key, tuple[Any, int]]


@fmt("nvml", "NVML calls", gives=GIVES, opens=r'\{"format": ?"hwcheck\.nvml/', continues=r"\s*\{", rank=5)
def parse_nvml(output: Output, facts: FactSink) -> None:
    """Index the log by device and call, then look each row of the table up."""
    devices: dict[int | None, Answers] = {}
    for number, line in enumerate(output.lines, output.first_line):
        if line.strip():
            _record(line, number, devices, facts)
    _node(devices.pop(None, {}), facts)
    for index, answers in sorted(devices.items(), key=lambda item: item[0] or 0):
        subject = _subject(index or 0, answers)
        for row in GPU_FACTS:
            if row.nvml is not None and (row.nvml.call, row.nvml.args) in answers:
                value, line_number = answers[row.nvml.call, row.nvml.args]
                facts.put(subject, row.name, _value(row, row.nvml, value), line_number)
        facts.put(subject, "gpu.index", index or 0)
    if devices:
        facts.put(NODE, "gpu.listed_count", len(devices))


def _record(line: str, number: int, devices: dict[int | None, Answers], facts: FactSink) -> None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        facts.cut_off(f"line {number} is no JSON", GIVES)
        return
    if not isinstance(record, dict) or ("format" in record and record["format"] != VERSION):
        raise ParseError(f"not a log of {VERSION}", number)
    call, device, args = record.get("call"), record.get("device"), record.get("args") or []
    if not isinstance(call, str) or not (device is None or isinstance(device, int)) or not isinstance(args, list):
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


def _node(answers: Answers, facts: FactSink) -> None:
    for name, (_, _, _, call) in NODE_FIELDS.items():
        if (call, ()) not in answers:
            continue
        value, number = answers[call, ()]
        if name == "driver.cuda_version" and type(value) is int:
            value = f"{value // 1000}.{value % 1000 // 10}"
        good = isinstance(value, Missing) or type(value) is NAMES[name].type
        facts.put(NODE, name, value if good else Missing(Reason.UNPARSABLE, call), number)
