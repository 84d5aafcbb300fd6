"""
How ``qos`` marks: congestion notifications, connections by rdma_cm, and all traffic of a port.

Source: DOCA-OFED documentation (``ecn/roce_np/cnp_*``, ``tc/PORT/traffic_class``); in the kernel's drivers/infiniband
hw/mlx5/cong.c (``cc_params``, where the firmware allows it) and core/cma_configfs.c.
"""

from __future__ import annotations

from . import own_unit, qos_kinds
from .change import value_change
from .place import Json, Place, WriteError
from .qos_kinds import UNSET
from .qos_port import Port
from .qos_settings import Setting, change_of, echo, number


class Notification(Setting):
    """How congestion notifications are marked: a number in a file of either driver."""

    def __init__(self, name: str, parameter: str, most: int) -> None:
        self._name, self._parameter, self._most = name, parameter, most

    def wanted(self, value: str) -> str:
        """Return a number."""
        return number(value, self._most, self._parameter)

    def running(self, place: Place, port: Port, wanted: str) -> str | None:
        """Read the file."""
        del wanted
        return (place.text(self._path(place, port)) or "").strip()

    def changes(self, place: Place, port: Port, wanted: str, step: int) -> list[Json]:
        """Write it."""
        change = value_change(place, self._path(place, port), "numbers", wanted, [step])
        return [] if change is None else [change]

    def line(self, place: Place, port: Port, wanted: str) -> str:
        """Write it."""
        return echo(wanted, self._path(place, port))

    def _path(self, place: Place, port: Port) -> str:
        paths = (f"{port.net}/ecn/roce_np/{self._name}", f"{port.congestion}/{self._parameter}")
        for path in paths:
            if place.exists(path):
                return path
        raise WriteError(
            f"neither {paths[0]} (DOCA-OFED) nor {paths[1]} is there: debugfs is not mounted, or the firmware does not "
            "let congestion parameters be changed"
        )


class DefaultTos(Setting):
    """The traffic class byte of connections by rdma_cm."""

    of_device = True

    def wanted(self, value: str) -> str:
        """Return a byte."""
        return number(value, 255, "a traffic class byte")

    def running(self, place: Place, port: Port, wanted: str) -> str | None:
        """Read the file; None where nobody has made the device's folder: to read is no reason to make it."""
        del wanted
        if not place.exists("/sys/kernel/config/rdma_cm"):
            raise WriteError("rdma_cm is not loaded, or configfs is not mounted")
        text = place.text(self._path(port))
        return None if text is None else text.strip()

    def changes(self, place: Place, port: Port, wanted: str, step: int) -> list[Json]:
        """Write the file."""
        before = self.running(place, port, wanted)
        return [] if before == wanted else [change_of("rdma_cm", self._path(port), before, wanted, step)]

    def line(self, place: Place, port: Port, wanted: str) -> str:
        """Make the folder, and write the file."""
        del place
        return own_unit.shell_line(f"mkdir -p {port.marking} && echo {wanted} > {self._path(port)}")

    def _path(self, port: Port) -> str:
        return f"{port.marking}/ports/{port.number}/default_roce_tos"


class ForcedClass(Setting):
    """The traffic class byte that the driver forces on all traffic of a port."""

    of_device = True

    def wanted(self, value: str) -> str:
        """Return a byte, or unset."""
        return value if value == UNSET else number(value, 255, "a traffic class byte")

    def running(self, place: Place, port: Port, wanted: str) -> str | None:
        """Read the file."""
        del wanted
        return qos_kinds.read_class(place, self._path(place, port))

    def changes(self, place: Place, port: Port, wanted: str, step: int) -> list[Json]:
        """Write it."""
        before, path = self.running(place, port, wanted), self._path(place, port)
        return [] if before == wanted else [change_of("traffic_class", path, before, wanted, step)]

    def line(self, place: Place, port: Port, wanted: str) -> str:
        """Write it."""
        return echo("-1" if wanted == UNSET else wanted, self._path(place, port))

    def _path(self, place: Place, port: Port) -> str:
        path = f"{port.rdma}/tc/{port.number}/traffic_class"
        if not place.exists(path):
            raise WriteError(
                "the in-box driver cannot force a traffic class: applications set it (NCCL_IB_TC, UCX_IB_TRAFFIC_CLASS)"
            )
        return path
