"""
Rules for devices that appear late: ``/etc/udev/rules.d/90-hwcheck.rules``, one line a key.

Source: udev(7): files of all folders sorted by name, one in /etc masks the same name elsewhere; each matching line
counts. A rule is how a value outlives a reload of the driver, a reset or a plug: whatever is set once at boot comes too
early or only once. Other mechanisms keep their next boot here by :func:`rule_changes`; a rule of its own is the
mechanism ``udev_rule`` (key: any name, value: the rule).

udev reads the rules again (``udevadm control --reload``); no event is triggered, since that would act on devices in
use. What runs now is set by the mechanism itself.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .change import file_change
from .mechanism import Command, Facets, Mechanism, Proposal, mechanism, unsupported
from .owned_file import Owned, OwnedFile
from .place import Place, WriteError
from .step import Step

FILE = "/etc/udev/rules.d/90-hwcheck.rules"
_PART = re.compile(r'\s*[A-Z]+(?:\{[^{}"]+\})?\s*(==|!=|=|\+=|-=|:=)\s*[ei]?"(?:[^"\\]|\\.)*"\s*')


class Rule(NamedTuple):
    """A line to keep (None: to take away), its key among those of the step's mechanism, and the step that wants it."""

    key: str
    line: str | None
    step: Step


def owned_rules(place: Place, mechanism: str) -> Owned:
    """Return our file as far as it is one mechanism's: what :meth:`Mechanism.files` returns for it."""
    return Owned(FILE, OwnedFile(place.bytes_as_text(FILE), None), only=mechanism + " ")


def rules(place: Place, mechanism: str) -> dict[str, str]:
    """Return the rules of a mechanism: key → line."""
    owned = owned_rules(place, mechanism)
    return {name: owned.lines.lines(key)[0] for name, key in owned.keys().items()}


def rule_changes(place: Place, wanted: list[Rule]) -> Proposal:
    """
    Propose that our file has rules.

    Raises:
        WriteError: a line is no rule of udev.
    """
    owned = OwnedFile(place.bytes_as_text(FILE), None)
    for one in wanted:
        key = f"{one.step.mechanism} {one.key}"
        if one.line is None:
            owned.drop(key)
            continue
        if not is_rule(one.line):
            raise WriteError(f"no rule of udev: {one.line[:120]}")
        owned.put(key, one.line, one.step.id)
    numbers = sorted({one.step.number for one in wanted})
    change = file_change(place, FILE, owned.render(), numbers)
    if change is None:
        return Proposal([], [])
    return Proposal([change], [] if place.is_image else reload(numbers))


def reload(steps: list[int]) -> list[Command]:
    """Return what lets udev read its rules again."""
    return [Command(["udevadm", "control", "--reload"], steps)]


def is_rule(line: str) -> bool:
    """Tell whether a line is a rule: matches and assignments with commas between, at least one of either kind."""
    signs = []
    place = 0
    while place < len(line):
        found = _PART.match(line, place)
        if found is None:
            return False
        signs.append(found[1])
        place = found.end()
        if place < len(line):
            if line[place] != ",":
                return False
            place += 1
    return any(sign in ("==", "!=") for sign in signs) and any(sign not in ("==", "!=") for sign in signs)


def quoted(value: str) -> str:
    """
    Return a value as a rule has it: in quotes, without anything that udev would fill in.

    Raises:
        WriteError: it has characters that a rule cannot hold.
    """
    if '"' in value or "\\" in value:
        raise WriteError(f"a rule of udev cannot hold the value {value!r}")
    return '"' + value.replace("$", "$$").replace("%", "%%") + '"'


@mechanism("udev_rule")
class UdevRule(Mechanism):
    """Rules of udev that are a setting by themselves."""

    def files(self, place: Place) -> list[Owned]:
        """Return our file."""
        return [owned_rules(place, "udev_rule")]

    def after(self, place: Place, steps: list[int]) -> list[Command]:
        """Let udev read it."""
        return [] if place.is_image else reload(steps)

    def facets(self, place: Place, step: Step) -> Facets:
        """Read a rule: only files say it."""
        if not is_rule(step.value):
            return unsupported(step.value, f"no rule of udev: {step.value[:120]}")
        return Facets(step.value, None, rules(place, step.mechanism).get(step.key))

    def propose(self, place: Place, steps: list[Step]) -> Proposal:
        """Propose our file."""
        return rule_changes(place, [Rule(step.key, step.value, step) for step in steps])
