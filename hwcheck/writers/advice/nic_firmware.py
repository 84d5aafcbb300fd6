"""
Firmware of RDMA adapters: running, flashed, wanted for the board.

Source: /sys/class/infiniband/DEVICE/fw_ver is what runs, ``board_id`` the PSID that decides which image fits;
``mstflint -d ADDRESS q`` shows the flashed version, and the running one beside it where a reset is outstanding.
"""

from __future__ import annotations

import os
import re

from ..place import Json, Place, WriteError

_FOLDER = "/sys/class/infiniband"
_TOOLS = ("mstflint", "flint")


def advise(place: Place, versions: dict[str, str]) -> Json:
    """Compare versions of each adapter, and say what is to be done, one adapter of a node at a time."""
    unknown: list[str] = []
    found: Json = {}
    reset: list[str] = []
    burn: list[str] = []
    for path in place.expand(_FOLDER + "/*"):
        name = path.rpartition("/")[2]
        psid = (place.text(path + "/board_id") or "").strip()
        running = (place.text(path + "/fw_ver") or "").strip()
        address = os.path.basename(os.path.realpath(place.real(path) + "/device"))
        flashed = _flashed(place, name, address, unknown)
        wanted = versions.get(psid)
        found[name] = {
            "address": address, "psid": psid or None, "running": running or None, "flashed": flashed, "wanted": wanted,
        }  # fmt: skip
        if not psid or not running:
            unknown.append(f"{name}: the driver does not say its board or firmware")
        elif wanted is None and versions:
            unknown.append(f"{name}: no version is named for board {psid}")
        if flashed and running and flashed != running:
            reset.append(f"{name} ({address}) runs {running} and has {flashed} flashed")
        if wanted and (flashed or running) != wanted:
            burn.append(f"{name} ({address}), board {psid}: {flashed or running} to {wanted}")
    if not found:
        unknown.append("this node has no RDMA device, or its driver is not loaded")
    advice = _steps(reset, burn)
    differs = True if advice else None if unknown else False
    return {"found": found, "unknown": unknown, "differs": differs, "advice": advice}


def _flashed(place: Place, name: str, address: str, unknown: list[str]) -> str | None:
    why = ""
    for tool in _TOOLS:
        try:
            said = place.run([tool, "-d", address, "q"], 20.0)
        except WriteError as error:
            why = str(error)
            if "not installed" in why:
                why = f"neither {' nor '.join(_TOOLS)} is installed"
                continue
            break
        matched = re.search(r"^FW Version:\s*(\S+)", said, re.MULTILINE)
        if matched:
            return matched[1]
        why = f"{tool} names no version"
        break
    unknown.append(f"{name}: what is flashed, {why}")
    return None


def _steps(reset: list[str], burn: list[str]) -> list[str]:
    advice = [
        f"{one}: drain, ask mstfwreset -d ADDRESS q which reset it takes, and do that one or a cold start"
        for one in reset
    ]
    if burn:
        steps = [
            "drain the node, and begin with one node for each board",
            "keep the image and the settings that are there: mstflint -d ADDRESS ri FILE, mstconfig -d ADDRESS q",
            "burn the image for that very board (never --allow_psid_change), one adapter first, from the site's own "
            "mirror: " + "; ".join(burn),
            "ask mstfwreset -d ADDRESS q which reset it takes; some take a cold start",
            "check the link, its error counters and a measurement between two nodes before the next adapter",
        ]
        advice += [f"firmware, step {number} of {len(steps)}: {step}" for number, step in enumerate(steps, 1)]
    return advice
