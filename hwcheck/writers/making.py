"""The changes of a journal, made in their order and read back."""

from __future__ import annotations

from . import acts
from .change import ACT, PERSIST, VOLATILE, look, make
from .mechanism import MECHANISMS
from .place import Json, Place, WriteError, words_of
from .step import read_steps
from .undoing import undo_one


class Maker:
    """Makes the changes of a journal, phase by phase; a step that fails has its changes taken back, others go on."""

    def __init__(self, place: Place, journal: Json) -> None:
        self._place = place
        self._journal = journal
        self._failed: dict[int, str] = {}

    def make_all(self) -> None:
        """Go through the phases."""
        self._phase(PERSIST)
        for command in self._journal["commands"]:
            self._command(command)
        acts.carry_out(self._place, self._journal, lambda one: one["do"] != "reboot")
        self._phase(ACT)
        self._phase(VOLATILE)
        for number, why in self._failed.items():
            self._journal["results"][number].update(status="failed", why=why)
            self._take_back(number)
        acts.carry_out(self._place, self._journal, lambda one: one["do"] == "reboot" and not self._failed)

    def _phase(self, phase: str) -> None:
        for change in self._journal["changes"]:
            if change["phase"] == phase and not all(number in self._failed for number in change["steps"]):
                self._change(change)

    def _change(self, change: Json) -> None:
        try:
            now = look(self._place, change)
            if now == change["after"]:
                return
            if now != change["before"]:
                raise WriteError(f"{change['target']} has changed since the journal was written")
            make(self._place, change)
        except (OSError, WriteError) as error:
            self._failed.update(dict.fromkeys(change["steps"], words_of(error)))

    def _command(self, command: Json) -> None:
        if command["state"] == "done" or all(number in self._failed for number in command["steps"]):
            return
        try:
            self._place.run(command["words"], command["seconds"])
        except WriteError as error:
            command.update(state="failed", why=str(error))
            self._failed.update(dict.fromkeys(command["steps"], str(error)))
        else:
            command["state"] = "done"

    def _take_back(self, number: int) -> None:
        """Undo the changes of one failed step that no good step shares."""
        mine = [one for one in self._journal["changes"] if number in one["steps"]]
        for change in reversed(mine):
            if all(other in self._failed for other in change["steps"]):
                undo_one(self._place, change)


def verify(place: Place, journal: Json, request: Json) -> None:
    """Read every step's facets once more; what is not right then has failed, whatever the writes said."""
    for step in read_steps(request.get("steps", []), MECHANISMS):
        result = journal["results"][step.number]
        if result["status"] not in ("would change", "failed"):
            continue
        try:
            facets = MECHANISMS[step.mechanism].facets(place, step)
        except (OSError, WriteError) as error:
            result.update(status="failed", why=words_of(error))
            continue
        result["after"] = facets.told()
        if result["status"] == "failed":
            continue
        waits = any(one["do"] == "reboot" and one["state"] == "begun" for one in journal["acts"])
        right = facets.is_right or (facets.next_boot == facets.wanted and (waits or place.is_image))
        needs_boot = facets.next_boot == facets.wanted and MECHANISMS[step.mechanism].needs_boot
        if right or needs_boot:
            result.update(status="changed", why="" if right else "counts from the next boot")
        else:
            counts = facets.effective if facets.effective is not None else facets.running
            result.update(status="failed", why=f"written without effect: what counts is {counts}, not {facets.wanted}")
