"""
``dcgmi diag -r N -j`` of a lab node: the tests of a level, judged by what NVML and the GPUs themselves show.

Source: a recorded ``dcgmi diag -r 3 -j`` of DCGM 3 for names, order and shape; the levels by DCGM's user guide.
"""

from __future__ import annotations

import json
from typing import Any

from hwcheck.lab.actor.cards import Cards
from hwcheck.lab.actor.place import Node, ToolError, say

_DEPLOYMENT = (
    "Denylist", "NVML Library", "CUDA Main Library", "Permissions and OS Blocks", "Persistence Mode",
    "Environment Variables", "Page Retirement/Row Remap", "Graphics Processes", "Inforom",
)  # fmt: skip
_PCIE_LEAST = 0.75
"""Share of a link of 16 lanes and generation 5 below which the lab's DCGM fails PCIe: 40 GB/s."""
_FULL = 53.0


def run(node: Node, _tool: str, words: list[str]) -> int:
    """Be ``dcgmi``."""
    if words[:1] != ["diag"] or "-r" not in words or not {"-j", "--json"} & set(words):
        raise ToolError("Error: the lab's dcgmi knows diag -r LEVEL -j only", 1)
    level = int(words[words.index("-r") + 1])
    if not 1 <= level <= 3:
        raise ToolError("Error: bad level, must be 1 to 3", 1)
    if node.nvml("faults/nvmlInit_v2"):
        raise ToolError("Error: unable to establish a connection to the specified host: localhost", 1)
    categories = [_category("Deployment", [_deployment(name, node) for name in _DEPLOYMENT])]
    if level > 1:
        categories += _tests(node, level)
    say(json.dumps({"DCGM GPU Diagnostic": {"test_categories": categories}}, indent=1))
    return 0 if all(_passed(test) for category in categories for test in category["tests"]) else 226


def _category(name: str, tests: list[dict[str, Any]]) -> dict[str, Any]:
    return {"category": name, "tests": tests}


def _passed(test: dict[str, Any]) -> bool:
    return all(result["status"] != "Fail" for result in test["results"])


def _test(name: str, bad: dict[int, str], count: int) -> dict[str, Any]:
    """Make a test with a result for each GPU; ``bad`` says of a GPU what is wrong."""
    results = [
        {"gpu_ids": str(gpu), "status": "Fail", "warnings": f"GPU {gpu} {bad[gpu]}"}
        if gpu in bad else {"gpu_ids": str(gpu), "status": "Pass"}
        for gpu in range(count)
    ]  # fmt: skip
    return {"name": name, "results": results}


def _deployment(name: str, node: Node) -> dict[str, Any]:
    bad = ""
    for gpu in node.gpus():
        if name == "Persistence Mode" and node.nvml(f"gpu{gpu}/persistence") == "0":
            bad = (
                f"Persistence mode for GPU {gpu} is currently disabled. The DCGM diagnostic requires it to be enabled."
            )
        if name.startswith("Page") and "1" in (node.nvml(f"gpu{gpu}/remap_{word}") for word in ("pending", "failure")):
            bad = f"GPU {gpu} had uncorrectable memory errors and row remapping is pending or failed."
    return {"name": name, "results": [{"status": "Fail", "warnings": bad} if bad else {"status": "Pass"}]}


def _tests(node: Node, level: int) -> list[dict[str, Any]]:
    try:
        cards = Cards(node)
    except ToolError as error:
        return [_category("Integration", [{"name": "PCIe", "results": [{"status": "Fail", "warnings": str(error)}]}])]
    count = len(cards.addresses)
    rates = [cards.to_device(gpu) for gpu in range(count)]
    least = _PCIE_LEAST * _FULL
    slow = {gpu: f"bandwidth {rate:.2f} GB/s host to device is below {least:.2f} GB/s" for gpu, rate in enumerate(rates)
            if rate < least}  # fmt: skip
    errors = {gpu: "memory errors were found" for gpu in range(count)
              if int(node.nvml(f"gpu{gpu}/ecc_volatile_dram_uncorrected") or 0)}  # fmt: skip
    found = [_category("Integration", [_test("PCIe", slow, count)]),
             _category("Hardware", [_test("GPU Memory", errors, count)])]  # fmt: skip
    if level > 2:
        inside = [cards.inside(gpu) for gpu in range(count)]
        most = max(inside, default=0.0)
        low = {gpu: f"bandwidth {rate:.2f} GB/s is below its peers' {most:.2f} GB/s" for gpu, rate in enumerate(inside)
               if rate < 0.9 * most}  # fmt: skip
        found.append(_category("Stress", [_test("Memory Bandwidth", low, count)]))
    return found
