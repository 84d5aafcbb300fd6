"""The changes of a journal, made in their order and read back; what fails is taken back, the rest stays."""

from __future__ import annotations

import errno

from . import acts
from .change import ACT, PERSIST, VOLATILE, look, make
from .mechanism import read
from .place import Json, Place, WriteError, words_of
from .step import Step
from .undoing import take_back

REFUSALS = {
    errno.EPERM: "the kernel or the firmware keeps this to itself",
    errno.EACCES: "the kernel lets nobody write it",
    errno.EROFS: "the file system is read-only",
    errno.EBUSY: "the kernel refuses it in the present state: in use, or fixed by another setting",
    errno.EIO: "the driver or the kernel refuses it: it manages this itself",
    errno.EOPNOTSUPP: "the device does not support it",
    errno.ENODEV: "the device is gone, or does not support it",
}
"""What an error of a running value says: not allowed here. Others (EINVAL, ENOSPC) are failures."""


class Maker:
    """
    Makes the changes of a journal, phase by phase; a step that fails does not stop the others.

    Attributes:
        failed, refused: number of a step → why.
        left: what of these could not be taken back.
    """

    def __init__(self, place: Place, journal: Json) -> None:
        self._place = place
        self._journal = journal
        self.failed: dict[int, str] = {}
        self.refused: dict[int, str] = {}
        self.left: list[str] = []

    def make_all(self, steps: list[Step]) -> None:
        """Go through the phases, read everything back, take back what failed, and reboot when that was asked for."""
        self._phase(PERSIST)
        for command in self._journal["commands"]:
            self._command(command)
        acts.carry_out(self._place, self._journal, lambda one: one["do"] != "reboot")
        self._phase(ACT)
        self._phase(VOLATILE)
        for step in steps:
            self._verify(step)
        wrong = {**self.failed, **self.refused}
        self.left = take_back(self._place, self._journal, steps, set(wrong)) if wrong else []
        for number, why in wrong.items():
            status = "refused" if number in self.refused and not self.left else "failed"
            self._journal["results"][number].update(status=status, why="; ".join([why, *self.left]))
        for one in self._journal["acts"]:
            if one["state"] == "pending" and one["do"] == "reboot" and self._is_needless(one):
                one["state"] = "needless"
        acts.carry_out(self._place, self._journal, lambda one: one["do"] == "reboot" and not self.failed)

    def _is_needless(self, one: Json) -> bool:
        """Tell whether all steps for whose sake an act is done were refused after all."""
        results = [result for result in self._journal["results"] if result["id"] in one.get("checks", ())]
        return bool(results) and all(result["status"] in ("refused", "stale") for result in results)

    def _is_lost(self, steps: list[int]) -> bool:
        return all(number in self.failed or number in self.refused for number in steps)

    def _phase(self, phase: str) -> None:
        for change in self._journal["changes"]:
            if change["phase"] == phase and not self._is_lost(change["steps"]):
                self._change(change)

    def _change(self, change: Json) -> None:
        try:
            now = look(self._place, change)
            if now == change["after"]:
                return
            if now != change["before"] and now not in change.get("earlier", []):
                raise WriteError(f"{change['target']} has changed since the journal was written")
            make(self._place, change)
        except OSError as error:
            says = REFUSALS.get(error.errno or 0) if change["kind"] != "file" else None
            told = self.failed if says is None else self.refused
            why = f"{change['target']}: {words_of(error)}" + (f" ({says})" if says else "")
            told.update(dict.fromkeys(change["steps"], why))
        except WriteError as error:
            self.failed.update(dict.fromkeys(change["steps"], str(error)))

    def _command(self, command: Json) -> None:
        if command["state"] == "done" or self._is_lost(command["steps"]):
            return
        try:
            self._place.run(command["words"], command["seconds"])
        except WriteError as error:
            command.update(state="failed", why=str(error))
            self.failed.update(dict.fromkeys(command["steps"], str(error)))
        else:
            command["state"] = "done"

    def _verify(self, step: Step) -> None:
        """Read a step's facets once more; what is not right then has failed, whatever the writes said."""
        result = self._journal["results"][step.number]
        if result["status"] not in ("would change", "changed", "failed"):
            return
        try:
            facets = read(self._place, step)
        except (OSError, WriteError) as error:
            self.failed.setdefault(step.number, words_of(error))
            return
        result["after"] = facets.told()
        if self._is_lost([step.number]):
            return
        kept = facets.next_boot == facets.wanted
        if facets.is_right or (kept and (self._waits_for_boot() or self._place.is_image)):
            result.update(status="changed", why="" if facets.is_right or not facets.waits else facets.waits)
        elif kept and facets.waits and not step.restart:
            result.update(status="changed", why=facets.waits)
        else:
            what = "the next boot has" if facets.counts in (None, facets.wanted) else "what counts is"
            counts = facets.next_boot if facets.counts in (None, facets.wanted) else facets.counts
            self.failed[step.number] = f"written without effect: {what} {counts}, not {facets.wanted}"

    def _waits_for_boot(self) -> bool:
        """Tell whether this run reboots the node when it ends here."""
        return any(
            one["do"] == "reboot"
            and (one["state"] == "pending" or (one["state"] == "begun" and one["boot_id"] == self._place.boot_id()))
            for one in self._journal["acts"]
        )
