"""
The record of one run: ``$XDG_STATE_HOME/hwcheck/runs/RUN``.

============== ======================================================================================================
run.json       who, when, which nodes, what has become of each; replaced whole after every change of state
plan.json      the plan as it was agreed to
steps/NODE     what the node is given; read by the action plugin, never by a template engine
journal/NODE   the node's journal, kept here before the first write
before.json    verdicts on which the plan rests: check, subject, status
lock           held while a controller works on the run; a free lock means that it has ended
============== ======================================================================================================
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import re
import secrets
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from hwcheck.errors import UsageError
from hwcheck.places import write_whole

FORMAT = "hwcheck.apply_run/1"
PLANNED, BEGUN, CHANGED, GOOD = "planned", "begun", "changed", "good"
REFUSED, FAILED, QUARANTINED, UNDONE = "refused", "failed", "quarantined", "undone"
_NODE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,252}")
UNFINISHED = (PLANNED, BEGUN, CHANGED)
"""States of a node from which a resumed run goes on."""


def demand_file_names(nodes: Iterable[str]) -> None:
    """
    Make sure that nodes have names by which files can be called: an image says itself what it is called.

    Raises:
        UsageError: one has another name.
    """
    for node in nodes:
        if node and not _NODE.fullmatch(node):
            raise UsageError(f"no name of a node: {node[:80]!r}; nothing was changed")


def runs_home(state: Path) -> Path:
    """Return the folder of all runs below our state folder."""
    return state / "runs"


class RunFolder:
    """
    A run on disk.

    Args:
        path: of its folder; its name is the run's.
        record: what ``run.json`` says.

    Attributes:
        session: word that stands in the lock while we hold it; a play that carries another one has lost its controller.
    """

    def __init__(self, path: Path, record: dict[str, Any]) -> None:
        self.path = path
        self.record = record
        self.session = ""

    @classmethod
    def new(cls, home: Path, targets: dict[str, Any], plan: dict[str, Any], holder: str) -> RunFolder:
        """
        Begin a run.

        Args:
            home: folder of all runs.
            targets: options of the command line that say which nodes and how to reach them.
            plan: as in a plan file.
            holder: who begins it.

        Raises:
            UsageError: the folder cannot be written.
        """
        name = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(2)}"
        path = home / name
        begun = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        record = {
            "format": FORMAT, "run": name, "holder": holder, "begun": begun,
            "state": "begun", "why": "", "targets": targets, "nodes": {}, "drained": [],
        }  # fmt: skip
        try:
            for folder in (path, path / "steps", path / "journal"):
                folder.mkdir(mode=0o700, parents=True)
            (path / "lock").touch(mode=0o600)
        except OSError as error:
            raise UsageError(f"the run cannot be recorded, so nothing is changed: {error}") from error
        run = cls(path, record)
        run.write("plan.json", plan)
        return run

    @classmethod
    def load(cls, home: Path, name: str) -> RunFolder:
        """
        Find a run.

        Raises:
            UsageError: there is none of that name, or it is of another version.
        """
        path = home / name
        known = sorted(one.name for one in home.glob("*") if (one / "run.json").is_file()) if home.is_dir() else []
        if name not in known:
            there = f"the last are {', '.join(known[-5:])}" if known else "there are none here"
            raise UsageError(f"no run {name}; {there}")
        try:
            record = json.loads((path / "run.json").read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UsageError(f"{path / 'run.json'}: {error}") from error
        if not isinstance(record, dict) or record.get("format") != FORMAT:
            raise UsageError(f"run {name} was recorded by another version of hwcheck")
        lacks = sorted({"holder", "targets", "nodes", "drained"} - set(record))
        if lacks:
            raise UsageError(f"{path / 'run.json'} is damaged: it has no {', '.join(lacks)}")
        return cls(path, record)

    @property
    def name(self) -> str:
        """Name of the run, on nodes too."""
        return self.path.name

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """
        Keep other controllers away from this run.

        Raises:
            UsageError: another one is at work on it.
        """
        with (self.path / "lock").open("ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(f"run {self.name} is being worked on by another hwcheck on this machine") from None
            self.session = secrets.token_hex(8)
            file.truncate(0)
            file.write(self.session.encode())
            file.flush()
            yield

    def write(self, name: str, content: Any) -> None:
        """Write a file of the run, whole or not at all."""
        write_whole(self._file(name), json.dumps(content, ensure_ascii=True).encode())

    def read(self, name: str) -> Any:
        """
        Return a file of the run; None when it is not there.

        Raises:
            UsageError: it is cut off or was changed by hand.
        """
        file = self._file(name)
        try:
            return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None
        except ValueError as error:
            raise UsageError(f"{file} is damaged: {error}") from error

    def _file(self, name: str) -> Path:
        """Return where a file of the run is, or of one of its nodes: ``steps/NODE.json``."""
        demand_file_names([name.partition("/")[2].removesuffix(".json")])
        return self.path / name

    def save(self) -> None:
        """Write the record."""
        self.write("run.json", self.record)

    def give(self, node: str, steps: list[dict[str, Any]], acts: list[dict[str, Any]]) -> None:
        """Write down what a node is to do."""
        self.write(f"steps/{node}.json", {"steps": steps, "acts": acts})

    def set_state(self, nodes: Iterable[str], state: str, why: str = "") -> None:
        """Record what has become of nodes."""
        for node in nodes:
            self.record["nodes"][node] = {**self.record["nodes"].get(node, {}), "state": state, "why": why}
        self.save()

    def end(self, state: str, why: str = "") -> None:
        """Record what has become of the run."""
        self.record.update(state=state, why=why)
        self.save()

    def nodes(self, *states: str) -> list[str]:
        """Return the nodes in one of these states, in their order."""
        return [name for name, known in self.record["nodes"].items() if known["state"] in states]
