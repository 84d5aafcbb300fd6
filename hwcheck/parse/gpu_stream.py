"""
GPU STREAM: copy, scale, add and triad within the memory of one GPU.

Source: the STREAM benchmark of microsoft/superbenchmark (``gpu_stream``); kernel names as in McCalpin's STREAM.
Shape: one measurement a kernel, ``gpu-stream.<copy|scale|add|triad>``: the best block size of each GPU, and of these
    the slowest GPU. Device numbers are CUDA ordinals.
Units: GB/s are 10**9 B/s, bytes read and written counted. The tool's peak is memory clock x 2 x bus width / 8.
Missing: a row without a figure is left out; a kernel without any row is not there.

Raises: nothing.
"""

from __future__ import annotations

import re
from typing import Any

from hwcheck.evidence import Output
from hwcheck.facts import real
from hwcheck.parse.format import fmt
from hwcheck.parse.matrix import GPUS_MAX, Namer, note_names
from hwcheck.parse.sink import FactSink

_DEVICE = re.compile(r'Device \d{1,3}: "([^"]{1,80})"\s+\d+ SMs\b')
_ROW = re.compile(
    r"STREAM_(COPY|SCALE|ADD|TRIAD)_(\w{1,20}?)_gpu_(\d{1,3})_buffer_(\d{1,15})_block_\d{1,6}\s+(\S{1,30})\s+(\S{1,30})\s*$"
)


@fmt(
    "gpu-stream",
    "GPU STREAM",
    gives=("result.bandwidth",),
    opens=r'STREAM Benchmark\s*$|STREAM_(?:COPY|SCALE|ADD|TRIAD)_\w+_gpu_\d|Device \d{1,3}: "[^"]{1,80}"\s+\d+ SMs\b',
    command=r"\bgpu_stream\b",
    rank=40,
)
def gpu_stream(output: Output, facts: FactSink) -> None:
    """Read the best figure of each kernel and GPU."""
    best: dict[str, dict[int, tuple[float, float, int]]] = {}
    names: list[str] = []
    first: dict[str, int] = {}
    for index, text in enumerate(output.lines):
        line = output.first_line + index
        device, row = _DEVICE.match(text), _ROW.match(text)
        if device:
            names.append(device[1])
        elif row:
            kernel = row[1].lower()
            first.setdefault(kernel, line)
            _take(row, best.setdefault(kernel, {}), line)
    note_names(facts, names, output.first_line)
    namer = Namer(output)
    for kernel, by_gpu in best.items():
        if not by_gpu:
            facts.unparsable(
                namer.subject(f"gpu-stream.{kernel}", first[kernel]), "result.bandwidth", "no figure", first[kernel]
            )
            continue
        value, share, line = min(by_gpu.values())
        conditions: dict[str, Any] = {
            "gpus": len(by_gpu),
            "statistic": "min",
            "counts": "read+write",
            "max": max(by_gpu.values())[0],
            "peak_share": share,
        }
        subject = namer.subject(f"gpu-stream.{kernel}", line)
        facts.put(subject, "result.bandwidth", value, line)
        facts.put(subject, "result.conditions", conditions, line)


def _take(row: re.Match[str], by_gpu: dict[int, tuple[float, float, int]], line: int) -> None:
    try:
        value, share = real(row[5]), real(row[6])
    except ValueError:
        return
    gpu = int(row[3])
    if gpu < GPUS_MAX:
        by_gpu[gpu] = max(by_gpu.get(gpu, (0.0, 0.0, 0)), (value, share, line))
