"""
A request against this node: what is right already, what would be changed, what is refused and why.

Mechanisms propose one after the other, each against the files as those before it will leave them (:mod:`.planned`): so
two that write one file build on each other, and the journal has one change for it, from what is on the disk to what the
last one wants. Whatever else two steps would set to different values is refused to the later one.
"""

from __future__ import annotations

from .mechanism import ABSENT, MECHANISMS, Command, Facets, Proposal, read
from .place import Json, Place, WriteError, words_of
from .planned import Planned
from .step import Act, Step, disturbance, read_acts, read_steps


class Proposed:
    """
    What a request comes to on this node.

    Attributes:
        results: of each step, in order.
        changes, commands, acts: for the journal.
    """

    def __init__(self, place: Place, request: Json) -> None:
        self.steps = read_steps(request.get("steps", []), MECHANISMS)
        self._place = Planned(place, {}, frozenset(one.key for one in self.steps if _stops(one)))
        self.results = [_result(step) for step in self.steps]
        self.changes: list[Json] = []
        self.commands: list[Json] = []
        self._waits: dict[int, str] = {}
        wanted = [step for step in self.steps if self._look(step)]
        for name in sorted({step.mechanism for step in wanted}):
            self._propose(name, [step for step in wanted if step.mechanism == name])
        self.acts = self._acts(request)

    def _propose(self, name: str, steps: list[Step]) -> None:
        """Take up what a mechanism proposes; what is refused of it is left out, and it proposes again without."""
        wanted = steps
        while wanted:
            try:
                proposal = proposal_for(self._place, name, wanted)
            except (OSError, WriteError) as error:
                self._refuse([step.number for step in wanted], words_of(error))
                return
            why = self._refusals(proposal)
            if not why:
                self._take(proposal, wanted)
                return
            for number, text in why.items():
                self._refuse([number], text)
            wanted = [step for step in wanted if step.number not in why]

    def _refusals(self, proposal: Proposal) -> dict[int, str]:
        """Say which steps cannot be brought about, and why."""
        why: dict[int, str] = {}
        also: list[Json] = []
        for change in sorted(proposal.changes, key=lambda one: int(min(one["steps"]))):
            text = "" if change["kind"] != "file" else self._place.is_writable(change["target"])
            other = _same_target([*self.changes, *also], change)
            if other is not None and change["kind"] != "file" and other["after"] != change["after"]:
                names = ", ".join(self.steps[number].id for number in other["steps"])
                text = f"{change['target']} is set to {other['after']} by {names} in the same run"
            if text:
                why.update(dict.fromkeys(change["steps"], text))
            also.append(change)
        return why

    def _take(self, proposal: Proposal, steps: list[Step]) -> None:
        for change in proposal.changes:
            add(self.changes, change)
            if change["kind"] == "file":
                self._place.states[change["target"]] = change["after"]
        for one in proposal.commands:
            self._add_command(one)
        changing = {number for change in proposal.changes for number in change["steps"]}
        changing.update(number for one in proposal.commands for number in one.steps)
        for step in steps:
            if step.number not in changing and not step.restart:
                waits = self._waits[step.number]
                why = waits or "what counts is not what is set, and nothing here changes that"
                self.results[step.number].update(status="right" if waits else "refused", why=why)

    def _add_command(self, one: Command) -> None:
        same = next((other for other in self.commands if other["words"] == one.words), None)
        if same is None:
            self.commands.append(
                {"words": one.words, "seconds": one.seconds, "steps": list(one.steps), "state": "pending"}
            )
        else:
            same["steps"] = sorted({*same["steps"], *one.steps})

    def _look(self, step: Step) -> bool:
        """Read a step's facets; tells whether something is to be proposed for it."""
        result = self.results[step.number]
        try:
            facets = read(self._place, step)
        except (OSError, WriteError) as error:
            result.update(status="refused", why=words_of(error))
            return False
        result["before"] = facets.told()
        if facets.is_right:
            result["status"] = "right"
            return False
        self._waits[step.number] = facets.waits if facets.next_boot == facets.wanted else ""
        if facets.refused:
            result.update(status="refused", why=facets.refused)
        elif _is_stale(step, facets):
            seen = ", ".join(f"{name} {value}" for name, value in step.seen.items())
            told = f"running {facets.running}, next boot {facets.next_boot}"
            result.update(status="stale", why=f"the plan saw {seen}; the node says {told}")
        else:
            result["status"] = "would change"
        return str(result["status"]) == "would change"

    def _refuse(self, numbers: list[int], why: str) -> None:
        for number in numbers:
            self.results[number].update(status="refused", why=why)

    def _acts(self, request: Json) -> list[Json]:
        """Restart what a change needs restarted, once each, then what is asked for."""
        wanted: list[Json] = [
            {"do": "restart", "target": step.restart, "disturbs": disturbance(step.restart, step.disturbs)}
            for step in self.steps
            if step.restart and self.results[step.number]["status"] == "would change" and not self._place.is_image
        ]
        wanted += [{**one._asdict(), "asked": True} for one in read_acts(request.get("acts", [])) if self._is_due(one)]
        found: list[Json] = []
        for one in wanted:
            if not any((one["do"], one["target"]) == (other["do"], other["target"]) for other in found):
                found.append({**one, "state": "pending"})
        return found

    def _is_due(self, one: Act) -> bool:
        """Tell whether an act has anything to do here: a step that is changed, or that is set and waits for it."""
        return not one.checks or any(
            self.results[step.number]["status"] == "would change" or self._waits.get(step.number)
            for step in self.steps
            if step.id in one.checks
        )

    @property
    def disturbs(self) -> bool:
        """Whether anything of it disturbs work on the node."""
        changing = {number for change in self.changes for number in change["steps"]}
        return any(self.steps[number].disturbs != "nothing" for number in changing) or any(
            str(one["disturbs"]) != "nothing" for one in self.acts
        )


def proposal_for(place: Planned, name: str, steps: list[Step]) -> Proposal:
    """
    Return what a mechanism proposes for steps: keys to retire first, then those to set.

    Args:
        place: with the files as they will be; gets those of this proposal.
        name: of the mechanism.
        steps: all of that mechanism.
    """
    gone = [step for step in steps if step.value == ABSENT]
    stay = [step for step in steps if step.value != ABSENT]
    retired = MECHANISMS[name].retire(place, gone) if gone else Proposal([], [])
    if not stay:
        return retired
    ahead = Planned(place, {**place.states, **_states(retired.changes)})
    proposed = MECHANISMS[name].propose(ahead, stay)
    changes = list(retired.changes)
    for change in proposed.changes:
        if change["kind"] == "file":
            add(changes, change)
        else:
            changes.append(change)
    return Proposal(changes, [*retired.commands, *proposed.commands])


def _states(changes: list[Json]) -> Json:
    return {change["target"]: change["after"] for change in changes if change["kind"] == "file"}


def _same_target(changes: list[Json], change: Json) -> Json | None:
    names = ("kind", "target", "key")
    return next((one for one in changes if all(one.get(name) == change.get(name) for name in names)), None)


def add(changes: list[Json], change: Json) -> None:
    """Add a change to others: one of the same target goes on from where the first began."""
    other = _same_target(changes, change)
    if other is None:
        changes.append(change)
    else:
        other.update(after=change["after"], steps=sorted({*other["steps"], *change["steps"]}))


def _result(step: Step) -> Json:
    return {
        "id": step.id, "subject": step.subject, "mechanism": step.mechanism, "key": step.key, "value": step.value,
        "status": "right", "why": "", "before": None, "after": None,
    }  # fmt: skip


def _stops(step: Step) -> bool:
    return step.mechanism == "unit" and step.value in ("disabled", "masked")


def _is_stale(step: Step, facets: Facets) -> bool:
    """Tell whether the node is otherwise than the plan saw it; values are compared in the mechanism's own words."""
    if not step.seen:
        return False
    told = {"running": facets.running, "next boot": facets.next_boot}
    same = MECHANISMS[step.mechanism].same
    return any(
        value is not None and told[name] is not None and not same(value, str(told[name]))
        for name, value in step.seen.items()
    )
