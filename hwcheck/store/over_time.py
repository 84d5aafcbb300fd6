"""Questions over time: since when is something so, what changed before it, and how does each node stand."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import chain
from typing import Any

from sqlalchemy import Connection, and_, func, select

from hwcheck.store.content import Library, batches
from hwcheck.store.rows import NodeState, Waived
from hwcheck.store.spells import Cause, Folds, Seen, Spell, differences, spells_of
from hwcheck.store.tables import CHANGE, FINDING, NODE, RUN, WAIVER

_NODES = 200
"""Nodes that are looked at together."""
FLEET = "fleet"
"""Name and platform under which a run says what only all of its nodes together show."""
_OF_NODE = ("run_id", "position", "name", "at", "boot_id", "about", "fold", "platform", "simulated")


def history(connection: Connection, node: str, check: str, since: float) -> list[Spell]:
    """
    Find what is or was not well.

    Args:
        connection: on which a transaction is open.
        node: "" for all.
        check: id, family, or a shell pattern of ids; "" for all.
        since: look at runs from then on.

    Returns:
        Spells by node; with what changed before each.
    """
    library, found = Library(connection), []
    folds = Folds(library.get)
    for name, seen in _seen(connection, node, since):
        keys = {key for run in seen for key in run.bad if _is_wanted(key[0], check)}
        for spell in spells_of(name, seen, keys, folds):
            spell.message = library.get(spell.said)["message"]
            spell.causes = tuple(_causes(connection, spell, seen, library))
            found.append(spell)
    return found


def _is_wanted(check: str, pattern: str) -> bool:
    return not pattern or check == pattern or fnmatchcase(check, pattern if "*" in pattern else f"{pattern}.*")


def _causes(connection: Connection, spell: Spell, seen: Sequence[Seen], library: Library) -> Iterator[Cause]:
    """
    Go through what changed between the last run that told otherwise and the first of a spell.

    An accept and the apply in it both tell of one change.
    """
    if spell.before is None:
        return
    before, first = seen[spell.span[0]], seen[spell.span[1]]
    if before.boot and first.boot and before.boot != first.boot:
        yield Cause("boot", "", before.boot, first.boot)
    if before.about != first.about:
        yield from differences(library.get(before.about), library.get(first.about))
    query = (
        select(CHANGE, RUN.c.name.label("run"))
        .join(RUN, RUN.c.id == CHANGE.c.run_id)
        .where(CHANGE.c.node == spell.node, CHANGE.c.status == "changed")
        .where(CHANGE.c.at.between(before.at, first.at))
        .order_by(CHANGE.c.at, CHANGE.c.run_id, CHANGE.c.number)
    )
    written: dict[tuple[str, ...], Cause] = {}
    for row in connection.execute(query):
        told = (f"{row.mechanism} {row.key}", row.subject, row.before or "", row.after)
        written.setdefault(told, Cause(*told, row.run))
    yield from written.values()


def _seen(connection: Connection, node: str, since: float) -> Iterator[tuple[str, list[Seen]]]:
    """Go through nodes, each with its runs, the oldest first."""
    names = select(NODE.c.name).distinct().where(NODE.c.at >= since).order_by(NODE.c.name)
    wanted = list(connection.execute(names.where(NODE.c.name == node) if node else names).scalars())
    for some in batches(wanted, _NODES):
        found: dict[str, dict[tuple[int, int], Seen]] = {name: {} for name in some}
        here = and_(NODE.c.name.in_(some), NODE.c.at >= since)
        rows = (
            select(*NODE.c[_OF_NODE], RUN.c.name.label("run"))
            .join(RUN, RUN.c.id == NODE.c.run_id)
            .where(here)
            .order_by(NODE.c.name, NODE.c.at, NODE.c.run_id, NODE.c.position)
        )
        for row in connection.execute(rows):
            found[row.name][row.run_id, row.position] = Seen(
                row.run, row.at, row.boot_id, row.about, row.fold, row.platform, bool(row.simulated), {}
            )
        for row in connection.execute(_bad(here)):
            key = (row.check_id, row.subject)
            waived = Waived(*key, row.owner, row.reason, row.expires) if row.owner is not None else None
            found[row.name][row.run_id, row.position].bad[key] = (row.status, row.said, waived)
        yield from ((name, list(runs.values())) for name, runs in found.items())


def _bad(here: Any) -> Any:
    """Return the query for what is not well on nodes."""
    of_node = and_(FINDING.c.run_id == NODE.c.run_id, FINDING.c.position == NODE.c.position)
    of_finding = and_(WAIVER.c.run_id == FINDING.c.run_id, WAIVER.c.number == FINDING.c.number)
    columns = FINDING.c["run_id", "position", "check_id", "subject", "status", "said"]
    joined = NODE.join(FINDING, of_node).outerjoin(WAIVER, of_finding)
    wanted = FINDING.c.status.not_in(("pass", "skip"))
    return (
        select(NODE.c.name, *columns, *WAIVER.c["owner", "reason", "expires"]).select_from(joined).where(here, wanted)
    )


def standing(connection: Connection, since: float, today: dt.date) -> list[NodeState]:
    """
    Say how each node stands, by name.

    Args:
        connection: on which a transaction is open.
        since: look at runs from then on; a node whose last run is older stands as that run says.
        today: a waiver that expired before counts for nothing.
    """
    library = Library(connection)
    folds = Folds(library.get)
    newest = select(NODE.c.name, func.max(NODE.c.at)).group_by(NODE.c.name)
    old = connection.execute(newest.having(func.max(NODE.c.at) < since)).all()
    runs = chain(_seen(connection, "", since), *(_seen(connection, name, at) for name, at in old))
    found = {name: _state(name, seen, folds, today) for name, seen in runs if seen[-1].platform != FLEET}
    return [found[name] for name in sorted(found)]


def _state(name: str, seen: Sequence[Seen], folds: Folds, today: dt.date) -> NodeState:
    keys = {key for run in seen for key in run.bad}
    lasting = [spell for spell in spells_of(name, seen, keys, folds) if spell.ended is None]
    waived = tuple(spell.waived for spell in lasting if spell.waived is not None)
    counted = [one for one in lasting if one.waived is None or one.waived.expires < today.isoformat()]
    failing = tuple((spell.check, spell.subject) for spell in counted if spell.status == "fail")
    unknown = any(spell.status == "unknown" for spell in counted)
    last = seen[-1]
    state = "failing" if failing else "unknown" if unknown else "ok"
    return NodeState(name, state, last.run, last.at, last.simulated, failing, waived)
