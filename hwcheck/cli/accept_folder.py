"""
The folder of an acceptance: ``$XDG_STATE_HOME/hwcheck/accept/RUN``.

=================  ==================================================================================================
accept.json        who, when, with which options, how far it has come; replaced whole after every step
evidence/before    what the nodes said before anything was changed; evidence/after: what the certificates rest on
=================  ==================================================================================================

An acceptance that was killed goes on from its last step. Up to the first change it begins anew, since what was read is
stale by then; a change is finished by the run of ``hwcheck apply`` that it is; what follows is read and measured anew.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import fcntl
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from hwcheck.apply.run_folder import RunFolder
from hwcheck.cli.recording import new_name
from hwcheck.cli.rolling import holder, kept_options, restored_options
from hwcheck.errors import MachineError, UsageError
from hwcheck.places import state_home

FORMAT = "hwcheck.accept_run/1"
FIX, MEASURE, DONE = "fix", "measure", "done"
"""How far it has come: nothing or some is changed; all is changed; all is said."""
_OWN_OPTIONS = (
    "output", "no_fix", "no_baseline", "suite", "after", "key", "valid", "store", "tests", "load_timeout", "references",
    "strict", "format",
)  # fmt: skip
_PATHS = ("output", "key", "references")


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

    @classmethod
    def new(cls, arguments: argparse.Namespace, started: dt.datetime) -> AcceptFolder:
        """
        Begin one.

        Raises:
            MachineError: the folder cannot be written.
        """
        path = _home() / new_name(started)
        own = {name: getattr(arguments, name) for name in _OWN_OPTIONS}
        for name in _PATHS:
            own[name] = str(own[name].resolve()) if own[name] is not None else None
        own["suite"] = [str(Path(one).resolve()) for one in own["suite"]]
        record = {
            "format": FORMAT, "run": path.name, "holder": holder(), "begun": started.isoformat(timespec="seconds"),
            "phase": FIX, "apply": "", "stages": [], "options": {**kept_options(arguments), **own},
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
            or not isinstance(record.get("options"), dict)
        ):
            raise UsageError(f"{file} is damaged, or of another version of hwcheck")
        return cls(home / name, record)

    @property
    def name(self) -> str:
        """Name of the run."""
        return self.path.name

    def locked(self) -> contextlib.AbstractContextManager[None]:
        """
        Keep other controllers away from it.

        Raises:
            UsageError: another one is at work on it.
        """
        return self._files.locked()

    def save(self) -> None:
        """Write the record."""
        self._files.write("accept.json", self.record)

    def options(self, arguments: argparse.Namespace) -> argparse.Namespace:
        """Return the arguments it was begun with; consent, ``--yes`` and ``-q`` are of the present call."""
        kept = dict(self.record["options"])
        own = {name: kept.pop(name) for name in _OWN_OPTIONS if name in kept}
        for name in _PATHS:
            own[name] = Path(own[name]) if own.get(name) else None
        return argparse.Namespace(**{**vars(arguments), **restored_options(kept), **own})

    def go_to(self, phase: str) -> None:
        """Record that it has come so far."""
        self.record["phase"] = phase
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

    @contextlib.contextmanager
    def alone_on(self, nodes: Iterable[str]) -> Iterator[None]:
        """
        Keep other acceptances of this machine away from nodes; those of others are kept away by the node's lease.

        Raises:
            UsageError: one of them is being accepted.
        """
        folder = _home() / ".nodes"
        folder.mkdir(mode=0o700, exist_ok=True)
        with contextlib.ExitStack() as held:
            for node in sorted(nodes):
                file = held.enter_context((folder / (node.replace("/", "_") or "this machine")).open("a+b"))
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    file.seek(0)
                    who = file.read(100).decode("utf-8", "replace")
                    raise UsageError(f"{node or 'this machine'} is being accepted by run {who}") from None
                file.truncate(0)
                file.write(self.name.encode())
                file.flush()
            yield


def _home() -> Path:
    return state_home() / "accept"
