"""
``nvidia-smi`` of a lab node: ``-q -x`` as the lab rendered it, with what has been set since, and the options that set.

What is settable is read from the lab's NVML each time, so that both say the same. Source: nvidia-smi(1) of branch 580
for options, messages and exit statuses.
"""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Callable

from hwcheck.lab.actor import gpu
from hwcheck.lab.actor.place import Node, ToolError, say

_ERRORS = {
    "NVML_ERROR_DRIVER_NOT_LOADED": (9, (
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest "
        "NVIDIA driver is installed and running."
    )),
    "NVML_ERROR_LIB_RM_VERSION_MISMATCH": (18, "Failed to initialize NVML: Driver/library version mismatch"),
}  # fmt: skip
_ACTIONS = ("None", "Reset", "Reboot", "Drain P2P", "Drain and Reset")
_COMPUTE = ("Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process")
_FABRIC = ("N/A", "Not Started", "In Progress", "Completed")
_HEALTH = ("N/A", "Healthy", "Unhealthy", "Limited Capacity")
_YES = ("No", "Yes")
_ON = ("Disabled", "Enabled")
_CHOICES = {
    ("gpu", "persistence_mode"): ("persistence", _ON), ("mig_mode", "current_mig"): ("mig_mode", _ON),
    ("mig_mode", "pending_mig"): ("mig_pending", _ON), ("ecc_mode", "current_ecc"): ("ecc_mode", _ON),
    ("ecc_mode", "pending_ecc"): ("ecc_pending", _ON), ("gpu", "compute_mode"): ("compute_mode", _COMPUTE),
    ("gpu", "gpu_recovery_action"): ("recovery_action", _ACTIONS),
    ("remapped_rows", "remapped_row_pending"): ("remap_pending", _YES),
    ("ecc_errors", "channel_repair_pending"): ("repair_channel_pending", _YES),
    ("ecc_errors", "tpc_repair_pending"): ("repair_tpc_pending", _YES),
    ("fabric", "state"): ("fabric_state", _FABRIC), ("health", "summary"): ("fabric_summary", _HEALTH),
}  # fmt: skip
"""Tag below its parent → attribute of NVML, and the words of its numbers."""
_NUMBERS = {
    ("gpu", "gsp_firmware_version"): "gsp_firmware", ("volatile", "sram_correctable"): "ecc_volatile_sram_corrected",
    ("volatile", "sram_uncorrectable_parity"): "ecc_volatile_sram_parity",
    ("volatile", "sram_uncorrectable_secded"): "ecc_volatile_sram_secded",
    ("volatile", "dram_correctable"): "ecc_volatile_dram_corrected",
    ("volatile", "dram_uncorrectable"): "ecc_volatile_dram_uncorrected",
}  # fmt: skip
_CLOCKS = {("clocks", "graphics_clock"): "sm", ("clocks", "sm_clock"): "sm", ("clocks", "mem_clock"): "memory"}


def run(node: Node, _tool: str, words: list[str]) -> int:
    """Be ``nvidia-smi``."""
    status, text = _failure(node)
    if status:
        say(text)
        return status
    options, chosen = _options(node, words)
    if set(options) >= {"-q", "-x"} and set(options) <= {"-q", "-x", "-i"}:
        sys.stdout.write(document(node))
        return 0
    acts = [name for name in options if name in _ACTS]
    if not acts or any(name not in _ACTS and name != "-i" for name in options):
        raise ToolError("the lab's nvidia-smi knows -q -x, -pm, -pl, -lgc, -rgc, -lmc, -rmc, -r and -i only", 2)
    if os.geteuid():
        raise ToolError("Insufficient permissions: this needs root.", 4)
    with node.locked():
        for name in acts:
            _ACTS[name](node, chosen, options[name])
    return 0


def _failure(node: Node) -> tuple[int, str]:
    found = _ERRORS.get(node.nvml("faults/nvmlInit_v2"))
    if found is not None:
        return found
    for number in node.gpus():
        if node.nvml(f"gpu{number}/lost"):
            address = node.nvml(f"gpu{number}/pci_bus_id")
            return 15, (f"Unable to determine the device handle for GPU{number}: {address}: GPU is lost.  "
                        "Reboot the system to recover this GPU")  # fmt: skip
    return 0, ""


def _options(node: Node, words: list[str]) -> tuple[dict[str, str], list[int]]:
    options: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        name, sign, value = word.partition("=")
        name = _LONG.get(name, name)
        options[name] = value if sign else next(rest, "") if name in _WITH_VALUE else ""
    known = node.gpus()
    if "-i" not in options:
        return options, known
    names = {str(number): number for number in known}
    names |= {node.nvml(f"gpu{number}/{key}").lower(): number for number in known for key in ("uuid", "pci_bus_id")}
    names |= {node.nvml(f"gpu{number}/pci_bus_id").lower()[4:]: number for number in known}
    try:
        return options, [names[one.lower()] for one in options["-i"].split(",")]
    except KeyError as error:
        raise ToolError(f"No devices were found: {error.args[0]}", 6) from None


def document(node: Node) -> str:
    """Return the XML, with the settable values as NVML has them now."""
    rows: list[str] = []
    path: list[str] = []
    number = -1
    for row in node.live_text("smi.xml").splitlines():
        line = row.strip()
        if line.startswith("<gpu "):
            number += 1
            path.append("gpu")
        elif line == "</gpu>" or (line.startswith("</") and path and line == f"</{path[-1]}>"):
            path.pop()
        elif (
            line.startswith("<") and "</" not in line and not line.startswith(("<?", "<!")) and not line.endswith("/>")
        ):
            path.append(line[1:-1])
        elif line.startswith("<") and "</" in line and path:
            tag = line[1 : line.index(">")]
            value = _value(node, number, path[-1], tag)
            if value is not None:
                rows.append(f"{row[: row.index('<')]}<{tag}>{value}</{tag}>")
                continue
        rows.append(row)
    return "\n".join(rows) + "\n"


def _value(node: Node, number: int, parent: str, tag: str) -> str | None:
    """Return what a tag says now; None where it is as it was rendered."""
    if (parent, tag) == ("nvidia_smi_log", "driver_version"):
        return node.nvml("driver_version")
    here = f"gpu{number}"
    if (parent, tag) in _CHOICES:
        name, words = _CHOICES[parent, tag]
        text = node.nvml(f"{here}/{name}")
        return words[int(text)] if text else None
    if (parent, tag) in _NUMBERS:
        return node.nvml(f"{here}/{_NUMBERS[parent, tag]}") or None
    if (parent, tag) in _CLOCKS:
        return f"{_clock(node, here, _CLOCKS[parent, tag])} MHz"
    if (parent, tag) == ("applications_clocks", "graphics_clock"):
        return f"{node.nvml(f'{here}/clock_application')} MHz"
    if parent == "gpu_power_readings" and tag in ("current_power_limit", "requested_power_limit"):
        enforced = node.nvml(f"{here}/power_enforced") if tag == "current_power_limit" else ""
        return f"{int(enforced or node.nvml(f'{here}/power_limit')) / 1000:.2f} W"
    return None


def _clock(node: Node, here: str, kind: str) -> int:
    """Return a clock now; under load the highest that a lock allows (NVML knows throttling too)."""
    clock = int(node.nvml(f"{here}/clock_max_{kind}" if _is_busy(node, here) else f"{here}/clock_{kind}"))
    lock = [int(word) for word in node.nvml(f"{here}/locked_{kind}_clocks").split()]
    return min(max(clock, lock[0]), lock[-1]) if lock else clock


def _is_busy(node: Node, here: str) -> bool:
    """Tell whether a process has a context on the GPU: it then holds a lock on its file."""
    folder = f"{node.folder}/nvml/{here}/contexts"
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        with open(f"{folder}/{name}", encoding="ascii") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return True
    return False


# ---------------------------------------------------------------------------------------------------------- settings


def _persistence(node: Node, chosen: list[int], value: str) -> None:
    if value not in ("0", "1"):
        raise ToolError("Invalid value of -pm: 0 or 1", 2)
    for number in chosen:
        node.set_nvml(f"gpu{number}/persistence", value)
        word = "Enabled" if value == "1" else "Disabled"
        say(f"{word} persistence mode for GPU {node.nvml(f'gpu{number}/pci_bus_id')}.")
    say("All done.")


def _power(node: Node, chosen: list[int], value: str) -> None:
    try:
        wanted = int(float(value) * 1000)
    except ValueError:
        raise ToolError(f"Invalid value of -pl: {value}", 2) from None
    for number in chosen:
        here = f"gpu{number}"
        least, most = (int(node.nvml(f"{here}/power_{end}")) for end in ("min", "max"))
        address = node.nvml(f"{here}/pci_bus_id")
        if not least <= wanted <= most:
            raise ToolError(
                f"Provided power limit {wanted / 1000:.2f} W is not a valid power limit which should be between "
                f"{least / 1000:.2f} W and {most / 1000:.2f} W for GPU {address}", 2
            )  # fmt: skip
        was = int(node.nvml(f"{here}/power_limit"))
        node.set_nvml(f"{here}/power_limit", str(wanted))
        say(f"Power limit for GPU {address} was set to {wanted / 1000:.2f} W from {was / 1000:.2f} W.")
    say("All done.")


def _lock(kind: str) -> Callable[[Node, list[int], str], None]:
    def lock(node: Node, chosen: list[int], value: str) -> None:
        pair = value.split(",")
        if not all(part.strip().isdigit() for part in pair) or len(pair) > 2:
            raise ToolError(f"Invalid clocks: {value}", 2)
        least, most = int(pair[0]), int(pair[-1])
        for number in chosen:
            known = [int(word) for word in node.nvml(f"gpu{number}/supported_{kind}_clocks").split()]
            if least > most or least < known[-1] or most > known[0]:
                raise ToolError(f"The requested clocks {value} are not supported by GPU {number}.", 2)
            node.set_nvml(f"gpu{number}/locked_{kind}_clocks", f"{least} {most}")
            say(f"{'GPU' if kind == 'sm' else 'Memory'} clocks set to \"({kind}ClkMin {least}, {kind}ClkMax {most})\" "
                f"for GPU {node.nvml(f'gpu{number}/pci_bus_id')}")  # fmt: skip
        say("All done.")

    return lock


def _unlock(kind: str) -> Callable[[Node, list[int], str], None]:
    def unlock(node: Node, chosen: list[int], _value: str) -> None:
        for number in chosen:
            node.set_nvml(f"gpu{number}/locked_{kind}_clocks", None)
        say("All done.")

    return unlock


def _reset(node: Node, chosen: list[int], _value: str) -> None:
    gpu.reset(node, chosen)


_ACTS: dict[str, Callable[[Node, list[int], str], None]] = {
    "-pm": _persistence, "-pl": _power, "-lgc": _lock("sm"), "-rgc": _unlock("sm"), "-lmc": _lock("memory"),
    "-rmc": _unlock("memory"), "-r": _reset,
}  # fmt: skip
_LONG = {
    "--persistence-mode": "-pm", "--power-limit": "-pl", "--lock-gpu-clocks": "-lgc", "--reset-gpu-clocks": "-rgc",
    "--lock-memory-clocks": "-lmc", "--reset-memory-clocks": "-rmc", "--gpu-reset": "-r", "--id": "-i", "--query": "-q",
    "--xml-format": "-x",
}  # fmt: skip
_WITH_VALUE = ("-pm", "-pl", "-lgc", "-lmc", "-i")
