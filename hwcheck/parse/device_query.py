"""
deviceQuery: the CUDA sample that lists what CUDA sees of each GPU.

Source: NVIDIA/cuda-samples, ``deviceQuery`` (CUDA 9 to 13); the only common tool that shows the width of the memory
    bus.
Shape: facts of a GPU at its PCI address. The device number is a CUDA ordinal (CUDA_VISIBLE_DEVICES and
    CUDA_DEVICE_ORDER change it) and no nvidia-smi index.
Units: domain, bus and device are decimal here, hexadecimal everywhere else. Memory clock in MHz. Global memory is
    what CUDA can give out, a few hundred MiB less than nvidia-smi's total, so it is a fact of its own.
Missing: a device without its PCI line cannot be named and is left out, with the text cut off. ``cudaGetDeviceCount
    returned N`` is CUDA that does not initialise.

Raises: nothing.
"""

from __future__ import annotations

import re
from typing import Any

from hwcheck.evidence import Output
from hwcheck.facts import NODE, Missing, Reason, gpu_at, quantity
from hwcheck.parse.format import fmt
from hwcheck.parse.matrix import note_names
from hwcheck.parse.sink import FactSink

GIVES = ("cuda.*", "hbm.bus_width", "hbm.cuda_total")
_DEVICE = re.compile(r'Device \d{1,3}: "([^"]{1,80})"\s*$')
_COUNT = re.compile(r"Detected (\d{1,4}) CUDA Capable device")
_PCI = re.compile(r"\s*Device PCI Domain ID / Bus ID / location ID:\s+(\d{1,6}) / (\d{1,3}) / (\d{1,2})\s*$")
_DRIVER = re.compile(r"\s*CUDA Driver Version / Runtime Version\s+(\d{1,3}\.\d{1,2}) / ")
_RESULT = re.compile(r"Result = (PASS|FAIL)\s*$")
_ERROR = re.compile(r"->\s*(.{1,80})$")
_ROWS: tuple[tuple[str, str, str], ...] = (
    ("Total amount of global memory:", "hbm.cuda_total", "MiB"),
    ("GPU Max Clock rate:", "gpu.clocks.max_graphics", "MHz"),
    ("Memory Clock rate:", "gpu.clocks.max_memory", "MHz"),
    ("Memory Bus Width:", "hbm.bus_width", "bit"),
)


@fmt(
    "devicequery",
    "CUDA deviceQuery",
    gives=GIVES,
    opens=r"(?:\S{0,200}/)?deviceQuery Starting|\s*CUDA Device Query \(Runtime API\)"
    r'|Detected \d{1,4} CUDA Capable device|Device \d{1,3}: "[^"]{1,80}"\s*$|cudaGetDeviceCount returned \d'
    r"|\s*Device PCI Domain ID / Bus ID / location ID:",
    command=r"\bdeviceQuery\b",
)
def device_query(output: Output, facts: FactSink) -> None:
    """Read every device, their number, and the result line."""
    names: list[str] = []
    pending: dict[str, tuple[Any, int]] | None = None
    nameless = 0
    for index, text in enumerate(output.lines):
        line = output.first_line + index
        device, address = _DEVICE.match(text), _PCI.match(text)
        if device:
            nameless += pending is not None
            pending = {"gpu.name": (device[1], line)}
            names.append(device[1])
        elif address:
            if pending is not None:
                subject = gpu_at(f"{int(address[1]):04x}:{int(address[2]) & 255:02x}:{int(address[3]) & 31:02x}.0")
                for name, (value, at) in pending.items():
                    facts.put(subject, name, value, at)
            pending = None
        elif pending is not None and text.startswith("  "):
            _read_row(text, pending, line)
        _read_node(text, facts, line)
    note_names(facts, names, output.first_line)
    if nameless:
        facts.cut_off(f"{nameless} device(s) without a PCI address", GIVES)
    if pending is not None or (names and not any(_RESULT.match(text) for text in output.lines[-5:])):
        facts.cut_off("the text ends before the result line", GIVES)


def _read_row(text: str, pending: dict[str, tuple[Any, int]], line: int) -> None:
    stripped = text.strip()
    if stripped.startswith("Device has ECC support:"):
        word = stripped.rpartition(":")[2].strip()
        if word in ("Enabled", "Disabled"):
            pending["gpu.ecc.mode"] = (word == "Enabled", line)
        return
    for label, name, unit in _ROWS:
        if stripped.startswith(label):
            words = (
                stripped[len(label) :].strip().replace("MBytes", "MiB").replace("Mhz", "MHz").replace("-bit", " bit")
            )
            try:
                pending[name] = (int(quantity(words, unit)), line)
            except ValueError:
                pending[name] = (Missing(Reason.UNPARSABLE, f"not understood: {words[:60]!r}"), line)


def _read_node(text: str, facts: FactSink, line: int) -> None:
    count, driver, result = _COUNT.match(text), _DRIVER.match(text), _RESULT.match(text)
    if count:
        facts.put(NODE, "cuda.device_count", int(count[1]), line)
    elif driver:
        facts.put(NODE, "driver.cuda_version", driver[1], line)
    elif result:
        facts.put(NODE, "cuda.query_result", result[1], line)
    elif text.startswith("->"):
        error = _ERROR.match(text)
        if error:
            facts.put(NODE, "cuda.init_error", error[1].strip(), line)
