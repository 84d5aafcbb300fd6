"""What ``hwcheck plan`` would do about a finding, as lines of a page of ``hwcheck explain``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hwcheck.findings import Act, Remedy, Write
from hwcheck.mechanisms import DEEDS

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
    if remedy.by_hand:
        yield f"- hwcheck plan leaves it to a person{' otherwise' if remedy.worked_out else ''}: {remedy.by_hand}"


def _written(mechanism: str, key: str, value: object, *, opt_in: bool, more: str = "") -> str:
    how = f" ({_OPT_IN})" if opt_in else ""
    return f"- hwcheck plan writes {mechanism} {key} = {value}{how}{more}"


def _more(write: Write) -> str:
    restart = f"; {write.restart} has to be restarted" if write.restart else ""
    refused = f"; not where {write.refused_by} says that the node refuses it" if write.refused_by else ""
    return f"{restart}{refused}{'; cannot be undone' if write.irreversible else ''}"


def _done(act: Act) -> str:
    target = f" ({act.target})" if act.target else ""
    return f"- hwcheck plan: {DEEDS[act.do]}{target}{f' ({_OPT_IN})' if act.opt_in else ''}"
