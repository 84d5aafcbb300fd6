"""
Named faults: what can be wrong with a lab node, and what hwcheck should make of it.

A fault is a function on the machine's model; everything that shows it follows from the model. ``NAME`` breaks a part of
the fault's choosing, ``NAME:N`` the GPU, adapter or socket with number N. The docstring's first line says what it is.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable
from dataclasses import dataclass

from hwcheck.lab.machine import Machine
from hwcheck.lab.platforms import PLATFORMS

HGX = ("hgx-h200", "hgx-h100", "hgx-b200")
HOPPER = ("hgx-h200", "hgx-h100")
TRAYS = ("gb200",)
ROCE = ("hgx-h100", "hgx-b200")
INFINIBAND = ("hgx-h200", "gb200")
X86 = HGX
WRITE, ACT, HANDS = "write", "act", "hands"
_FILES = ("gpu", "memory", "fabric", "link", "host", "kernel", "driver", "load")


@dataclass(frozen=True, slots=True)
class Fault:
    """
    One fault.

    Attributes:
        id: its name on the command line.
        apply: changes the machine; takes the number of the part.
        leads: check ids, any of which may lead the incident (or stand alone); a family's name for any of its checks.
        also: check ids that the fault brings beside that, which no rule joins to it yet.
        told: checks that only report it, since what is right is the site's decision; then nothing leads.
        platforms: where it makes sense.
        part: number of the part that it breaks where none is given.
        stays: it is there again after a reboot.
        deep: seen in the deep tier only.
        hangs: a source does not answer, so reading takes until the deadline.
        load: seen only by measuring, or after the first load.
        figures: what it makes worse under load: tests of hwcheck's own (``h2d``) and of tools (``ib_write_bw``).
        library: shown by the lab's NVML only, which needs a C compiler; nvidia-smi does not tell it.
        fix: what mends it: ``write`` a setting, ``act``, or ``hands`` (parts, packages, other people's decisions).
        how: the mechanism of a write, what an act is.
    """

    id: str
    apply: Callable[[Machine, int], None]
    leads: tuple[str, ...]
    also: tuple[str, ...]
    told: tuple[str, ...]
    platforms: tuple[str, ...]
    part: int
    stays: bool
    deep: bool
    hangs: bool
    load: bool
    figures: tuple[str, ...]
    library: bool
    fix: str
    how: str

    @property
    def text(self) -> str:
        """One sentence: what is wrong."""
        return (self.apply.__doc__ or "").strip().partition("\n")[0]

    @property
    def families(self) -> tuple[str, ...]:
        """Families that it hits."""
        return tuple(dict.fromkeys(lead.partition(".")[0] for lead in (*self.leads, *self.told, *self.also)))


FAULTS: dict[str, Fault] = {}
"""Every fault by its id; filled by :func:`catalogue`."""


def fault(
    *leads: str,
    also: tuple[str, ...] = (),
    told: tuple[str, ...] = (),
    on: tuple[str, ...] = PLATFORMS,
    part: int = 0,
    stays: bool = False,
    deep: bool = False,
    hangs: bool = False,
    load: bool = False,
    figures: tuple[str, ...] = (),
    library: bool = False,
    fix: str = HANDS,
    how: str = "",
) -> Callable[[Callable[[Machine, int], None]], Callable[[Machine, int], None]]:
    """Declare a fault; its id is the function's name with dashes. See :class:`Fault` for the arguments."""

    def declare(apply: Callable[[Machine, int], None]) -> Callable[[Machine, int], None]:
        name = apply.__name__.replace("_", "-")
        FAULTS[name] = Fault(
            name, apply, leads, also, told, on, part, stays, deep, hangs, load, figures, library, fix, how
        )
        return apply

    return declare


def catalogue() -> dict[str, Fault]:
    """Return all faults by id."""
    if not FAULTS:
        for name in _FILES:
            importlib.import_module(f"hwcheck.lab.faults_{name}")
    return FAULTS


class UnknownFaultError(Exception):
    """No such fault, or not on this platform; the text says what there is."""


def find(name: str, platform: str = "") -> tuple[Fault, int]:
    """
    Look up ``NAME`` or ``NAME:N``.

    Args:
        name: as typed.
        platform: where it shall be; "" for any.

    Raises:
        UnknownFaultError: no such fault, no such number, or not on this platform.
    """
    word, _, number = name.partition(":")
    known = catalogue()
    if word not in known:
        near = difflib.get_close_matches(word, known, 3, 0.5)
        hint = f"near it: {', '.join(near)}" if near else "hwcheck lab faults lists them"
        raise UnknownFaultError(f"no such fault: {word}; {hint}")
    found = known[word]
    if platform and platform not in found.platforms:
        raise UnknownFaultError(f"{word} does not exist on {platform}, only on {', '.join(found.platforms)}")
    if number and not (number.isdigit() and int(number) < 64):
        raise UnknownFaultError(f"{name}: the number of a part stands after the colon, as in {word}:3")
    return found, int(number) if number else found.part


def inject(machine: Machine, names: list[str]) -> None:
    """
    Break a machine.

    Raises:
        UnknownFaultError: see :func:`find`; also for a part that the machine does not have.
    """
    for name in names:
        found, part = find(name, machine.platform)
        try:
            found.apply(machine, part)
        except IndexError:
            raise UnknownFaultError(f"{name}: {machine.platform} has no part with number {part}") from None
