"""What ``hwcheck status`` prints."""

from __future__ import annotations

import argparse
import datetime as dt
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hwcheck.apply.run_folder import runs_home
from hwcheck.cli.targets import fold
from hwcheck.cli.when import iso, moment, span
from hwcheck.places import state_home
from hwcheck.report import json_run
from hwcheck.report.sheet import visible
from hwcheck.store import NodeState, Store, Waived

SCHEMA = "hwcheck.status/1"


@dataclass(frozen=True, slots=True)
class Standing:
    """
    A fleet, sorted.

    Attributes:
        nodes: how each stands.
        now: seconds since 1970.
        stale_after: seconds without a run after which a node is stale.
        expires_within: seconds within which the end of a waiver is near.
        drained: run by node, of those that hwcheck has drained on this machine's word and not put back.
    """

    nodes: list[NodeState]
    now: float
    stale_after: float
    expires_within: float
    drained: dict[str, str]

    def in_state(self, state: str) -> list[str]:
        """Return names; a node that was ok and has not been looked at since is not ok, but stale."""
        found = [one for one in self.nodes if one.state == state]
        return [one.node for one in found if state != "ok" or not self._is_stale(one)]

    @property
    def stale(self) -> list[NodeState]:
        """Nodes without a run for too long."""
        return [one for one in self.nodes if self._is_stale(one)]

    def _is_stale(self, node: NodeState) -> bool:
        return self.now - node.at > self.stale_after

    @property
    def failing(self) -> dict[str, list[str]]:
        """Nodes by check that fails on them."""
        found: dict[str, list[str]] = {}
        for one in self.nodes:
            for check in sorted({check for check, _ in one.failing}):
                found.setdefault(check, []).append(one.node)
        return found

    @property
    def waived(self) -> dict[Waived, list[str]]:
        """Nodes by what is waived on them, the next to expire first."""
        found: dict[Waived, list[str]] = {}
        for one in self.nodes:
            for waived in one.waived:
                found.setdefault(waived, []).append(one.node)
        return dict(sorted(found.items(), key=lambda item: item[0].expires))

    def days_left(self, waived: Waived) -> int:
        """Return for how many days more a waiver holds; negative when it has expired."""
        today = dt.datetime.fromtimestamp(self.now, dt.UTC).date()
        return (dt.date.fromisoformat(waived.expires) - today).days

    @property
    def exit_code(self) -> int:
        """1 beats 3 beats 0, as for every verb."""
        if self.in_state("failing"):
            return 1
        return 3 if self.in_state("unknown") or self.stale else 0


def report(arguments: argparse.Namespace) -> int:
    """Ask the store, print, and return the exit code."""
    store = Store.open(arguments.store)
    fleet = Standing(store.status(), time.time(), arguments.stale, arguments.expiring, _drained())
    if arguments.format == "json":
        print(json_run.dump_lines(_as_json(fleet, store.address.label)))
    elif not fleet.nodes:
        print(f"No run is kept in {visible(store.address.label)}; hwcheck check --store keeps one.")
    else:
        for line in _lines(fleet):
            print(visible(line).rstrip())
    return fleet.exit_code


def _drained() -> dict[str, str]:
    """Read which nodes runs of this machine have drained and not put back; a record that is damaged tells none."""
    found: dict[str, str] = {}
    for path in sorted(runs_home(state_home()).glob("*/run.json")):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            found.update((str(node), path.parent.name) for node in record["drained"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return found


def _lines(fleet: Standing) -> Iterator[str]:
    for word in ("ok", "failing", "unknown"):
        yield from _row(word, fleet.in_state(word))
    yield from _row("stale", [one.node for one in fleet.stale])
    yield from _row("drained", sorted(fleet.drained))
    yield from _row("lab", [one.node for one in fleet.nodes if one.simulated])
    yield from _section("Failing", [f"{check}  {fold(nodes)}" for check, nodes in sorted(fleet.failing.items())])
    yield from _section("Waived", [_waiver(fleet, waived, nodes) for waived, nodes in fleet.waived.items()])
    old = [f"{one.node}  {one.state} in {moment(one.at)}, {span(fleet.now - one.at)} ago" for one in fleet.stale]
    yield from _section("Stale", old)
    runs: dict[str, list[str]] = {}
    for node, run in fleet.drained.items():
        runs.setdefault(run, []).append(node)
    yield from _section("Drained by hwcheck", [f"{fold(nodes)}  by run {run}" for run, nodes in runs.items()])


def _row(word: str, nodes: list[str]) -> Iterator[str]:
    if nodes or word == "ok":
        yield f"{word:8} {len(nodes):5}  {fold(nodes)}"


def _section(title: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield from ("", title, "", *(f"  {line}" for line in lines))


def _waiver(fleet: Standing, waived: Waived, nodes: list[str]) -> str:
    left = fleet.days_left(waived)
    near = left * 86400 <= fleet.expires_within
    told = "EXPIRED, counts again" if left < 0 else f"{left} days left" if near else ""
    on = f" on {waived.subject}" if waived.subject else ""
    until = f"until {waived.expires}{f' ({told})' if told else ''}"
    return f"{waived.check}{on}  {fold(nodes)}  {until}, {waived.owner}: {waived.reason}"


def _as_json(fleet: Standing, store: str) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "store": store,
        "as_of": iso(fleet.now),
        **{word: fold(fleet.in_state(word)) for word in ("ok", "failing", "unknown")},
        "stale": fold([one.node for one in fleet.stale]),
        "drained": fleet.drained,
        "waived": [
            {"nodes": fold(nodes), "check": one.check, "subject": one.subject, "owner": one.owner, "reason": one.reason,
             "expires": one.expires, "days_left": fleet.days_left(one)}
            for one, nodes in fleet.waived.items()
        ],
        "nodes": [
            {"name": one.node, "state": one.state, "run": one.run, "at": iso(one.at), "simulated": one.simulated,
             "failing": [{"check": check, "subject": subject} for check, subject in one.failing]}
            for one in fleet.nodes
        ],
    }  # fmt: skip
