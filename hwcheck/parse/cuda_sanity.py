"""
The first kernel on each GPU, as hwcheck's own source ``cuda-sanity`` tells it.

Source: hwcheck/sources/cuda.py. The text begins with ``CUDA sanity of hwcheck``; ``init: ok`` or CUDA's error; a line
    for each GPU when it begins and one when it has ended: ``device 0 0000:18:00.0: ok in 0.41 s``, ``device 1
    0000:2A:00.0: cuCtxCreate_v2: CUDA_ERROR_ECC_UNCORRECTABLE (214)``, ``device 2 ...: wrong result: element 17 is 34,
    not 51``.
Shape: ``sanity.cuda`` of the GPU at its PCI address; ``cuda.init_error`` of the node. The device number is a CUDA
    ordinal, and no nvidia-smi index.
Units: seconds, not kept.
Missing: a GPU that began and did not end is a timeout; a device that CUDA cannot even name makes the text cut off.
"""

from __future__ import annotations

import re

from hwcheck.evidence import Output
from hwcheck.facts import NODE, Missing, Reason, Subject, gpu_at
from hwcheck.parse.format import fmt
from hwcheck.parse.sink import FactSink

GIVES = ("sanity.cuda", "cuda.init_error")
WORDS = {
    "CUDA_ERROR_SYSTEM_NOT_READY": "system not yet initialized",
    "CUDA_ERROR_NO_DEVICE": "no CUDA-capable device is detected",
    "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH": "system has unsupported display driver / cuda driver combination",
}
"""CUDA's name of an error → the words that CUDA programs print for it, which the checks know."""
_DEVICE = re.compile(r"device (\d{1,3}) (\S{1,20}): (.{1,200})$")


@fmt(
    "cuda.sanity",
    "first CUDA kernel",
    gives=GIVES,
    opens=r"CUDA sanity of hwcheck\s*$",
    continues=r"init: |devices: \d|device \d|\s*$",
)
def parse_cuda_sanity(output: Output, facts: FactSink) -> None:
    """Put how each GPU ended, and whether CUDA started at all."""
    begun: dict[Subject, int] = {}
    for number, line in enumerate((text[:300].rstrip() for text in output.lines), output.first_line):
        device = _DEVICE.match(line)
        if line.startswith("init: ") and line != "init: ok":
            name = next((name for name in WORDS if name in line), "")
            words = f"{WORDS[name]}: " if name else ""
            facts.put(NODE, "cuda.init_error", f"{words}{line[6:160]}", number)
        elif device and device[2] == "-":
            facts.cut_off(f"CUDA cannot name device {device[1]}: {device[3]}", GIVES, ())
        elif device and device[3] == "begins":
            begun[gpu_at(device[2])] = number
        elif device:
            begun.pop(gpu_at(device[2]), None)
            text = "ok" if device[3].startswith("ok in ") else device[3]
            facts.put(gpu_at(device[2]), "sanity.cuda", text, number)
    for gpu, number in begun.items():
        facts.put(gpu, "sanity.cuda", Missing(Reason.TIMEOUT, "the kernel did not end"), number)
