"""
Kinds of change of RoCE settings that are no plain attribute: tables of DCB, rdma_cm's byte, the forced traffic class.

Source: dcb-pfc(8) and dcb-app(8) of iproute2, JSON as dcb/dcb_pfc.c and dcb/dcb_app.c print it; the kernel's
drivers/infiniband/core/cma_configfs.c: a folder made in configfs shows a value that the device had before, and keeps
when the folder is gone; DOCA-OFED documentation: ``Global tclass=N``, -1 takes it away.
"""

from __future__ import annotations

import errno
import json
import os
import re
from typing import Any

from .change import Kind, kind
from .place import Json, Place, WriteError

PRIORITIES = 8
NONE, UNSET = "none", "unset"
PFC, DSCP = "pfc", "dscp"
_SECONDS = 20.0


@kind("dcb")
class Dcb(Kind):
    """A table of an interface (``target``): ``key`` pfc, state ``3,4``; ``key`` dscp, state ``26:3 48:-``."""

    def look(self, place: Place, change: Json) -> Any:
        """Ask dcb."""
        if change["key"] == PFC:
            return read_pfc(place, change["target"])
        return read_dscp(place, change["target"], dscps(change["after"]))

    def write(self, place: Place, change: Json, state: Any) -> None:
        """Write the table by dcb; what was not in it before is taken out again."""
        device = change["target"]
        if change["key"] == PFC:
            place.run(pfc_words("dcb", device, state), _SECONDS)
            return
        keep = [pair for pair in state.split() if not pair.endswith(":-")]
        gone = {pair.partition(":")[0] for pair in state.split() if pair.endswith(":-")}
        now = read_dscp(place, device, sorted(map(int, gone))).split() if gone else []
        drop = [pair for pair in now if not pair.endswith(":-")]
        if keep:
            place.run(dscp_words("dcb", device, " ".join(keep)), _SECONDS)
        if drop:
            place.run(["dcb", "app", "del", "dev", device, "dscp-prio", *drop], _SECONDS)


def pfc_words(tool: str, device: str, state: str) -> list[str]:
    """Return the command that turns PFC on for priorities, and off for all others."""
    on = [] if state == NONE else [f"{priority}:on" for priority in state.split(",")]
    return [tool, "pfc", "set", "dev", device, "prio-pfc", "all:off", *on]


def dscp_words(tool: str, device: str, state: str) -> list[str]:
    """Return the command that maps DSCPs to priorities; replace, since add would add a second priority."""
    return [tool, "app", "replace", "dev", device, "dscp-prio", *state.split()]


def read_pfc(place: Place, device: str) -> str:
    """Return the priorities with PFC: ``3,4``, or none."""
    flags = _ask(place, ["pfc", "show", "dev", device]).get("prio_pfc")
    if not isinstance(flags, list) or len(flags) != PRIORITIES:
        raise WriteError(f"dcb does not tell the priorities with PFC of {device}")
    return ",".join(str(priority) for priority, flag in enumerate(flags) if flag) or NONE


def read_dscp(place: Place, device: str, wanted: list[int]) -> str:
    """Return the priorities of DSCPs: ``26:3 48:-``; - where none is set, and all of several."""
    table = _ask(place, ["app", "show", "dev", device]).get("dscp_prio") or []
    found: dict[int, list[int]] = {}
    for entry in table:
        found.setdefault(int(entry[0]), []).append(int(entry[1]))
    return " ".join(f"{dscp}:{'+'.join(map(str, sorted(found.get(dscp, [])))) or '-'}" for dscp in wanted)


def has_dscp(place: Place, device: str) -> bool:
    """Tell whether any DSCP is mapped: then mlx5 trusts DSCP (en_dcbnl.c)."""
    return bool(_ask(place, ["app", "show", "dev", device]).get("dscp_prio"))


def dscps(state: str) -> list[int]:
    """Return the DSCPs of a state."""
    return [int(pair.partition(":")[0]) for pair in state.split()]


def _ask(place: Place, words: list[str]) -> Json:
    said = place.run(["dcb", "-j", "-N", *words], _SECONDS)
    try:
        found = json.loads(said or "{}")
    except ValueError:
        raise WriteError(f"dcb {' '.join(words)} does not answer in JSON") from None
    return found if isinstance(found, dict) else {}


@kind("rdma_cm")
class RdmaCm(Kind):
    """
    The traffic class byte of connections by rdma_cm; ``target`` is the file in configfs.

    The state is its value, None where nobody has made the device's folder. Then the value is there and not shown: what
    it was is kept in the change (``hidden``) when the folder is made, and written back before it is taken away.
    """

    def look(self, place: Place, change: Json) -> Any:
        """Read the file."""
        text = place.text(change["target"])
        return None if text is None else text.strip()

    def write(self, place: Place, change: Json, state: Any) -> None:
        """Write the byte, in a folder made for it where there is none."""
        target = change["target"]
        folder = target.partition("/ports/")[0]
        if state is None:
            place.set_value(target, change.get("hidden", "0"))
            os.rmdir(place.real(folder))
            return
        if not place.exists(folder):
            os.mkdir(place.real(folder))
            change["hidden"] = (place.text(target) or "0").strip()
        place.set_value(target, state)


@kind("traffic_class")
class TrafficClass(Kind):
    """The traffic class byte that the driver of DOCA-OFED forces on a port; ``target`` is its file."""

    def look(self, place: Place, change: Json) -> Any:
        """Return the byte, or unset."""
        return read_class(place, change["target"])

    def write(self, place: Place, change: Json, state: Any) -> None:
        """Write it; -1 takes it away, 0 where the driver does not know that."""
        if state != UNSET:
            place.set_value(change["target"], state)
            return
        try:
            place.set_value(change["target"], "-1")
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            place.set_value(change["target"], "0")


def read_class(place: Place, path: str) -> str:
    """Return the byte that a traffic_class file forces on all traffic, or unset."""
    found = re.search(r"Global tclass=(\d+)", place.text(path) or "")
    return found[1] if found else UNSET
