"""
How ``qos`` sorts and protects: trust, PFC, DSCP map, ECN; each says what runs, what changes, and what does it again.

Which driver is loaded shows in the files that are there, never in a package's name: DOCA-OFED and MLNX_OFED have
``qos/trust``, ``ecn/`` and ``tc/``; the in-box driver has ``dcb``, configfs and, where the firmware allows it,
``cc_params`` in debugfs (drivers/infiniband/hw/mlx5/cong.c).
"""

from __future__ import annotations

import re

from . import own_unit, qos_kinds
from .change import VOLATILE, value_change
from .place import Json, Place, WriteError
from .qos_kinds import DSCP, NONE, PFC, PRIORITIES
from .qos_port import Port


class Setting:
    """One key. Where the node does not have it, all but :meth:`wanted` raise WriteError with the reason."""

    of_device = False
    """Whether it belongs to the RDMA device and not to the interface."""

    def wanted(self, value: str) -> str:
        """Return a value in the key's own form; raises WriteError for what is none."""
        raise NotImplementedError

    def running(self, place: Place, port: Port, wanted: str) -> str | None:
        """Return what runs, in the same form; the wanted value itself where that is part of it."""
        raise NotImplementedError

    def changes(self, place: Place, port: Port, wanted: str, step: int) -> list[Json]:
        """Propose the running value."""
        raise NotImplementedError

    def line(self, place: Place, port: Port, wanted: str) -> str:
        """Return the line of a unit."""
        raise NotImplementedError


def number(value: str, most: int, what: str) -> str:
    """Return a whole number; raises WriteError for what is none, or above the most."""
    if not re.fullmatch(r"\d{1,3}", value) or int(value) > most:
        raise WriteError(f"{what} is a number of 0 to {most}, not {value!r}")
    return str(int(value))


def _priorities(value: str) -> str:
    words = value.replace(",", " ").split()
    if words == [NONE]:
        return NONE
    if not words or not all(word.isascii() and word.isdigit() and int(word) < PRIORITIES for word in words):
        raise WriteError(f"priorities are numbers of 0 to 7 with commas, or none; not {value!r}")
    return ",".join(map(str, sorted({int(word) for word in words})))


def echo(value: str, path: str) -> str:
    """Return the line of a unit that writes a file."""
    return own_unit.shell_line(f"echo {value} > {path}")


class Trust(Setting):
    """Whether the interface takes the priority from the DSCP or from the VLAN tag."""

    def wanted(self, value: str) -> str:
        """Return dscp or pcp."""
        if value not in ("dscp", "pcp"):
            raise WriteError(f"trust is dscp or pcp, not {value!r}")
        return value

    def running(self, place: Place, port: Port, wanted: str) -> str | None:
        """Read the file; without it, the port trusts DSCP when a DSCP is mapped."""
        text = place.text(f"{port.net}/qos/trust")
        if text is not None:
            return text.strip()
        found = "dscp" if qos_kinds.has_dscp(place, port.netdev) else "pcp"
        if found != wanted:
            raise WriteError("the in-box driver has no qos/trust: it trusts DSCP as long as one is mapped (key dscp)")
        return found

    def changes(self, place: Place, port: Port, wanted: str, step: int) -> list[Json]:
        """Write the file."""
        change = value_change(place, f"{port.net}/qos/trust", "text", wanted, [step])
        return [change] if change is not None and place.exists(f"{port.net}/qos/trust") else []

    def line(self, place: Place, port: Port, wanted: str) -> str:
        """Write the file."""
        del place
        return echo(wanted, f"{port.net}/qos/trust")


class Pfc(Setting):
    """The priorities with priority flow control; all others are without."""

    def wanted(self, value: str) -> str:
        """Return ``3,4`` or none."""
        return _priorities(value)

    def running(self, place: Place, port: Port, wanted: str) -> str | None:
        """Ask dcb."""
        del wanted
        return qos_kinds.read_pfc(place, port.netdev)

    def changes(self, place: Place, port: Port, wanted: str, step: int) -> list[Json]:
        """Write the table."""
        return [_dcb(port, PFC, qos_kinds.read_pfc(place, port.netdev), wanted, step)]

    def line(self, place: Place, port: Port, wanted: str) -> str:
        """Run dcb."""
        return own_unit.exec_line(qos_kinds.pfc_words(_tool(place), port.netdev, wanted))


class Dscp(Setting):
    """The priority of some DSCPs; others are left alone."""

    def wanted(self, value: str) -> str:
        """Return ``26:3 48:6``."""
        pairs = [pair.partition(":")[::2] for pair in value.replace(",", " ").split()]
        if not pairs:
            raise WriteError("dscp is pairs of DSCP and priority (26:3 48:6)")
        table = {int(number(dscp, 63, "a DSCP")): number(priority, 7, "a priority") for dscp, priority in pairs}
        return " ".join(f"{dscp}:{table[dscp]}" for dscp in sorted(table))

    def running(self, place: Place, port: Port, wanted: str) -> str | None:
        """Ask dcb for these DSCPs."""
        return qos_kinds.read_dscp(place, port.netdev, qos_kinds.dscps(wanted))

    def changes(self, place: Place, port: Port, wanted: str, step: int) -> list[Json]:
        """Write the table; where trust becomes dscp in the same run, the driver fills it with DSCP / 8 first."""
        before = self.running(place, port, wanted)
        filled = " ".join(f"{dscp}:{dscp >> 3}" for dscp in qos_kinds.dscps(wanted))
        return [{**_dcb(port, DSCP, str(before), wanted, step), "earlier": [filled]}]

    def line(self, place: Place, port: Port, wanted: str) -> str:
        """Run dcb."""
        return own_unit.exec_line(qos_kinds.dscp_words(_tool(place), port.netdev, wanted))


class Ecn(Setting):
    """The priorities on which one end of congestion control is on: these at least; with none it is off on all."""

    def __init__(self, end: str) -> None:
        self._end = end

    def wanted(self, value: str) -> str:
        """Return ``3,4`` or none."""
        return _priorities(value)

    def running(self, place: Place, port: Port, wanted: str) -> str | None:
        """Read a file for each priority."""
        on = [n for n in range(PRIORITIES) if (place.text(self._path(place, port, n)) or "").strip() == "1"]
        if wanted != NONE and set(map(int, wanted.split(","))) <= set(on):
            return wanted
        return ",".join(map(str, on)) or NONE

    def changes(self, place: Place, port: Port, wanted: str, step: int) -> list[Json]:
        """Write those files that are otherwise."""
        found = [value_change(place, self._path(place, port, n), "numbers", self._flag(wanted), [step])
                 for n in self._numbers(wanted)]  # fmt: skip
        return [change for change in found if change is not None]

    def line(self, place: Place, port: Port, wanted: str) -> str:
        """Write the files."""
        folder = self._path(place, port, 0).rpartition("/")[0]
        numbers = " ".join(map(str, self._numbers(wanted)))
        return own_unit.shell_line(f"for i in {numbers}; do echo {self._flag(wanted)} > {folder}/$i; done")

    def _path(self, place: Place, port: Port, number: int) -> str:
        path = f"{port.net}/ecn/roce_{self._end}/enable/{number}"
        if not place.exists(path):
            raise WriteError(
                "the in-box driver cannot switch ECN: it is the firmware's (ROCE_CC_PRIO_MASK_Pn by mstconfig), or "
                "needs DOCA-OFED"
            )
        return path

    def _numbers(self, wanted: str) -> list[int]:
        return list(range(PRIORITIES)) if wanted == NONE else [int(word) for word in wanted.split(",")]

    def _flag(self, wanted: str) -> str:
        return "0" if wanted == NONE else "1"


def _tool(place: Place) -> str:
    found = own_unit.find_tool(place, "dcb")
    if not found:
        raise WriteError("dcb (iproute2) is not installed")
    return found


def _dcb(port: Port, key: str, before: str, after: str, step: int) -> Json:
    return {**change_of("dcb", port.netdev, before, after, step), "key": key}


def change_of(name: str, target: str, before: str | None, after: str, step: int) -> Json:
    """Return a change of a running value."""
    return {
        "kind": name, "target": target, "before": before, "after": after, "phase": VOLATILE, "steps": [step],
    }  # fmt: skip
