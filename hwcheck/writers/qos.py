"""
RoCE settings of a port. Subject: interface, RDMA device, port or PCI address; all values are facts of the fabric.

=============  ===================================================================================================
trust          dscp or pcp
pfc            priorities with priority flow control, ``3,4`` or none
dscp           priority of DSCPs, ``26:3 48:6``; others are left alone
ecn_np, ecn_rp priorities on which receiver and sender take part in congestion control, these at least; or none
cnp_dscp       DSCP of congestion notifications; cnp_prio: their 802.1p priority
default_tos    traffic class byte of connections by rdma_cm: DSCP times four plus ECN bits
traffic_class  byte that the driver forces on all traffic of the port, or unset
=============  ===================================================================================================

All of it is lost when the driver restarts, so a unit of ours (``hwcheck-qos@NAME.service``) does it again, started by a
rule of udev whenever the interface or RDMA device appears. Each is read back: a switch's LLDP (DCBX in the firmware)
may take a setting away again.

Refused: InfiniBand, which has none of this; what the driver that is loaded does not have; a table that dcb cannot read.

Source: NVIDIA DOCA-OFED documentation (QoS, ECN, RoCE); dcb(8); kernel drivers/net/ethernet/mellanox/mlx5.
"""

from __future__ import annotations

from . import own_unit, qos_port, udev
from .device_mechanism import DeviceMechanism
from .mechanism import Facets, Proposal, mechanism, unsupported
from .own_unit import OwnUnit
from .owned_file import Owned
from .place import Json, Place, WriteError, words_of
from .qos_marking import DefaultTos, ForcedClass, Notification
from .qos_port import Port
from .qos_settings import Dscp, Ecn, Pfc, Setting, Trust
from .step import Step

UNIT = OwnUnit(
    "hwcheck-qos@.service",
    """# Written by hwcheck: RoCE settings, at each start of an interface or RDMA device. Undo: hwcheck rollback.
[Unit]
Description=RoCE settings of %i, as hwcheck was asked for
[Service]
Type=oneshot
""",
)
KEYS: dict[str, Setting] = {
    "trust": Trust(),
    "pfc": Pfc(),
    "dscp": Dscp(),
    "ecn_np": Ecn("np"),
    "ecn_rp": Ecn("rp"),
    "cnp_dscp": Notification("cnp_dscp", "np_cnp_dscp", 63),
    "cnp_prio": Notification("cnp_802p_prio", "np_cnp_prio", 7),
    "default_tos": DefaultTos(),
    "traffic_class": ForcedClass(),
}
"""In the order of writing: trust first, since the driver fills the DSCP table with it."""
_OTHERWISE = "otherwise (by an older line of ours)"


@mechanism("qos")
class Qos(DeviceMechanism):
    """RoCE settings of ports."""

    unit = UNIT

    def same(self, one: str, other: str) -> bool:
        """Tell whether two values mean the same: lists are written with commas or blanks."""
        return one.replace(",", " ").split() == other.replace(",", " ").split()

    def files(self, place: Place) -> list[Owned]:
        """Return our drop-ins and rules; both hold a key, the drop-in tells the value."""
        return [udev.owned_rules(place, "qos"), *(UNIT.owned(place, one) for one in UNIT.instances(place))]

    def facets(self, place: Place, step: Step) -> Facets:
        """Read one setting."""
        setting = KEYS.get(step.key)
        if setting is None:
            return unsupported(step.value, f"there is no RoCE setting {step.key!r}; there are {', '.join(KEYS)}")
        try:
            wanted = setting.wanted(step.value.strip())
            if place.is_image:
                raise WriteError("which adapters and driver an image will run with is not known")
            port = qos_port.find(place, step.subject)
            if qos_port.is_infiniband(place, port):
                raise WriteError("not applicable on InfiniBand: its links have credits, its subnet manager decides")
            own_unit.check_instance(_instance(setting, port))
            running = setting.running(place, port, wanted)
            following = self._next_boot(place, step, setting, port, wanted)
        except WriteError as error:
            return unsupported(step.value, words_of(error))
        return Facets(wanted, running, following)

    def propose(self, place: Place, steps: list[Step]) -> Proposal:
        """Propose unit and rules, then the running values, trust first."""
        drops: dict[str, Owned] = {}
        rules, running = [], []
        for step in sorted(steps, key=lambda step: list(KEYS).index(step.key)):
            setting, port = KEYS[step.key], qos_port.find(place, step.subject)
            name, wanted = _instance(setting, port), setting.wanted(step.value.strip())
            owned = drops.setdefault(name, UNIT.owned(place, name))
            owned.lines.put(self.name_of(step), setting.line(place, port, wanted), step.id)
            rules.append(udev.Rule(self.name_of(step), rule_of(setting, port), step))
            if setting.running(place, port, wanted) != wanted:
                running += setting.changes(place, port, wanted, step.number)
        numbers = sorted(step.number for step in steps)
        ruled = udev.rule_changes(place, rules)
        units = own_unit.unit_changes(place, UNIT, list(drops.values()), numbers)
        changes: list[Json] = [*units, *ruled.changes, *running]
        return Proposal(changes, [*own_unit.reload_units(place, units), *ruled.commands])

    def _next_boot(self, place: Place, step: Step, setting: Setting, port: Port, wanted: str) -> str | None:
        """Return what our unit does, as far as its line and rule say."""
        name = self.name_of(step)
        lines = UNIT.owned(place, _instance(setting, port)).lines.lines(name)
        if not lines:
            return None
        ours = lines[0] == setting.line(place, port, wanted)
        return wanted if ours and udev.rules(place, "qos").get(name) == rule_of(setting, port) else _OTHERWISE


def rule_of(setting: Setting, port: Port) -> str:
    """Return the rule that starts the unit whenever the interface or RDMA device appears."""
    subsystem = "infiniband" if setting.of_device else "net"
    driver = "" if setting.of_device else 'DRIVERS=="mlx5_core", '
    return (
        f'ACTION=="add|move", SUBSYSTEM=="{subsystem}", KERNEL=="{_instance(setting, port)}", {driver}'
        'TAG+="systemd", ENV{SYSTEMD_WANTS}+="hwcheck-qos@%k.service"'
    )


def _instance(setting: Setting, port: Port) -> str:
    """
    Return what the unit's instance is called.

    Raises:
        WriteError: the port has no RDMA device, or no interface.
    """
    name = port.device if setting.of_device else port.netdev
    if not name:
        raise WriteError(f"{port.address or port} has no {'RDMA device' if setting.of_device else 'interface'}")
    return name
