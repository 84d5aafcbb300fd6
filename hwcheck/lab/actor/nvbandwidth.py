"""
``nvbandwidth`` of a lab node: copies between host and GPUs, and between GPUs, as text of version 0.8.

Source: NVIDIA/nvbandwidth, README.md and its output; ``-t`` takes names of tests, ``-l`` lists them.
"""

from __future__ import annotations

from collections.abc import Callable

from hwcheck.lab.actor.cards import Cards
from hwcheck.lab.actor.place import Node, ToolError, say

_TESTS = (
    "host_to_device_memcpy_ce", "device_to_host_memcpy_ce", "device_to_device_memcpy_read_ce",
    "device_to_device_memcpy_write_ce", "device_local_copy",
)  # fmt: skip
_HEADS = {
    "host_to_device_memcpy_ce": "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)",
    "device_to_host_memcpy_ce": "memcpy CE CPU(row) <- GPU(column) bandwidth (GB/s)",
    "device_to_device_memcpy_read_ce": "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)",
    "device_to_device_memcpy_write_ce": "memcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)",
    "device_local_copy": "memcpy local GPU(column) bandwidth (GB/s)",
}


def run(node: Node, _tool: str, words: list[str]) -> int:
    """Be ``nvbandwidth``."""
    if words in (["-l"], ["--list"]):
        for number, name in enumerate(_TESTS):
            say(f"{number}, {name}:")
        return 0
    chosen = _chosen(words)
    version = int(node.nvml("cuda_version") or 0)
    say("nvbandwidth Version: v0.8\nBuilt from Git version: v0.8\n")
    say(f"CUDA Runtime Version: {version}\nCUDA Driver Version: {version}")
    say(f"Driver Version: {node.nvml('driver_version')}\n")
    cards = Cards(node)
    for number, address in enumerate(cards.addresses):
        say(f"Device {number}: {node.nvml(f'gpu{number}/name')} (0000{address.rpartition('.')[0]})")
    for name in chosen:
        _print(name, cards)
    say("NOTE: The reported results may not reflect the full capabilities of the platform.\n"
        "Performance can vary with software drivers, hardware clocks, and system topology.\n")  # fmt: skip
    return 0


def _chosen(words: list[str]) -> list[str]:
    if not words:
        return list(_TESTS)
    if words[0] not in ("-t", "--testcase"):
        raise ToolError(f"ERROR: unrecognised option '{words[0]}': the lab's nvbandwidth knows -t and -l")
    unknown = [name for name in words[1:] if name not in _TESTS]
    if unknown:
        raise ToolError(f"ERROR: Testcase {unknown[0]} not found!")
    return words[1:]


def _print(name: str, cards: Cards) -> None:
    count = len(cards.addresses)
    say(f"\nRunning {name}.")
    if name.startswith("device_to_device") and count < 2:
        say(f"Waived: \n{name}")
        return
    rows = _rows(name, cards, count)
    say(_HEADS[name])
    say(" " + "".join(f"{column:10d}" for column in range(count)))
    for number, row in enumerate(rows):
        say(f"{number:2d}" + "".join(f"{'N/A' if cell is None else f'{cell:.2f}':>10}" for cell in row))
    say(f"\nSUM {name} {sum(cell for row in rows for cell in row if cell is not None):.2f}")


def _rows(name: str, cards: Cards, count: int) -> list[list[float | None]]:
    single: dict[str, Callable[[int], float]] = {
        "host_to_device_memcpy_ce": cards.to_device, "device_to_host_memcpy_ce": cards.to_host,
        "device_local_copy": cards.inside,
    }  # fmt: skip
    if name in single:
        return [[single[name](card) for card in range(count)]]
    return [[None if one == other else cards.to_peer(one, other) for other in range(count)] for one in range(count)]
