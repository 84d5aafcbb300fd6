"""Mechanisms whose values belong to devices: kept by a template unit of ours that a rule of udev starts."""

from __future__ import annotations

from . import own_unit, udev
from .mechanism import Command, Mechanism, Proposal
from .own_unit import OwnUnit
from .place import Place
from .step import Step


class DeviceMechanism(Mechanism):
    """
    What such mechanisms share.

    Attributes:
        unit: the template.
    """

    unit: OwnUnit

    def name_of(self, step: Step) -> str:
        """Return subject and key."""
        return f"{step.subject} {step.key}"

    def after(self, place: Place, steps: list[int]) -> list[Command]:
        """Let systemd and udev read their files."""
        return [] if place.is_image else [Command(["systemctl", "daemon-reload"], steps), *udev.reload(steps)]

    def retire(self, place: Place, steps: list[Step]) -> Proposal:
        """Take keys from our files, and the unit with the last of them."""
        found = super().retire(place, steps)
        numbers = [step.number for step in steps]
        frame = own_unit.frame_changes(place, self.unit, found.changes, numbers)
        return Proposal([*found.changes, *frame], found.commands)
