"""
The stages of a run on one node. Each takes a request (JSON) and returns an answer (JSON); nothing else is called.

=========  ==========================================================================================================
check      what would be changed, with both texts of every file; takes no lease, writes nothing
prepare    lease, proof of idleness, proposal, journal; returns the journal, which the controller keeps before going on
commit     makes the changes of the journal, restarts what must be, reads everything back, gives the lease back
undo       takes back what the run changed, where it is still as the run left it
act        one act alone (reboot), under the run's lease
release    gives the lease back
held       what our files hold: mechanism, key, line and the check that asked for it; a plan finds orphans by it
=========  ==========================================================================================================

Status of a step: ``right`` (nothing to do), ``would change``, ``changed``, ``refused`` (with the reason; nothing was
written), ``failed`` (written, refused or without effect; the step's changes were taken back), ``stale`` (the node is no
longer as the plan saw it).
"""

from __future__ import annotations

import os
from typing import Callable

from . import acts, idle, lease
from . import journal as journals
from . import mechanisms as _registered  # noqa: F401 - importing it is what it is for
from .differences import difference
from .making import Maker
from .mechanism import MECHANISMS, held
from .place import Json, Place, WriteError, words_of
from .proposing import Proposed
from .step import read_acts, read_steps
from .undoing import undo_all

FORMAT = "hwcheck.apply/1"


def answer(request: Json) -> Json:
    """
    Carry out one stage.

    Args:
        request: ``stage``, and by stage ``run``, ``holder``, ``steps``, ``acts``, ``journal``, ``root`` and
            ``live_root`` (see :class:`Place`), ``idle`` (``ignore``: names of programs that are no work; ``skip``: true
            when an operator vouches for it).

    Returns:
        ``ok``, ``why``, ``changed``, ``results``, ``journal``, ``begun`` (commit: something may have been written),
        ``differences`` (text of each change).
    """
    place = Place(str(request.get("root") or "/"), live=bool(request.get("live_root")))
    stage = STAGES.get(str(request.get("stage")))
    try:
        if stage is None:
            raise WriteError(f"no stage {request.get('stage')!r}; there are {', '.join(STAGES)}")
        if not place.root and os.geteuid() != 0 and request["stage"] not in ("check", "held"):
            raise WriteError("settings of a node are written by root; become root (become: true, or sudo)")
        return {"format": FORMAT, "ok": True, "why": "", "changed": False, **stage(place, request)}
    except (WriteError, OSError) as error:
        return {"format": FORMAT, "ok": False, "why": words_of(error), "changed": False, "results": []}


def check(place: Place, request: Json) -> Json:
    """Say what would be changed."""
    proposed = Proposed(place, request)
    changed = bool(proposed.changes or proposed.commands or proposed.acts)
    return {
        "changed": changed, "results": proposed.results,
        "changes": proposed.changes,
        "acts": proposed.acts, "disturbs": proposed.disturbs,
        "differences": [difference(change) for change in proposed.changes],
        "workers": idle.workers(place, _ignored(request)) if proposed.disturbs else [],
    }  # fmt: skip


def prepare(place: Place, request: Json) -> Json:
    """Take the lease, prove idleness, and write the journal; nothing is changed yet."""
    run = journals.check_run(request.get("run"))
    with lease.locked(place):
        old = journals.load(place, run)
        if old is not None and old["state"] in ("undoing", "undone", "partly undone"):
            raise WriteError(f"run {run} was taken back on this node; another change needs a run of its own")
        lease.take(place, run, str(request.get("holder") or "?")[:200])
        try:
            return _prepared(place, request, run, old)
        except (OSError, WriteError):
            if old is None:
                lease.release(place, run)  # nothing was written, so nobody has to come back for it
            raise


def _prepared(place: Place, request: Json, run: str, old: Json | None) -> Json:
    proposed = Proposed(place, request)
    commands, done = proposed.commands, proposed.acts
    if old is None:
        journal = {**journals.new(run, place), "changes": proposed.changes, "commands": commands, "acts": done}
    else:
        journal = journals.merge(old, proposed.changes, commands, done)
        journal["boot_id"] = place.boot_id()
    pending = _pending(journal)
    if not proposed.changes and not pending:
        lease.release(place, run)
        return {"results": proposed.results, "journal": journal, "pending": False}
    disturbs = proposed.disturbs or any(one.get("disturbs", "nothing") != "nothing" for one in pending)
    if disturbs:
        _demand_idle(place, request)
    journal.update(results=proposed.results, state="prepared", disturbs=disturbs or journal.get("disturbs", False))
    journals.save(place, journal)
    return {"results": proposed.results, "journal": journal, "pending": True}


def _pending(journal: Json) -> list[Json]:
    return [one for one in (*journal["commands"], *journal["acts"]) if one["state"] in ("pending", "begun")]


def _demand_idle(place: Place, request: Json) -> None:
    """
    Make sure that nobody works here.

    Raises:
        WriteError: somebody does.
    """
    if (request.get("idle") or {}).get("skip"):
        return
    found = idle.workers(place, _ignored(request))
    if found:
        raise WriteError(f"the node is not idle, nothing was written: {'; '.join(found[:5])}")


def _ignored(request: Json) -> tuple[str, ...]:
    names = (request.get("idle") or {}).get("ignore") or []
    return tuple(str(name) for name in names)


def commit(place: Place, request: Json) -> Json:
    """Make the changes of the run's journal."""
    run = journals.check_run(request.get("run"))
    with lease.locked(place):
        lease.demand(place, run)
        journal = journals.load(place, run) if not place.is_image else journals.checked(request.get("journal"), run)
        if journal is None:
            raise WriteError(f"there is no journal of run {run} here; prepare comes first")
        if any(one.get("disturbs", "nothing") != "nothing" for one in journal["acts"]) or _disturbs(journal, request):
            _demand_idle(place, request)
        journal["state"] = "begun"
        journals.save(place, journal)
        try:
            maker = Maker(place, journal)
            maker.make_all(read_steps(request.get("steps", []), MECHANISMS))
            good = all(one["status"] in ("right", "changed", "refused", "stale") for one in journal["results"])
            good = good and not any(one["state"] == "failed" for one in (*journal["acts"], *journal["commands"]))
            journal.update(state="done" if good else "failed", ended=journals.now())
            journals.save(place, journal)
        except (OSError, WriteError) as error:
            return _broken_off(journal, words_of(error))
        if not maker.left and not any(one["state"] in ("begun", "failed") for one in journal["acts"]):
            lease.release(place, run)  # what failed was taken back whole: nobody has to come back for it
    changed = any(one["status"] == "changed" for one in journal["results"]) or bool(journal["acts"])
    return {
        "changed": changed, "results": journal["results"], "journal": journal, "ok": good, "why": _wrong(journal),
        "begun": True, "differences": [difference(change) for change in journal["changes"]],
    }  # fmt: skip


def _broken_off(journal: Json, why: str) -> Json:
    """Answer for a run that could not go on between two of its changes; its lease stays until somebody comes back."""
    told = f"broken off half way: {why}; hwcheck apply --resume or rollback {journal['run']} comes back for it"
    return {
        "changed": True, "results": journal["results"], "journal": journal, "ok": False, "why": told, "begun": True,
    }  # fmt: skip


def _disturbs(journal: Json, request: Json) -> bool:
    steps = read_steps(request.get("steps", []), MECHANISMS)
    changing = {number for change in journal["changes"] for number in change["steps"]}
    return any(step.disturbs != "nothing" for step in steps if step.number in changing)


def _wrong(journal: Json) -> str:
    told = [f"{one['id']}: {one['why']}" for one in journal["results"] if one["status"] == "failed"]
    told += [f"{one['do']} {one['target']}: {one['why']}" for one in journal["acts"] if one["state"] == "failed"]
    return "; ".join(told)


def undo(place: Place, request: Json) -> Json:
    """Take back what a run changed; what somebody else has changed since is left, and said."""
    run = journals.check_run(request.get("run"))
    with lease.locked(place):
        journal = _journal_to_undo(place, run, request.get("journal"))
        if journal is None:
            # The run changed nothing here, and must not begin to: an orphan of its controller may be on its way.
            journal = journals.new(run, place)
        if journal.get("disturbs") or any(one.get("disturbs", "nothing") != "nothing" for one in journal["acts"]):
            _demand_idle(place, request)
        lease.take(place, run, str(request.get("holder") or "?")[:200])
        acts.call_off_reboot(place, journal)
        journal["state"] = "undoing"
        journals.save(place, journal)
        left, back = undo_all(place, journal)
        journal.update(state="undone" if not left else "partly undone", ended=journals.now())
        journals.save(place, journal)
        lease.release(place, run)
    return {"changed": back > 0, "results": left, "journal": journal, "undone": back, "ok": True}


def _journal_to_undo(place: Place, run: str, kept: Json | None) -> Json | None:
    """Return the node's journal; the controller's copy where it is lost or damaged, None where there is neither."""
    copy = None if kept is None else journals.checked(kept, run)
    try:
        return journals.load(place, run) or copy
    except journals.DamagedError:
        if copy is None:
            raise
        return copy


def act(place: Place, request: Json) -> Json:
    """Carry out acts alone, as a run of its own or within one."""
    run = journals.check_run(request.get("run"))
    with lease.locked(place):
        wanted = [{**one._asdict(), "state": "pending"} for one in read_acts(request.get("acts", []))]
        if any(one["disturbs"] != "nothing" for one in wanted):
            _demand_idle(place, request)
        lease.take(place, run, str(request.get("holder") or "?")[:200])
        journal = journals.load(place, run) or journals.new(run, place)
        journal["acts"] += wanted
        wrong = acts.carry_out(place, journal, lambda _: True)
        if not any(one["do"] == "reboot" and one["state"] == "begun" for one in journal["acts"]):
            lease.release(place, run)
    return {"changed": bool(wanted), "results": [], "journal": journal, "ok": not wrong, "why": "; ".join(wrong)}


def release(place: Place, request: Json) -> Json:
    """Give the lease back."""
    run = journals.check_run(request.get("run"))
    with lease.locked(place):
        lease.release(place, run)
    return {"results": []}


def tell_held(place: Place, _request: Json) -> Json:
    """Say what our files hold."""
    return {"results": [], "held": held(place)}


STAGES: dict[str, Callable[[Place, Json], Json]] = {
    "check": check, "prepare": prepare, "commit": commit, "undo": undo, "act": act, "release": release,
    "held": tell_held,
}  # fmt: skip
