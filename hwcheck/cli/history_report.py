"""What ``hwcheck history`` prints."""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hwcheck.cli.targets import fold
from hwcheck.cli.when import iso, moment
from hwcheck.errors import UsageError
from hwcheck.report import json_run
from hwcheck.report.sheet import visible
from hwcheck.store import Cause, Moment, Spell, Store

SCHEMA = "hwcheck.history/1"
_ORDER = ("fail", "warn", "unknown")
_FEW = 6
_WORDS = {"gone": "nothing of it", "skip": "skipped", "": "not judged"}


def report(arguments: argparse.Namespace) -> int:
    """Ask the store, and print what was or is not well; always 0, since nothing is judged here."""
    spells = _asked(arguments)
    if arguments.format == "json":
        print(json_run.dump_lines({"schema": SCHEMA, "spells": [as_json(spell) for spell in spells]}))
        return 0
    if not spells:
        print("Nothing that failed, warned or could not be told is kept.")
    for nodes, spell in _grouped(spells):
        for line in _lines(nodes, spell):
            print(visible(line).rstrip())
    return 0


def _asked(arguments: argparse.Namespace) -> list[Spell]:
    store, since = Store.open(arguments.store), time.time() - arguments.since
    names = [""]
    if arguments.node not in ("", "-"):
        from hwcheck.transports.nodesets import expand  # noqa: PLC0415 - only where nodes are named

        names = expand(arguments.node)
        strangers = [name for name in names if not store.runs(node=name, limit=1)]
        if strangers:
            raise UsageError(f"no run of {fold(strangers)} is kept in {store.address.label}")
    found = [spell for name in names for spell in store.history(name, arguments.check, since)]
    return [spell for spell in found if spell.ended is None or not arguments.lasting]


def as_json(spell: Spell) -> dict[str, Any]:
    """Return a spell for ``--format json``."""
    told = {
        "node": spell.node, "check": spell.check, "subject": spell.subject, "status": spell.status,
        "message": spell.message, "runs": spell.runs,
        "waived": {key: getattr(spell.waived, key) for key in ("owner", "reason", "expires")} if spell.waived else None,
        "causes": [{key: getattr(cause, key) for key in Cause.__slots__} for cause in spell.causes],
    }  # fmt: skip
    moments = {key: getattr(spell, key) for key in ("first", "last", "before", "ended", "untold")}
    return {**told, **{key: _moment(value) for key, value in moments.items()}}


def _moment(value: Moment | None) -> dict[str, str] | None:
    return {"run": value.run, "at": iso(value.at), "status": value.status} if value is not None else None


def _grouped(spells: list[Spell]) -> Iterator[tuple[list[str], Spell]]:
    """Put together what is the same on several nodes: what lasts first, the worst first."""

    def key(spell: Spell) -> tuple[Any, ...]:
        """Tell apart what reads differently."""
        return (
            spell.ended is not None, _ORDER.index(spell.status), spell.first.at, spell.check, spell.subject,
            repr(replace(spell, node="", said="", span=(0, 0), causes=())), [_said(cause) for cause in spell.causes],
        )  # fmt: skip

    for _, group in itertools.groupby(sorted(spells, key=key), key):
        same = list(group)
        yield [spell.node for spell in same], same[0]


def _lines(nodes: list[str], spell: Spell) -> Iterator[str]:
    on = f" on {spell.subject}" if spell.subject else ""
    waived = f"  waived until {spell.waived.expires} by {spell.waived.owner}" if spell.waived else ""
    yield f"{spell.status.upper():7}  {fold(nodes)}  {spell.check}{on}{waived}"
    yield f"         {spell.message}"
    since = "since" if spell.before else "since at least"
    runs = "1 run" if spell.runs == 1 else f"{spell.runs} runs"
    last = "" if spell.first == spell.last else f", last in {_at(spell.last)}"
    yield f"         {since} {_at(spell.first)}, in {runs}{last}"
    if spell.ended is not None:
        yield f"         until {_at(spell.ended)}: {_word(spell.ended)}"
    elif spell.untold is not None:
        yield f"         not told since: {_word(spell.untold)} in {_at(spell.untold)}"
    if spell.before is not None:
        yield f"         before: {_word(spell.before)} in {_at(spell.before)}"
        causes = list(dict.fromkeys(map(_said, spell.causes)))
        more = f"; {len(causes) - _FEW} more (--format json)" if len(causes) > _FEW else ""
        yield f"         changed in between: {'; '.join(causes[:_FEW]) or 'nothing that is known'}{more}"


def _at(value: Moment) -> str:
    return f"{moment(value.at)} ({value.run})"


def _word(value: Moment) -> str:
    return _WORDS.get(value.status, value.status)


def _said(cause: Cause) -> str:
    """Say a cause; ids of boots say nothing to people, and what eight GPUs have in common is said once."""
    if cause.what == "boot":
        return "it was booted"
    if not cause.after:
        return f"{cause.what} {cause.before} is gone"
    if not cause.before and cause.what == cause.what.upper():
        return f"{cause.what} {cause.after} is new"
    by = f" (run {cause.run})" if cause.run else ""
    where = f" of {cause.where}" if cause.run and cause.where else ""
    return f"{cause.what}{where} {cause.before or '?'} -> {cause.after}{by}"
