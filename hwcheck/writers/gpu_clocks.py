"""
Locked clocks of a GPU: what was asked for, since NVML has no getter, and whether the GPU still behaves so.

``/var/lib/hwcheck/clocks.json``: GPU's UUID → key → ``{"value", "boot_id", "driver", "at"}``. An entry counts in the
boot and with the driver it was made in. What our unit set since the boot it says itself, by a file in :data:`MARKS`.
Either counts only while nothing speaks against it: a lock is gone with persistence mode (the driver forgets it when the
last client leaves) and where the clock is outside the lock without a reason. What was set just now is believed: clocks
take a moment to follow.

A lock that somebody else set is not told by NVML. Where an idle GPU runs at half its highest clock or more there is
one; otherwise the state is ``unknown``, and a reset is written.

Source: NVML API reference (SetGpuLockedClocks: not kept over a driver reload or reboot); knowledge of operators: an
idle Hopper is at 345 MHz, an idle Blackwell at 120.
"""

from __future__ import annotations

import json
import re
import time

from .place import Json, Place

FILE = "/var/lib/hwcheck/clocks.json"
MARKS = "/run/hwcheck/clocks"
RESET, UNKNOWN, FOREIGN = "reset", "unknown", "locked by somebody else"
_IDLE = 0x1
_HELD_DOWN = 0x4 | 0x8 | 0x20 | 0x40 | 0x80
"""Event reasons that win over a lock: power cap, slowdown, heat, power brake."""
_FOLLOWS = 10.0
"""Seconds that clocks may take to follow."""
_CLOSE = 0.98
"""An H200 locked to 3201 MHz may read 3199."""
_PAIR = re.compile(r"(\d{2,5})\s*,\s*(\d{2,5})")


def pair(value: str) -> tuple[int, int] | None:
    """Return lowest and highest clock of a value in MHz; None when it is no pair."""
    found = _PAIR.fullmatch(value.strip())
    return (int(found[1]), int(found[2])) if found else None


def spelled(value: str) -> str:
    """Spell a value as the state file has it."""
    clocks = pair(value)
    return value.strip() if clocks is None else f"{clocks[0]},{clocks[1]}"


def refusal(state: Json, key: str, value: str) -> str:
    """Say why clocks are not locked so; "" when they may be."""
    clocks = pair(value)
    if clocks is None:
        return f"{key} are lowest and highest MHz with a comma, or reset; not {value!r}"
    supported: list[int] = state["memory_clocks" if key == "memory_clocks" else "graphics_clocks"]
    if not supported:
        return f"this GPU tells no supported clocks, so {key} are not locked"
    for clock in clocks:
        if clock not in supported:
            nearest = min(supported, key=lambda one: (abs(one - clock), -one))
            return f"{clock} MHz is none of the clocks that this GPU supports; the nearest is {nearest}"
    if clocks[0] > clocks[1]:
        return f"the lowest clock, {clocks[0]}, is above the highest, {clocks[1]}"
    if key == "memory_clocks" and clocks[1] < supported[0]:
        return f"the memory clock is never lowered: its highest must be {supported[0]} MHz"
    return ""


def locked(place: Place, state: Json, key: str) -> str:
    """Return what clocks are locked to: a pair, reset, unknown, or locked by somebody else."""
    entry = _load(place).get(state["uuid"], {}).get(key) or {}
    said = str(entry.get("value", UNKNOWN))
    if entry.get("boot_id") != place.boot_id() or entry.get("driver") != state["driver"]:
        said = (place.text(mark_of(state["uuid"], key)) or UNKNOWN).strip()
        entry = {}
    is_fresh = 0 <= time.time() - float(entry.get("at", 0)) < _FOLLOWS
    clocks = pair(said)
    if clocks is not None:
        return said if state.get("persistence") and (is_fresh or _holds(state, key, clocks)) else UNKNOWN
    return FOREIGN if key == "graphics_clocks" and not is_fresh and _looks_locked(state) else said


def record(place: Place, state: Json, key: str, value: str) -> None:
    """Write down what was asked for; unknown takes the entry away."""
    if place.exists(mark_of(state["uuid"], key)):
        place.remove(mark_of(state["uuid"], key))
    known = _load(place)
    mine = known.setdefault(state["uuid"], {})
    mine[key] = {"value": value, "boot_id": place.boot_id(), "driver": state["driver"], "at": int(time.time())}
    if value in (UNKNOWN, FOREIGN):
        del mine[key]
    _save(place, {uuid: keys for uuid, keys in known.items() if keys})


def forget(place: Place) -> None:
    """Forget all locks: the driver was reloaded or the GPUs were reset."""
    _save(place, {})


def mark_of(uuid: str, key: str) -> str:
    """Return the file by which our unit says what it set."""
    return f"{MARKS}/{uuid}.{key}"


def _save(place: Place, known: dict[str, Json]) -> None:
    if known:
        place.replace(FILE, json.dumps(known, indent=1).encode(), 0o600, *place.owner())
    elif place.exists(FILE):
        place.remove(FILE)


def _holds(state: Json, key: str, clocks: tuple[int, int]) -> bool:
    now = state.get("clock" if key == "graphics_clocks" else "memory_clock")
    if now is None:
        return True
    is_held_down = bool(state.get("reasons", 0) & _HELD_DOWN)
    return now <= clocks[1] and (now >= clocks[0] * _CLOSE or is_held_down)


def _looks_locked(state: Json) -> bool:
    now, highest = state.get("clock"), state.get("clock_max")
    if now is None or not highest or not state.get("persistence"):
        return False
    return bool(state.get("reasons", 0) & _IDLE) and now * 2 >= highest


def _load(place: Place) -> dict[str, Json]:
    try:
        found = json.loads(place.text(FILE) or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) and all(isinstance(one, dict) for one in found.values()) else {}
