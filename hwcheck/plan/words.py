"""The words of a plan: steps, acts, what is left out, nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hwcheck.mechanisms import ABSENT


@dataclass(frozen=True, slots=True)
class Step:
    """
    One value to be written on one node.

    Attributes:
        id: check that asks for it; the verdict after the write is this check's.
        subject: id of what it is about where the mechanism's keys belong to subjects (a GPU, a port); "" otherwise.
        mechanism, key, value: what is written, as text; the value ``absent`` retires a key that our files hold.
        seen: value of the key as the check saw it, ``running`` and ``next boot``; None where it did not see one.
        disturbs: ``nothing``, ``gpu``, ``board``, ``network``, ``node``.
        opt_in: it is here because somebody asked for it.
        restart: unit that has to be restarted before it takes effect; "" for none.
        text: what the check says.
        irreversible: cannot be undone.
        owner: file that sets the key now, where one is known; "" otherwise.
        also: further checks that ask for the same.
    """

    id: str
    subject: str
    mechanism: str
    key: str
    value: str
    seen: Mapping[str, str | None]
    disturbs: str
    opt_in: bool = False
    restart: str = ""
    text: str = ""
    irreversible: bool = False
    owner: str = ""
    also: tuple[str, ...] = ()

    @property
    def retires(self) -> bool:
        """Whether it takes a key out of our files, rather than setting one; what runs stays until the next boot."""
        return self.value == ABSENT

    def for_node(self) -> dict[str, Any]:
        """Return what the node is given of it."""
        return {
            "id": self.id,
            "subject": self.subject,
            "mechanism": self.mechanism,
            "key": self.key,
            "value": self.value,
            "seen": dict(self.seen),
            "disturbs": self.disturbs,
            "restart": self.restart,
        }


@dataclass(frozen=True, slots=True)
class PlannedAct:
    """
    One deed on one node.

    Attributes:
        id: check, or first of the checks, that asks for it.
        do, target: as in :class:`hwcheck.findings.Act`.
        disturbs: ``nothing``, ``gpu``, ``board``, ``network``, ``node``.
        text: why.
        also: further checks that ask for the same.
    """

    id: str
    do: str
    target: str
    disturbs: str
    text: str = ""
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LeftOut:
    """
    A finding that the plan does nothing about.

    Attributes:
        id, subjects: check and the ids of what it is about.
        why: ``opt-in`` (nobody asked for it), ``waived``, ``unknown`` (could not be told), ``refused`` (the node lets
            nobody write it), ``by hand``, ``hands``.
        text: what the check, or the remedy, says.
    """

    id: str
    subjects: tuple[str, ...]
    why: str
    text: str


@dataclass(frozen=True, slots=True)
class NodePlan:
    """
    What would be changed on one node, in the order in which it is done.

    Attributes:
        name: of the node; "" for this machine where it has none.
        platform: profile that judged it.
        boot_id: of the boot it was judged in; "" when unknown.
        cohort: platform × firmware and driver × kernel: nodes that behave alike.
        domain: NVLink domain that it shares with other nodes, which are changed together; "" for none.
        steps: values to write, those that persist first.
        acts: deeds after the writes, without the reboot.
        reboot: checks because of which the node has to be rebooted, once; () when it need not be.
        left_out: findings that nothing is done about.
        hands: findings that need a person.
        refused: why there is no plan for this node; "" when there is one.
        failure_domain: what the inventory says fails as a whole with it: a rack, a row; "" where it says nothing.
    """

    name: str
    platform: str
    boot_id: str = ""
    cohort: str = ""
    domain: str = ""
    steps: tuple[Step, ...] = ()
    acts: tuple[PlannedAct, ...] = ()
    reboot: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    hands: tuple[LeftOut, ...] = ()
    refused: str = ""
    failure_domain: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not (self.steps or self.acts or self.reboot)

    @property
    def irreversible(self) -> tuple[str, ...]:
        """What of it cannot be undone."""
        steps = [f"{step.mechanism} {step.key}" for step in self.steps if step.irreversible]
        return (*steps, *(f"{act.do} {act.target}".rstrip() for act in self.acts if act.do == "reset_gpu"))


@dataclass(frozen=True, slots=True)
class Plan:
    """
    What would be changed on all nodes.

    Attributes:
        tool: name and version.
        profile: ``name`` and ``hash``.
        created: ISO 8601 time.
        nodes: in order.
    """

    tool: str
    profile: dict[str, str]
    created: str
    nodes: tuple[NodePlan, ...] = field(default=())
