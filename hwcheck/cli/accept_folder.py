"""
The folder of an acceptance: ``$XDG_STATE_HOME/hwcheck/accept/RUN``.

=================  ==================================================================================================
accept.json        who, when, with which options, how far it has come; replaced whole after every step
evidence/before-N  what the nodes said before anything was changed, at the Nth attempt
evidence/after-N   what the certificates rest on
result             certificates, report and run, unless another folder was named
=================  ==================================================================================================

An acceptance that was killed goes on from its last step. Up to the first change it begins anew, since what was read is
stale by then; a change is finished by the run of ``hwcheck apply`` that it is; what follows is read and measured anew.
One that has ended is told again.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import fcntl
import itertools
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hwcheck.apply.run_folder import RunFolder
from hwcheck.cli.recording import new_name
from hwcheck.cli.rolling import holder, kept_options, restored_options
from hwcheck.errors import MachineError, UsageError
from hwcheck.places import state_home

FORMAT = "hwcheck.accept_run/1"
FIX, MEASURE, DONE = "fix", "measure", "done"
"""How far it has come: nothing or some is changed; all is changed; all is said."""
_OWN_OPTIONS = (
    "output", "no_fix", "no_baseline", "no_pairs", "pair_seconds", "gpu_memory", "suite", "after", "key", "valid",
    "store", "tests", "load_timeout", "references", "strict", "format",
)  # fmt: skip
_PATHS = ("output", "key", "references")
_SPELT = {"tests": "test"}
_KINDS = {"options": dict, "stages": list, "apply": str, "phase": str, "begun": str}


class AcceptFolder:
    """
    An acceptance on disk.

    Args:
        path: of its folder; its name is the run's.
        record: what ``accept.json`` says.
    """

    def __init__(self, path: Path, record: dict[str, Any]) -> None:
        self.path = path
        self.record = record
        self._files = RunFolder(path, record)
        self._held = contextlib.ExitStack()
        self._claimed: set[str] = set()

    @classmethod
    def new(cls, arguments: argparse.Namespace, started: dt.datetime) -> AcceptFolder:
        """
        Begin one.

        Raises:
            MachineError: the folder cannot be written.
        """
        path = _home() / new_name(started)
        record = {
            "format": FORMAT, "run": path.name, "holder": holder(), "begun": started.isoformat(timespec="seconds"),
            "phase": FIX, "apply": "", "stages": [], "options": _told(arguments),
        }  # fmt: skip
        try:
            (path / "evidence").mkdir(mode=0o700, parents=True)
            (path / "lock").touch(mode=0o600)
        except OSError as error:
            raise MachineError(f"the acceptance cannot be recorded, so nothing is begun: {error}") from error
        made = cls(path, record)
        made.save()
        return made

    @classmethod
    def load(cls, name: str) -> AcceptFolder:
        """
        Find one.

        Raises:
            UsageError: there is none of that name, or it is damaged.
        """
        home = _home()
        known = sorted(one.parent.name for one in home.glob("*/accept.json"))
        if name not in known:
            there = f"the last are {', '.join(known[-5:])}" if known else "there are none here"
            raise UsageError(f"no acceptance {name}; {there}")
        file = home / name / "accept.json"
        try:
            record = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UsageError(f"{file}: {error}") from error
        if (
            not isinstance(record, dict)
            or record.get("format") != FORMAT
            or any(not isinstance(record.get(key), kind) for key, kind in _KINDS.items())
            or record["phase"] not in (FIX, MEASURE, DONE)
        ):
            raise UsageError(f"{file} is damaged, or of another version of hwcheck")
        return cls(home / name, record)

    @property
    def name(self) -> str:
        """Name of the run."""
        return self.path.name

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """
        Keep other controllers away from it, and from the nodes that it claims meanwhile.

        Raises:
            UsageError: another one is at work on it.
        """
        with self._files.locked(), self._held:
            yield

    def save(self) -> None:
        """Write the record."""
        self._files.write("accept.json", self.record)

    def options(self, arguments: argparse.Namespace, defaults: argparse.Namespace) -> argparse.Namespace:
        """
        Return the arguments it was begun with; consent, ``--yes`` and ``-q`` are of the present call.

        Args:
            arguments: of the present call.
            defaults: of a call without any option.

        Raises:
            UsageError: the present call has other options, which would not count; or the record lacks some.
        """
        kept, given, plain = dict(self.record["options"]), _told(arguments), _told(defaults)
        if lacks := sorted(given.keys() - kept.keys()):
            raise UsageError(f"run {self.name} was begun by another version of hwcheck: it has no {', '.join(lacks)}")
        other = [name for name, value in given.items() if value not in (plain[name], kept[name])]
        if other:
            words = ", ".join(f"--{_SPELT.get(name, name.replace('_', '-'))}" for name in other)
            raise UsageError(f"--resume goes on with the options of run {self.name}: leave out {words}")
        own = {name: kept.pop(name) for name in _OWN_OPTIONS}
        for name in _PATHS:
            own[name] = Path(own[name]) if own[name] else None
        return argparse.Namespace(**{**vars(arguments), **restored_options(kept), **own})

    def evidence(self, when: str) -> Path:
        """Return a folder for evidence that is not there yet: the clock may have jumped, the run been killed."""
        taken = {one.name for one in (self.path / "evidence").glob(f"{when}-*")}
        return self.path / "evidence" / next(f"{when}-{n}" for n in itertools.count(1) if f"{when}-{n}" not in taken)

    def go_to(self, phase: str, **more: Any) -> None:
        """Record that it has come so far, and how it ended where it has."""
        self.record.update(phase=phase, **more)
        self.save()

    def note(self, stage: str, nodes: Iterable[tuple[str, str]], began: dt.datetime) -> None:
        """
        Record a stage.

        Args:
            stage: one of the schema's.
            nodes: name → what came of it, one sentence.
            began: when.
        """
        ended = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        self.record["stages"] += [
            {
                "node": node, "stage": stage, "began": began.isoformat(timespec="seconds"), "ended": ended,
                "outcome": outcome,
            }
            for node, outcome in nodes
        ]  # fmt: skip
        self.save()

    def claim(self, nodes: Iterable[str]) -> None:
        """
        Keep other acceptances of this machine away from nodes until the end; others are kept away by the node's lease.

        Raises:
            UsageError: one of them is being accepted.
        """
        folder = _home() / ".nodes"
        folder.mkdir(mode=0o700, exist_ok=True)
        for node in sorted(set(nodes) - self._claimed):
            file = self._held.enter_context((folder / quote(f"node {node}", safe="")[:200]).open("a+b"))
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                who = file.read(100).decode("utf-8", "replace")
                raise UsageError(f"{node or 'this machine'} is being accepted by run {who}") from None
            file.truncate(0)
            file.write(self.name.encode())
            file.flush()
            self._claimed.add(node)


def _told(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options that a resumed acceptance needs, as JSON has them."""
    own = {name: getattr(arguments, name) for name in _OWN_OPTIONS}
    for name in _PATHS:
        own[name] = str(own[name].resolve()) if own[name] is not None else None
    own["suite"] = [str(Path(one).resolve()) for one in own["suite"]]
    told: dict[str, Any] = json.loads(json.dumps({**kept_options(arguments), **own}))
    return told


def _home() -> Path:
    return state_home() / "accept"
