"""
The form of a mechanism: reads facets, proposes changes. One module each, found by :data:`MECHANISMS`.

The value ``absent`` retires a key: our line of it goes, and only ours; the running value stays until the next boot. It
is the same for every mechanism that names its :meth:`~Mechanism.files`.

Facets (supported, permitted, running, next boot, effective) are strings in the mechanism's own words, None where there
is none. ``refused`` says why the step cannot or must not be written: no such key, no permission, owned by others.
"""

from __future__ import annotations

from typing import Callable, NamedTuple

from .change import file_change
from .owned_file import Owned
from .place import Json, Place, WriteError
from .step import Step

ABSENT = "absent"


class Facets(NamedTuple):
    """
    What a setting is now.

    Attributes:
        wanted: the step's value in the words of the others, for comparing.
        running, next_boot, effective: None where nothing says so; an image has no running value.
        refused: why it is not written; "" when it may be.
        supported: the node knows it.
        waits: when a written value begins to count, where that is not at once: ``counts from the next boot``.
    """

    wanted: str
    running: str | None = None
    next_boot: str | None = None
    effective: str | None = None
    refused: str = ""
    supported: bool = True
    waits: str = ""

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


class Held(NamedTuple):
    """A key that one of our files holds, its lines, and the check that asked for it."""

    key: str
    line: str
    check: str


class Mechanism:
    """One way a value lives on a node."""

    def same(self, one: str, other: str) -> bool:
        """Tell whether two spellings of a value mean the same."""
        return one.split() == other.split()

    def files(self, place: Place) -> list[Owned]:
        """Return the files that hwcheck owns for this mechanism, as far as they are there."""
        del place
        return []

    def name_of(self, step: Step) -> str:
        """Return the key of a step as our files have it; a mechanism with subjects adds the subject."""
        return step.key

    def after(self, place: Place, steps: list[int]) -> list[Command]:
        """Return what is run once our files have been written, for those steps."""
        del place, steps
        return []

    def facets(self, place: Place, step: Step) -> Facets:
        """Read a step's facets."""
        raise NotImplementedError

    def propose(self, place: Place, steps: list[Step]) -> Proposal:
        """Propose the changes that bring about all these steps; none of them is refused."""
        raise NotImplementedError

    def held(self, place: Place) -> dict[str, Held]:
        """Return the keys that our files hold."""
        return {
            name: Held(name, " / ".join(file.lines.lines(key)), file.lines.check_of(key))
            for file in self.files(place)
            for name, key in file.keys().items()
        }

    def retire(self, place: Place, steps: list[Step]) -> Proposal:
        """Propose that our files no longer hold these keys."""
        changes = []
        for file in self.files(place):
            keys = file.keys()
            mine = [step for step in steps if self.name_of(step) in keys]
            for step in mine:
                file.lines.drop(keys[self.name_of(step)])
            change = file_change(place, file.path, file.lines.render(file.first), [step.number for step in mine])
            changes += [change] if mine and change is not None else []
        numbers = sorted({number for change in changes for number in change["steps"]})
        return Proposal(changes, self.after(place, numbers) if changes and not place.is_image else [])


MECHANISMS: dict[str, Mechanism] = {}


def read(place: Place, step: Step) -> Facets:
    """
    Read a step's facets; of one to be retired, what our files hold of it.

    Raises:
        OSError, WriteError: they cannot be read, or the mechanism has no files from which something can be retired.
    """
    found = MECHANISMS[step.mechanism]
    if step.value != ABSENT:
        return found.facets(place, step)
    if type(found).files is Mechanism.files:
        raise WriteError(f"{step.mechanism} keeps no file from which {step.key} could be taken")
    ours = found.held(place).get(found.name_of(step))
    return Facets(ABSENT, None, ABSENT if ours is None else ours.line)


def held(place: Place) -> list[Json]:
    """Return what our files hold: mechanism, key, line and the check that asked for it, so that orphans are found."""
    return [
        {"mechanism": name, **one._asdict()}
        for name, found in sorted(MECHANISMS.items())
        for _, one in sorted(found.held(place).items())
    ]


def mechanism(name: str) -> Callable[[type[Mechanism]], type[Mechanism]]:
    """Register a mechanism."""

    def register(made: type[Mechanism]) -> type[Mechanism]:
        MECHANISMS[name] = made()
        return made

    return register
