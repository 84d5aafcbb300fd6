"""A request against this node: what is right already, what would be changed, what is refused and why."""

from __future__ import annotations

from .mechanism import MECHANISMS, Facets
from .place import Json, Place, WriteError, words_of
from .step import Step, read_acts, read_steps


class Proposed:
    """
    What a request comes to on this node.

    Attributes:
        results: of each step, in order.
        changes, commands, acts: for the journal.
    """

    def __init__(self, place: Place, request: Json) -> None:
        self._place = place
        self.steps = read_steps(request.get("steps", []), MECHANISMS)
        self.results = [_result(step) for step in self.steps]
        self.changes: list[Json] = []
        self.commands: list[Json] = []
        for name in sorted({step.mechanism for step in self.steps}):
            self._propose(name, [step for step in self.steps if step.mechanism == name])
        self.acts = self._acts(request)

    def _propose(self, name: str, steps: list[Step]) -> None:
        wanted = [step for step in steps if self._look(step)]
        if not wanted:
            return
        try:
            proposal = MECHANISMS[name].propose(self._place, wanted)
        except (OSError, WriteError) as error:
            self._refuse([step.number for step in wanted], words_of(error))
            return
        changing = {number for change in proposal.changes for number in change["steps"]}
        for change in proposal.changes:
            why = "" if change["kind"] != "file" else self._place.is_writable(change["target"])
            if why:
                self._refuse(change["steps"], why)
        good = [change for change in proposal.changes if self._open(change["steps"])]
        self.changes += good
        self.commands += [
            {"words": one.words, "seconds": one.seconds, "steps": one.steps, "state": "pending"}
            for one in proposal.commands
            if self._open(one.steps)
        ]
        for step in wanted:
            result = self.results[step.number]
            if result["status"] == "would change" and step.number not in changing and not step.restart:
                result.update(status="refused", why="what counts is not what is set, and nothing here changes that")

    def _look(self, step: Step) -> bool:
        """Read a step's facets; tells whether something is to be proposed for it."""
        result = self.results[step.number]
        try:
            facets = MECHANISMS[step.mechanism].facets(self._place, step)
        except (OSError, WriteError) as error:
            result.update(status="refused", why=words_of(error))
            return False
        result["before"] = facets.told()
        if facets.is_right:
            result["status"] = "right"
        elif facets.refused:
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

    def _open(self, numbers: list[int]) -> bool:
        """Tell whether at least one of these steps is still to be made."""
        return any(self.results[number]["status"] == "would change" for number in numbers)

    def _acts(self, request: Json) -> list[Json]:
        """Restart what a change needs restarted, once each, then what is asked for."""
        wanted: list[Json] = [
            {"do": "restart", "target": step.restart, "disturbs": step.disturbs}
            for step in self.steps
            if step.restart and self.results[step.number]["status"] == "would change" and not self._place.is_image
        ]
        wanted += [{**one._asdict(), "asked": True} for one in read_acts(request.get("acts", []))]
        found: list[Json] = []
        for one in wanted:
            if not any((one["do"], one["target"]) == (other["do"], other["target"]) for other in found):
                found.append({**one, "state": "pending"})
        return found

    @property
    def disturbs(self) -> bool:
        """Whether anything of it disturbs work on the node."""
        changing = {number for change in self.changes for number in change["steps"]}
        return any(self.steps[number].disturbs != "nothing" for number in changing) or any(
            str(one["disturbs"]) != "nothing" for one in self.acts
        )


def _result(step: Step) -> Json:
    return {
        "id": step.id, "subject": step.subject, "mechanism": step.mechanism, "key": step.key, "value": step.value,
        "status": "right", "why": "", "before": None, "after": None,
    }  # fmt: skip


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
