"""Questions to the tables: a run, runs, measurements, journals."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, func, select

from hwcheck.errors import StoreError
from hwcheck.store.content import Library
from hwcheck.store.record import FORMAT, Record
from hwcheck.store.rows import Kept, Sample
from hwcheck.store.tables import CHANGE, FINDING, JOURNAL, MEASUREMENT, NODE, RUN, WAIVER


def load(connection: Connection, name: str) -> dict[str, Any]:
    """
    Return a run as run JSON.

    Raises:
        StoreError: there is none of that name.
    """
    row = connection.execute(select(RUN).where(RUN.c.name == name)).one_or_none()
    if row is None:
        raise StoreError(f"no run {name} is kept")
    library = Library(connection)
    nodes = connection.execute(select(NODE).where(NODE.c.run_id == row.id).order_by(NODE.c.position)).all()
    folds = list(dict.fromkeys(node.fold for node in nodes))
    texts = library.many([*folds, *(name for node in nodes for name in (node.about, node.rest))])
    run = {
        **library.get(row.rest),
        "run": row.name,
        "nodes": [_node(node, texts) for node in nodes],
        "findings": _findings(connection, row.id, [node.name for node in nodes], library),
        "measurements": _measured(connection, row.id, library),
    }
    changes = [_change(one) for one in connection.execute(_of_run(CHANGE, row.id))]
    if changes:
        run["changes"] = changes
    places = {fold: number for number, fold in enumerate(folds)}
    told = {"format": FORMAT, "run": run, "folds": [texts[fold] for fold in folds]}
    return Record.of({**told, "fold_of": [places[node.fold] for node in nodes]}).unfold()


def _of_run(table: Any, run: int) -> Any:
    return select(table).where(table.c.run_id == run).order_by(table.c.number)


def _node(row: Any, texts: dict[str, Any]) -> dict[str, Any]:
    about = dict(texts[row.about])
    about |= {"boot_id": row.boot_id, "taken": row.taken, "cohort": row.cohort} if about else {}
    told = {"name": row.name, "platform": row.platform, "verdict": row.verdict, "simulated": bool(row.simulated)}
    return {**told, **texts[row.rest], "about": about}


def _findings(connection: Connection, run: int, nodes: list[str], library: Library) -> list[dict[str, Any]]:
    waived = {row.number: row for row in connection.execute(_of_run(WAIVER, run))}
    rows = connection.execute(_of_run(FINDING, run)).all()
    texts = library.many({row.said for row in rows})
    return [
        {
            "id": row.number, "node": nodes[row.position], "check": row.check_id, "subject": row.subject,
            "status": row.status, "urgency": row.urgency, **texts[row.said],
            "waived": {key: getattr(waived[row.number], key) for key in ("owner", "reason", "expires")}
            if row.number in waived else None,
        }
        for row in rows
    ]  # fmt: skip


def _measured(connection: Connection, run: int, library: Library) -> list[dict[str, Any]]:
    rows = connection.execute(_of_run(MEASUREMENT, run)).all()
    texts = library.many({row.conditions for row in rows})
    keys = ("node", "name", "subject", "value", "unit")
    return [{**{key: getattr(row, key) for key in keys}, "conditions": texts[row.conditions]} for row in rows]


def _change(row: Any) -> dict[str, Any]:
    keys = ("node", "subject", "mechanism", "key", "status", "why")
    told = {key: getattr(row, key) for key in keys}
    return {**told, "check": row.check_id, "from": row.before, "to": row.after}


def runs(connection: Connection, kind: str, node: str, limit: int) -> list[Kept]:
    """Return runs, the newest first."""
    query = select(RUN).order_by(RUN.c.at.desc(), RUN.c.id.desc()).limit(limit)
    if kind:
        query = query.where(RUN.c.kind == kind)
    if node:
        query = query.where(RUN.c.id.in_(select(NODE.c.run_id).where(NODE.c.name == node)))
    keys = ("name", "kind", "at", "ended", "who", "verdict", "nodes", "doubt")
    return [Kept(*(getattr(row, key) for key in keys)) for row in connection.execute(query)]


def oldest(connection: Connection) -> float | None:
    """Return when the oldest run began; None where none is kept."""
    at: float | None = connection.execute(select(func.min(RUN.c.at))).scalar()
    return at


def measurements(connection: Connection, name: str, node: str, cohort: str, limit: int) -> list[Sample]:
    """Return measurements, the newest first."""
    query = select(MEASUREMENT, RUN.c.name.label("run")).join(RUN, RUN.c.id == MEASUREMENT.c.run_id)
    for column, wanted in ((MEASUREMENT.c.name, name), (MEASUREMENT.c.node, node), (MEASUREMENT.c.cohort, cohort)):
        if wanted:
            query = query.where(column == wanted)
    order = (MEASUREMENT.c.at.desc(), MEASUREMENT.c.run_id.desc(), MEASUREMENT.c.number)
    rows = connection.execute(query.order_by(*order).limit(limit)).all()
    texts = Library(connection).many({row.conditions for row in rows})
    return [
        Sample(
            row.node, row.cohort, row.name, row.subject, row.value, row.unit, row.at, texts[row.conditions], row.run
        )
        for row in rows
    ]  # fmt: skip


def journals(connection: Connection, name: str) -> dict[str, Any]:
    """Return the copies of journals that are kept with a run, by node."""
    query = select(JOURNAL.c.node, JOURNAL.c.body).join(RUN, RUN.c.id == JOURNAL.c.run_id).where(RUN.c.name == name)
    found = {row.node: row.body for row in connection.execute(query)}
    texts = Library(connection).many(found.values())
    return {node: texts[body] for node, body in found.items()}
