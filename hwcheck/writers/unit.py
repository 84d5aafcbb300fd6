"""
Units of systemd: whether one runs and whether it starts at boot, by systemctl(1).

=========  ==================================================================
running    active now, and started at boot (one that nothing enables is static, and left so)
enabled    started at boot; what runs now stays
stopped    not active now; what the next boot does stays
disabled   not active, and not started at boot
masked     not active, and cannot be started
=========  ==================================================================

Key: ``chrony.service``. Facets are systemd's own words (ActiveState, UnitFileState). Undone to the state of before; a
unit that had failed is stopped then. Refused: no such unit, one that somebody has masked and that is to run, and
anything for an image, where systemctl --root belongs to the building of the image.
"""

from __future__ import annotations

import re
from typing import Any

from .change import ACT, Kind, kind
from .mechanism import Facets, Mechanism, Proposal, mechanism, unsupported
from .place import Json, Place, WriteError
from .step import Step

VALUES = ("running", "enabled", "stopped", "disabled", "masked")
_UNIT = re.compile(r"[A-Za-z0-9:_.@\\-]{1,200}\.(?:service|timer|socket|target|path)")
_ON = ("enabled", "enabled-runtime", "static", "alias", "indirect", "generated", "transient")
_OFF = ("disabled", "masked", "masked-runtime")
_WANTED_BY = "/{}/systemd/system/*.{}/{}"
_LONG = 300.0


class UnitFacets(Facets):
    """Facets of a unit: one word of ours stands for two of systemd's."""

    @property
    def is_right(self) -> bool:
        """Whether it is as wanted, now and at boot; an image has no now."""
        return _is_right(self.wanted, self.running, self.next_boot)


@kind("unit")
class Unit(Kind):
    """A unit's two states, ``{"active", "enabled"}``."""

    def look(self, place: Place, change: Json) -> Any:
        """Return both."""
        active, enabled, _ = states(place, change["target"])
        return {"active": _settled(active), "enabled": enabled}

    def write(self, place: Place, change: Json, state: Any) -> None:
        """Bring them about: what may start first, then what runs."""
        unit = change["target"]
        now = self.look(place, change)
        if now["active"] == "active" and state["active"] != "active":
            place.run(["systemctl", "stop", unit], _LONG)
        if now["enabled"] != state["enabled"]:
            if now["enabled"] == "masked":
                place.run(["systemctl", "unmask", unit])
            verbs = {"enabled": "enable", "disabled": "disable", "masked": "mask"}
            if state["enabled"] in verbs:
                place.run(["systemctl", verbs[state["enabled"]], unit])
        if now["active"] != "active" and state["active"] == "active":
            place.run(["systemctl", "start", unit], _LONG)


@mechanism("unit")
class Units(Mechanism):
    """Units that run, or do not."""

    def facets(self, place: Place, step: Step) -> Facets:
        """Read a unit's states."""
        wanted = step.value
        if not _UNIT.fullmatch(step.key):
            return unsupported(wanted, f"{step.key!r} is no unit")
        if wanted not in VALUES:
            return unsupported(wanted, f"a unit can be {', '.join(VALUES)}; not {wanted!r}")
        if place.is_image:
            following = "enabled" if _is_wanted(place, step.key) else "disabled"
            why = "" if _is_right(wanted, None, following) else "units of an image are set when it is built"
            return UnitFacets(wanted, None, following, None, why and f"{why}: systemctl --root=IMAGE")
        active, enabled, loaded = states(place, step.key)
        if loaded == "not-found" and wanted in ("running", "enabled", "stopped"):
            return unsupported(wanted, f"there is no unit {step.key} here")
        if loaded == "not-found":
            return UnitFacets(wanted, "inactive", "masked")
        refused = ""
        if loaded == "masked" and wanted in ("running", "enabled"):
            refused = f"{step.key} is masked: whoever did that must unmask it"
        return UnitFacets(wanted, active, enabled, None, refused)

    def propose(self, place: Place, steps: list[Step]) -> Proposal:
        """Propose both states of each unit."""
        changes: list[Json] = []
        for step in steps:
            active, enabled, _ = states(place, step.key)
            before = {"active": _settled(active), "enabled": enabled}
            after = _after(step.value, before)
            if after != before:
                changes.append({
                    "kind": "unit", "target": step.key, "before": before, "after": after, "phase": ACT,
                    "steps": [step.number],
                })  # fmt: skip
        return Proposal(changes, [])


def states(place: Place, unit: str) -> tuple[str, str, str]:
    """
    Return a unit's ActiveState, UnitFileState and LoadState.

    Raises:
        WriteError: systemd does not answer.
    """
    said = place.run(["systemctl", "show", "-p", "ActiveState,UnitFileState,LoadState", unit], 20.0)
    pairs = dict(line.split("=", 1) for line in said.splitlines() if "=" in line)
    if "ActiveState" not in pairs:
        raise WriteError(f"systemctl says nothing of {unit}")
    loaded = pairs.get("LoadState", "")
    return pairs["ActiveState"], pairs.get("UnitFileState") or ("masked" if loaded == "masked" else "static"), loaded


def _settled(active: str) -> str:
    return "active" if active in ("active", "activating", "reloading", "refreshing") else "inactive"


def _is_right(wanted: str, running: str | None, following: str | None) -> bool:
    on, off = following in _ON, following in _OFF
    now = None if running is None else _settled(running) == "active"
    return {
        "running": now is not False and on,
        "enabled": on,
        "stopped": not now,
        "disabled": not now and off,
        "masked": not now and following in ("masked", "masked-runtime"),
    }[wanted]


def _after(wanted: str, before: Json) -> Json:
    enabled = before["enabled"]
    if wanted in ("running", "enabled"):
        enabled = enabled if enabled in _ON else "enabled"
    elif wanted == "disabled":
        enabled = "disabled" if enabled in ("enabled", "enabled-runtime") else enabled
    elif wanted == "masked":
        enabled = "masked"
    active = {"running": "active", "enabled": before["active"]}.get(wanted, "inactive")
    return {"active": active, "enabled": enabled}


def _is_wanted(place: Place, unit: str) -> bool:
    return any(
        place.expand(_WANTED_BY.format(root, kind, unit))
        for root in ("etc", "usr/lib", "lib")
        for kind in ("wants", "requires")
    )
