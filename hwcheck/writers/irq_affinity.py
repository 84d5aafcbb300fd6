"""
Where the interrupts of an RDMA device go. Subject: the device (``mlx5_0``); key ``interrupts``; value a list of CPUs.

An interrupt is right when all CPUs it may go to are in the list, so a driver's own spread over near CPUs stays; one
that may go elsewhere gets the whole list. Interrupts have other numbers after each load of the driver, so a unit of
ours (``hwcheck-irq@DEVICE.service``, started by a rule of udev) looks them up anew.

Refused: while irqbalance runs, or is enabled, and is not told to leave these interrupts alone: it would move them back
within ten seconds. EIO says that the kernel manages an interrupt itself: not applicable.

Source: Documentation/core-api/irq/irq-affinity.rst; proc(5); irqbalance(1): ``--banirq``, ``--banmod``.
"""

from __future__ import annotations

import os
import re

from . import own_unit, udev
from .change import value_change
from .device_mechanism import DeviceMechanism
from .forms import cpus, members
from .mechanism import Facets, Proposal, mechanism, unsupported
from .own_unit import OwnUnit
from .owned_file import Owned
from .place import Json, Place, WriteError
from .planned import Planned
from .step import Step

KEY = "interrupts"
UNIT = OwnUnit(
    "hwcheck-irq@.service",
    """# Written by hwcheck: where interrupts of an RDMA device go, at each load of its driver. Undo: hwcheck rollback.
[Unit]
Description=Interrupts of %i, as hwcheck was asked for
After=irqbalance.service
[Service]
Type=oneshot
""",
)
_LIST = re.compile(r"\d{1,6}(?:-\d{1,6})?(?:,\d{1,6}(?:-\d{1,6})?)*")
_POSSIBLE = "/sys/devices/system/cpu/possible"
_BALANCER = "irqbalance.service"
_SETTINGS = ("/etc/default/irqbalance", "/etc/sysconfig/irqbalance")
_BANNED = re.compile(r"(?:--banirq[= ]|-i\s*)(\d+)")
_BANNED_DRIVER = re.compile(r"(?:--banmod[= ]|-m\s*)([\w-]+)")
_NEXT_INTERRUPT = "counts from the next interrupt of each"


@mechanism("irq_affinity")
class IrqAffinity(DeviceMechanism):
    """Interrupts of RDMA devices."""

    unit = UNIT

    def files(self, place: Place) -> list[Owned]:
        """Return our drop-ins and rules; both hold a device's key, the drop-in tells the value."""
        drops = [UNIT.owned(place, one, one + " ") for one in UNIT.instances(place)]
        return [udev.owned_rules(place, "irq_affinity"), *drops]

    def facets(self, place: Place, step: Step) -> Facets:
        """Read all interrupts of the device."""
        wanted = cpus(step.value)
        if step.key != KEY or not _LIST.fullmatch(wanted):
            return unsupported(wanted, f"the one key is {KEY}, its value a list of CPUs (0-31,64-95)")
        own_unit.check_instance(step.subject)
        following = _next_boot(place, step)
        if place.is_image:
            return Facets(wanted, None, following, None, _balanced(place, step.subject, []))
        there = place.text(_POSSIBLE) or wanted
        if not _within(wanted, there):
            return unsupported(wanted, f"this node has the CPUs {there}, not all of {wanted}")
        numbers = interrupts(place, step.subject)
        if not numbers:
            return unsupported(wanted, f"{step.subject} is no RDMA device with interrupts of its own (msi_irqs)")
        may = _told(place, numbers, "smp_affinity_list", wanted)
        do = _told(place, numbers, "effective_affinity_list", wanted)
        refused = _balanced(place, step.subject, numbers) if may != wanted or following != wanted else ""
        return Facets(wanted, may, following, do, refused, waits=_NEXT_INTERRUPT)

    def propose(self, place: Place, steps: list[Step]) -> Proposal:
        """Propose unit and rules, then one write for each interrupt that may go elsewhere."""
        numbers = [step.number for step in steps]
        drops, rules = [], []
        for step in steps:
            owned = UNIT.owned(place, step.subject)
            owned.lines.put(KEY, line_of(step), step.id)
            drops.append(owned)
            rules.append(udev.Rule(self.name_of(step), rule_of(step.subject), step))
        ruled = udev.rule_changes(place, rules)
        units = own_unit.unit_changes(place, UNIT, drops, numbers)
        changes: list[Json] = [*units, *ruled.changes]
        for step in [] if place.is_image else steps:
            wanted = cpus(step.value)
            for number in interrupts(place, step.subject):
                path = f"/proc/irq/{number}/smp_affinity_list"
                if not _within(place.text(path) or "", wanted):
                    change = value_change(place, path, "cpus", wanted, [step.number])
                    changes += [] if change is None else [change]
        return Proposal(changes, [*own_unit.reload_units(place, units), *ruled.commands])


def interrupts(place: Place, device: str) -> list[str]:
    """Return the numbers of a device's interrupts."""
    found = place.expand(f"/sys/class/infiniband/{device}/device/msi_irqs/*")
    numbers = [path.rpartition("/")[2] for path in found]
    return [number for number in numbers if number.isdigit() and place.exists(f"/proc/irq/{number}/smp_affinity_list")]


def line_of(step: Step) -> str:
    """Return the line of the unit, which looks the interrupts up anew."""
    folder = f"/sys/class/infiniband/{step.subject}/device/msi_irqs"
    script = f"for i in {folder}/*; do echo {cpus(step.value)} > /proc/irq/${{i##*/}}/smp_affinity_list; done"
    return own_unit.shell_line(script)


def rule_of(device: str) -> str:
    """Return the rule that starts the unit whenever the device appears."""
    return (
        f'ACTION=="add|move", SUBSYSTEM=="infiniband", KERNEL=="{device}", TAG+="systemd", '
        'ENV{SYSTEMD_WANTS}+="hwcheck-irq@%k.service"'
    )


def _next_boot(place: Place, step: Step) -> str | None:
    lines = UNIT.owned(place, step.subject).lines.lines(KEY)
    found = re.search(r"echo (\S+) >", lines[0]) if lines else None
    ruled = udev.rules(place, "irq_affinity").get(f"{step.subject} {KEY}") == rule_of(step.subject)
    return cpus(found[1]) if found and ruled else None


def _within(text: str, wanted: str) -> bool:
    return bool(text.strip()) and members(text) <= members(wanted)


def _told(place: Place, numbers: list[str], name: str, wanted: str) -> str | None:
    """Return the wanted list where all interrupts are within it, else all CPUs they go to; None where none is told."""
    texts = [place.text(f"/proc/irq/{number}/{name}") or "" for number in numbers]
    known = [text for text in texts if text.strip()]
    if not known:
        return None
    far = sum(not _within(text, wanted) for text in known)
    return f"{cpus(','.join(known))} ({far} of {len(known)} go elsewhere)" if far else wanted


def _balanced(place: Place, device: str, numbers: list[str]) -> str:
    """Say that irqbalance would move the interrupts back; "" when it does not run, or leaves them alone."""
    stopped = place.stopped if isinstance(place, Planned) else frozenset()
    if _BALANCER in stopped:
        return ""
    runs, words = _balancer(place)
    if not runs:
        return ""
    if set(numbers) <= set(_BANNED.findall(words)) and numbers:
        return ""
    driver = os.path.basename(os.path.realpath(place.real(f"/sys/class/infiniband/{device}/device/driver")))
    if driver in _BANNED_DRIVER.findall(words):
        return ""
    return (
        f"irqbalance {runs} and would move them back: stop and disable it (unit {_BALANCER} = disabled), or start it "
        f"with --banmod={driver if driver != 'driver' else 'mlx5_core'} (IRQBALANCE_ARGS)"
    )


def _balancer(place: Place) -> tuple[str, str]:
    """Return whether irqbalance runs or will, in words, and what it is told."""
    settings = " ".join((place.text(path) or "") for path in _SETTINGS).replace('"', " ")
    if not place.is_image:
        for path in place.expand("/proc/[0-9]*/comm"):
            if (place.text(path) or "").strip() == "irqbalance":
                return "runs", (place.text(path[: -len("comm")] + "cmdline") or "").replace("\0", " ")
        try:
            state = place.run(["systemctl", "is-active", _BALANCER], 20.0)
        except WriteError:
            state = ""  # not active, or no systemd
        if state.strip() == "active":
            return "runs", settings
    enabled = place.expand(f"/etc/systemd/system/*.wants/{_BALANCER}")
    return ("is enabled", settings) if enabled else ("", "")
