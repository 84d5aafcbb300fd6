"""
The form of a mechanism: reads facets, proposes changes. One module each, found by :data:`MECHANISMS`.

Facets (supported, permitted, running, next boot, effective) are strings in the mechanism's own words, None where there
is none. ``refused`` says why the step cannot or must not be written: no such key, no permission, owned by others.
"""

from __future__ import annotations

from typing import Callable, NamedTuple

from .place import Json, Place
from .step import Step


class Facets(NamedTuple):
    """
    What a setting is now.

    Attributes:
        wanted: the step's value in the words of the others, for comparing.
        running, next_boot, effective: None where nothing says so; an image has no running value.
        refused: why it is not written; "" when it may be.
        supported: the node knows it.
    """

    wanted: str
    running: str | None = None
    next_boot: str | None = None
    effective: str | None = None
    refused: str = ""
    supported: bool = True

    @property
    def counts(self) -> str | None:
        """What matters now: the effective value, else the running one."""
        return self.running if self.effective is None else self.effective

    @property
    def is_right(self) -> bool:
        """
        Whether nothing is to be done: now and after the next boot.

        A next boot that no file decides is the kernel's default or another tool's, and as good as what runs.
        """
        if self.next_boot is None:
            return self.counts == self.wanted
        return self.next_boot == self.wanted and self.counts in (None, self.wanted)

    def told(self) -> Json:
        """Return as JSON."""
        return {
            "supported": self.supported, "permitted": not self.refused, "running": self.running,
            "next boot": self.next_boot, "effective": self.effective,
        }  # fmt: skip


def unsupported(wanted: str, why: str) -> Facets:
    """Return the facets of what this node does not know."""
    return Facets(wanted, refused=why, supported=False)


class Command(NamedTuple):
    """A program that makes written files count (``systemctl daemon-reload``), and for which steps."""

    words: list[str]
    steps: list[int]
    seconds: float = 60.0


class Proposal(NamedTuple):
    """What would be changed, and what is then run, after a change as after its undoing."""

    changes: list[Json]
    commands: list[Command]


class Mechanism:
    """
    One way a value lives on a node.

    Attributes:
        needs_boot: what is written counts from the next boot only.
    """

    needs_boot = False

    def same(self, one: str, other: str) -> bool:
        """Tell whether two spellings of a value mean the same."""
        return one.split() == other.split()

    def facets(self, place: Place, step: Step) -> Facets:
        """Read a step's facets."""
        raise NotImplementedError

    def propose(self, place: Place, steps: list[Step]) -> Proposal:
        """Propose the changes that bring about all these steps; none of them is refused."""
        raise NotImplementedError


MECHANISMS: dict[str, Mechanism] = {}


def mechanism(name: str) -> Callable[[type[Mechanism]], type[Mechanism]]:
    """Register a mechanism."""

    def register(made: type[Mechanism]) -> type[Mechanism]:
        MECHANISMS[name] = made()
        return made

    return register
