"""What ``hwcheck plan`` would do about a finding, as lines of a page of ``hwcheck explain``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hwcheck.findings import Act, Remedy, Write
from hwcheck.mechanisms import DEEDS, MECHANISMS, SEEN

_OPT_IN = "only with opt-in"


def changes(remedy: Remedy | None, told: Iterable[dict[str, Any]] = ()) -> Iterator[str]:
    """
    Say what a remedy writes and does, or why it does not.

    Args:
        remedy: of the check.
        told: the writes of its profile entry, for an entry that has no figure yet: a site layer brings the value.
    """
    if remedy is None:
        return
    told = list(told)
    for write in remedy.writes:
        yield _written(write.mechanism, write.key, write.value, opt_in=write.opt_in, more=_more(write))
    for one in () if remedy.writes else told:
        opt_in = bool(one.get("opt_in"))
        value = one.get("value", "the value that a site layer wants")
        yield _written(one["mechanism"], one["key"], value, opt_in=opt_in)
    for act in remedy.acts:
        yield _done(act)
    if remedy.worked_out:
        yield f"- hwcheck plan works out from the values: {remedy.worked_out}"
    yield from _tried(mechanisms_of(remedy) or [one["mechanism"] for one in told])
    if remedy.by_hand:
        yield f"- hwcheck plan leaves it to a person{' otherwise' if remedy.worked_out else ''}: {remedy.by_hand}"


def _written(mechanism: str, key: str, value: object, *, opt_in: bool, more: str = "") -> str:
    how = f" ({_OPT_IN})" if opt_in else ""
    return f"- hwcheck plan writes {mechanism} {key} = {value}{how}{more}"


def mechanisms_of(remedy: Remedy | None) -> list[str]:
    """Return the mechanisms by which a remedy writes; of what is worked out, the one that its words name first."""
    if remedy is None:
        return []
    named = [word for word in remedy.worked_out.split() if word in MECHANISMS][:1]
    return list(dict.fromkeys((*(write.mechanism for write in remedy.writes), *named)))


def _tried(used: Iterable[str]) -> Iterator[str]:
    """Say of mechanisms how far they can be relied on."""
    by_seen: dict[str, list[str]] = {}
    for name in used:
        by_seen.setdefault(MECHANISMS[name].seen, []).append(name)
    for seen, names in by_seen.items():
        yield f"- {', '.join(names)} seen: {seen} ({SEEN[seen]})"


def _more(write: Write) -> str:
    restart = f"; {write.restart} has to be restarted" if write.restart else ""
    refused = f"; not where {write.refused_by} says that the node refuses it" if write.refused_by else ""
    return f"{restart}{refused}{'; cannot be undone' if write.irreversible else ''}"


def _done(act: Act) -> str:
    target = f" ({act.target})" if act.target else ""
    return f"- hwcheck plan: {DEEDS[act.do]}{target}{f' ({_OPT_IN})' if act.opt_in else ''}"
