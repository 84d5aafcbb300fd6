"""
``all_reduce_perf`` of a lab node, on its own GPUs: the table of nccl-tests, and NCCL's words where it is asked.

What all GPUs together reach follows from the slowest pair: more than it where NVSwitches add (NVLS: every link of
every GPU up, more than four GPUs), less in a ring. Sources: nccl-tests, src/common.cu; NCCL's INFO lines.
"""

from __future__ import annotations

import os

from hwcheck.lab.actor.cards import Cards
from hwcheck.lab.actor.place import Node, ToolError, say

_HALF = 24 << 20
"""Message in B with which half of the bandwidth is reached; a start takes 20 us beside."""
_START = 20.0
_UNITS = {"K": 10, "M": 20, "G": 30}
_WITH_NVLS = 5


def run(node: Node, _tool: str, words: list[str]) -> int:
    """Be ``all_reduce_perf``."""
    options = {"-b": "32M", "-e": "32M", "-f": "1", "-g": "1"} | dict(zip(words[::2], words[1::2], strict=False))
    cards = Cards(node)
    count = int(options["-g"])
    if not 1 <= count <= len(cards.addresses):
        raise ToolError(f"invalid number of GPUs: -g {count}, {len(cards.addresses)} are there", 1)
    host = node.text("/etc/hostname", "lab")
    nvls = count >= _WITH_NVLS and _is_whole(node)
    _head(node, options, cards, host)
    if os.environ.get("NCCL_DEBUG", "").upper() == "INFO":
        _speak(node, host, count, nvls=nvls)
    told = node.live("load")
    share = float(told["nvls" if nvls else "ring"]) if node.nvml("gpu0/nvlink_states") else 1.0
    busbw = cards.slowest_pair() * share if count > 1 else cards.inside(0)
    _table(_size(options["-b"]), _size(options["-e"]), max(2, int(options["-f"])), busbw, count)
    return 0


def _size(text: str) -> int:
    unit = text[-1:].upper()
    return int(text[:-1]) << _UNITS[unit] if unit in _UNITS else int(text)


def _is_whole(node: Node) -> bool:
    return all(
        "0" not in node.nvml(f"gpu{gpu}/nvlink_states").split() and node.nvml(f"gpu{gpu}/fabric_state") == "3"
        for gpu in node.gpus()
    )


def _head(node: Node, options: dict[str, str], cards: Cards, host: str) -> None:
    low, high, step = _size(options["-b"]), _size(options["-e"]), options["-f"]
    say("# Collective test starting: all_reduce_perf")
    say(f"# nThread 1 nGpus {options['-g']} minBytes {low} maxBytes {high} step: {step}(factor) warmup iters: 1 "
        "iters: 20 agg iters: 1 validation: 1 graph: 0\n#\n# Using devices")  # fmt: skip
    for rank, address in enumerate(cards.addresses[: int(options["-g"])]):
        say(f"#  Rank {rank:2d} Group  0 Pid {os.getpid():6d} on {host:>10} device {rank:2d} "
            f"[{address.rpartition('.')[0]}] {node.nvml(f'gpu{rank}/name')}")  # fmt: skip
    say("#")


def _speak(node: Node, host: str, count: int, *, nvls: bool) -> None:
    say(f"{host}:{os.getpid()}:{os.getpid()} [0] NCCL INFO cudaDriverVersion {node.nvml('cuda_version')}")
    for rank in range(count):
        begin = f"{host}:{os.getpid()}:{os.getpid() + 1 + rank} [{rank}] NCCL INFO"
        if nvls:
            say(f"{begin} NVLS multicast support is available on dev {rank}")
            say(f"{begin} Connected NVLS tree")
        say(f"{begin} Channel 00/0 : {rank}[{rank}] -> {(rank + 1) % count}[{(rank + 1) % count}] via P2P/CUMEM")


def _table(size: int, last: int, factor: int, most: float, count: int) -> None:
    names, units = "   time   algbw   busbw #wrong  ", "   (us)  (GB/s)  (GB/s)         "
    say(f"#\n#{'out-of-place':>74}{'in-place':>35}          ")
    say(f"#       size         count      type   redop    root  {names}{names}")
    say(f"#        (B)    (elements)                            {units}{units}")
    ratio, found = 2 * (count - 1) / count if count > 1 else 1.0, []
    while 0 < size <= last:
        cells = ""
        for step in (1.0, 0.998):
            time = _START + (size + _HALF) * ratio / (most * step * 1e3)
            algbw = size / time / 1e3
            found.append(algbw * ratio)
            cells += f" {_digits(time)} {algbw:7.2f} {algbw * ratio:7.2f} {0:6d}   "
        say(f"{size:12d} {size // 4:13d}     float     sum      -1  {cells.rstrip()}")
        size *= factor
    say("# Out of bounds values : 0 OK")
    say(f"# Avg bus bandwidth    : {sum(found) / max(1, len(found)):g} ")
    say("#\n# Collective test concluded: all_reduce_perf")


def _digits(us: float) -> str:
    return f"{us:7.2f}" if us < 100 else f"{us:7.1f}" if us < 10_000 else f"{us:7.0f}"
