"""A record into the tables, in the transaction of the caller; and out of them, what is too old."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Table, delete, func, select

from hwcheck.errors import StoreError
from hwcheck.store.content import Contents, batches, remove_unused, unless_there
from hwcheck.store.record import Record, canonical, understanding
from hwcheck.store.tables import CHANGE, FINDING, JOURNAL, MEASUREMENT, NODE, RUN, WAIVER

_ROWS = 2000
_LONG = 300
"""Characters of a name or subject: an index of PostgreSQL takes no more than 2700 bytes a row."""
_RESUMED = ("apply", "accept")
"""Kinds of runs that may go on after their end: what is kept of such a one is replaced."""

# Keys of run JSON that have tables or columns of their own; all others lie in contents.
_OF_RUN = ("nodes", "findings", "measurements", "changes", "run")
_OF_NODE = ("name", "platform", "verdict", "simulated", "about")
_OF_ABOUT = ("boot_id", "taken", "cohort")
_OF_FINDING = ("id", "node", "check", "subject", "status", "urgency", "waived")

Row = dict[str, Any]


class NameTakenError(StoreError):
    """A run that is kept has this name and says something else; trying again is of no use."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """
    A run that is ready to be written.

    Attributes:
        record: the run.
        journals: by node, what was there before it was changed; JSON values.
        name: of the run.
        digest: equal for equal runs.
        row: of the run itself.
        tables: rows of each other table.
        contents: what rows name.
    """

    record: Record
    journals: Mapping[str, Any]
    name: str
    digest: str
    row: Row
    tables: dict[Table, list[Row]]
    contents: Contents


def parcel(record: Record, journals: Mapping[str, Any], now: float) -> Parcel:
    """
    Make a run ready; one without a name gets one that follows from what it says, so that it is not kept twice.

    Args:
        record: the run.
        journals: by node.
        now: by the controller's clock, seconds since 1970.

    Raises:
        StoreError: it is damaged, so that it will never be kept.
    """
    with understanding():
        told = {**record.to_json(), "run": {key: value for key, value in record.run.items() if key != "run"}}
        digest = hashlib.sha256(canonical([told, journals]).encode()).hexdigest()[:32]
        stamp = dt.datetime.fromtimestamp(_time(record.run["started"]), dt.UTC).strftime("%Y%m%d-%H%M%S")
        name = str(record.run.get("run") or f"{stamp}-{digest[:8]}")
        times, contents = _times(record.run, now), Contents()
        row = {**_run(record.run, contents), **times, "name": _text(name), "digest": digest, "kept": now}
        tables = _tables(record, journals, times["at"], contents)
    return Parcel(record, journals, name, digest, row, tables, contents)


def write(connection: Connection, given: Parcel) -> None:
    """
    Write a run, or see that it is there.

    Raises:
        NameTakenError: another run of that name is kept.
    """
    number = _new(connection, given.row)
    if number is None:
        return
    given.contents.write(connection)
    for table, rows in given.tables.items():
        for some in batches(rows, _ROWS):
            connection.execute(table.insert(), [{"run_id": number, **row} for row in some])


def _run(run: dict[str, Any], contents: Contents) -> Row:
    return {
        "kind": _text(run.get("kind", "check")), "who": _text(run.get("who", "")), "tool": _text(run["tool"]),
        "verdict": _text(run["verdict"]), "nodes": len(run["nodes"]),
        "rest": contents.hash({key: value for key, value in run.items() if key not in _OF_RUN}),
    }  # fmt: skip


def _tables(record: Record, journals: Mapping[str, Any], at: float, contents: Contents) -> dict[Table, list[Row]]:
    run = record.run
    waived = [one for one in run["findings"] if one.get("waived")]
    keys = ("owner", "reason", "expires")
    return {
        NODE: list(_nodes(record, at, contents)),
        FINDING: list(_findings(run, contents)),
        WAIVER: [{"number": one["id"], **{key: _text(one["waived"][key], 0) for key in keys}} for one in waived],
        MEASUREMENT: list(_measurements(run, at, contents)),
        CHANGE: list(_changes(run, at)),
        JOURNAL: [{"node": _text(node), "body": contents.hash(body)} for node, body in journals.items()],
    }


def _new(connection: Connection, row: Row) -> int | None:
    """Write the row of a run and return its number; None where the run is kept already."""
    made = unless_there(connection, RUN).values(row).returning(RUN.c.id)
    number = connection.execute(made).scalar()
    if number is not None:
        return int(number)
    there = connection.execute(select(RUN).where(RUN.c.name == row["name"])).one()
    if there.digest == row["digest"]:
        return None
    if row["kind"] in _RESUMED and all(getattr(there, key) == row[key] for key in ("kind", "at")):
        connection.execute(delete(RUN).where(RUN.c.id == there.id))
        return int(connection.execute(made).scalar_one())
    raise NameTakenError(f"another run named {row['name']} is kept already")


def _nodes(record: Record, at: float, contents: Contents) -> Iterator[Row]:
    folds = [contents.hash(fold) for fold in record.folds]
    for position, node in enumerate(record.run["nodes"]):
        about = node.get("about") or {}
        taken = about.get("taken")
        yield {
            "position": position, "name": _text(node["name"]), "at": at, "platform": _text(node["platform"]),
            "verdict": _text(node["verdict"]), "simulated": int(bool(node["simulated"])),
            "cohort": _text(about.get("cohort", "")), "boot_id": _text(about.get("boot_id", "")),
            "taken": float(taken) if isinstance(taken, (int, float)) else None,
            "about": contents.hash({key: value for key, value in about.items() if key not in _OF_ABOUT}),
            "fold": folds[record.fold_of[position]],
            "rest": contents.hash({key: value for key, value in node.items() if key not in _OF_NODE}),
        }  # fmt: skip


def _findings(run: dict[str, Any], contents: Contents) -> Iterator[Row]:
    places: dict[str, int] = {}
    for position, node in enumerate(run["nodes"]):
        places.setdefault(node["name"], position)
    for number, one in enumerate(run["findings"]):
        yield {
            "number": number, "position": places[one["node"]], "check_id": _text(one["check"]),
            "subject": _text(one["subject"]), "status": _text(one["status"]),
            "urgency": None if one["urgency"] is None else _text(one["urgency"]),
            "said": contents.hash({key: value for key, value in one.items() if key not in _OF_FINDING}),
        }  # fmt: skip


def _measurements(run: dict[str, Any], at: float, contents: Contents) -> Iterator[Row]:
    cohorts = {node["name"]: (node.get("about") or {}).get("cohort", "") for node in run["nodes"]}
    for number, one in enumerate(run["measurements"]):
        yield {
            "number": number, "node": _text(one["node"]), "cohort": _text(cohorts.get(one["node"], "")), "at": at,
            "name": _text(one["name"]), "subject": _text(one["subject"]), "value": float(one["value"]),
            "unit": _text(one["unit"]), "conditions": contents.hash(one["conditions"]),
        }  # fmt: skip


def _changes(run: dict[str, Any], at: float) -> Iterator[Row]:
    for number, one in enumerate(run.get("changes") or ()):
        names = {"check_id": "check", "before": "from", "after": "to"}
        columns = ("node", "check_id", "subject", "mechanism", "key", "before", "after", "status", "why")
        told = {column: one[names.get(column, column)] for column in columns}
        yield {
            "number": number,
            "at": at,
            **{key: value if value is None else _text(value, 0) for key, value in told.items()},
        }


def forget(connection: Connection, before: float) -> int:
    """Remove runs that began before a time, and what only they said; returns how many."""
    count = connection.execute(select(func.count()).select_from(RUN).where(RUN.c.at < before)).scalar_one()
    connection.execute(delete(RUN).where(RUN.c.at < before))
    remove_unused(connection)
    return int(count)


def _times(run: dict[str, Any], now: float) -> dict[str, Any]:
    """
    Return when a run began and ended, and why that may be wrong.

    A clock that was ahead and was put right would place the run in the future, before every later one: it then counts
    from when it was kept.
    """
    began, ended = _time(run["started"]), _time(run["ended"]) if run.get("ended") else None
    doubts = []
    if began > now:
        doubts.append(f"it began {began - now:.0f} s after it was kept, by this machine's clock")
    if ended is not None and ended < began:
        doubts.append(f"it ended {began - ended:.0f} s before it began")
    return {"at": min(began, now), "ended": ended, "doubt": "; ".join(doubts)}


def _time(text: Any) -> float:
    try:
        told = dt.datetime.fromisoformat(str(text))
        return (told if told.tzinfo else told.replace(tzinfo=dt.UTC)).timestamp()
    except (ValueError, OverflowError) as error:
        raise StoreError(f"this run of hwcheck is damaged: {text!r} is no time") from error


def _text(value: Any, most: int = _LONG) -> str:
    """
    Return a text that both databases take: no NUL and no half of a character; shortened, and still told from others.

    Args:
        value: a text.
        most: characters; 0 for any number.
    """
    text = str(value)
    text = "".join(char if char != "\0" and not "\ud800" <= char <= "\udfff" else ascii(char)[1:-1] for char in text)
    if most and len(text) > most:
        return f"{text[: most - 33]}~{hashlib.sha256(text.encode()).hexdigest()[:32]}"
    return text
