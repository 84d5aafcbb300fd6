"""
Keys that hwcheck wrote earlier and that no check of the present profile and site wants any more: they are retired.

Only what our own files hold comes into question (``settings.held``), and of that only what a check asked for: what a
role was told to write (its ids have no family of a check) is its playbook's. Whoever plans without the site layer that
wanted a key will see it among those to retire, and can leave it at that.

A check that works out only with a node's values what it writes is taken to want what it has written.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from hwcheck.checks import RELATIONS
from hwcheck.checks.expected import remedy_of
from hwcheck.facts import Snapshot
from hwcheck.findings import Remedy, Write
from hwcheck.mechanisms import ABSENT, MECHANISMS
from hwcheck.plan.observe import NEXT_BOOT, RUNNING, unit_names
from hwcheck.plan.words import Step
from hwcheck.profiles import Profile

Remedies = dict[str, list[Remedy]]
"""Check id → what it may do."""


def retired(snapshot: Snapshot, profile: Profile, only: Collection[str] = ()) -> Iterator[Step]:
    """
    Go through the steps that retire keys.

    Args:
        snapshot: facts of the node.
        profile: that judges it, with the site's layers.
        only: families that are planned for; () for all.
    """
    remedies = _remedies(profile)
    families = {id.partition(".")[0] for id in (*profile.checks, *remedies)}
    for held in snapshot.value("settings.held") or ():
        family = held["check"].partition(".")[0]
        kind = MECHANISMS.get(held["mechanism"])
        if kind is None or family not in families or (only and family not in only):
            continue
        subject, _, key = held["key"].partition(" ") if kind.of_subject else ("", "", held["key"])
        if not key or _is_wanted(held["check"], kind.name, key, remedies):
            continue
        text = f"hwcheck keeps {held['line']!r} for it, which no check of this profile and site wants any more"
        yield Step(
            held["check"], subject, kind.name, key, ABSENT, {RUNNING: None, NEXT_BOOT: None}, "nothing", text=text
        )


def _remedies(profile: Profile) -> Remedies:
    found: Remedies = {}
    for id, entry in profile.checks.items():
        remedy = remedy_of(entry.data)
        if remedy is not None:
            found.setdefault(id, []).append(remedy)
    for relation in RELATIONS.values():
        for id in (relation.id, *relation.ids):
            found.setdefault(id, []).extend([relation.remedy] if relation.remedy is not None else [])
    return found


def _is_wanted(check: str, mechanism: str, key: str, remedies: Remedies) -> bool:
    writes = [write for some in remedies.values() for remedy in some for write in remedy.writes]
    if any(_is_of(write, mechanism, key) for write in writes):
        return True
    own = remedies.get(check, [])
    if any(remedy.worked_out for remedy in own):
        return True
    # What a mechanism keeps by another one's file (a unit's drop-in that loads a module) goes with its own key.
    others = {write.mechanism for remedy in own for write in remedy.writes}
    return bool(others) and mechanism not in others


def _is_of(write: Write, mechanism: str, key: str) -> bool:
    """Tell whether a write is of this key: ``{subject}`` stands for any, an argument of several counts by its word."""
    if write.mechanism != mechanism:
        return False
    if write.key in MECHANISMS[mechanism].several:
        return key == f"{write.key}={write.value}"
    unit, blank, rest = write.key.partition(" ")
    spelled = [f"{name}{blank}{rest}" for name in unit_names(unit)] if mechanism == "unit_property" else [write.key]
    return any(re.fullmatch(".+".join(map(re.escape, one.split("{subject}"))), key) for one in spelled)
