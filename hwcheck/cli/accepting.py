"""
What ``hwcheck accept`` does: read → plan → change → read anew → measure → tests of the site → certify.

All that the command line names is looked at before any node is: a slip of the pen must not show after a reboot.

Exit code: 1 a node fails, or could not be changed · 3 nothing of that, but something could not be told, a node was not
measured, or the run is not kept · 0 every node is certified.
"""

from __future__ import annotations

import argparse
import datetime as dt
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hwcheck.certificate import evidence_hash
from hwcheck.cli import certifying
from hwcheck.cli.accept import add_parser
from hwcheck.cli.accept_after import After
from hwcheck.cli.accept_change import Change
from hwcheck.cli.accept_folder import DONE, FIX, MEASURE, AcceptFolder
from hwcheck.cli.accept_report import RUN_FILE, Ending, demand_place, tell_files, write_files
from hwcheck.cli.accept_suite import Suite
from hwcheck.cli.carrying_out import demand_roll_options
from hwcheck.cli.judging import Bench
from hwcheck.cli.keeping import node_of
from hwcheck.cli.measuring import Measured, Measuring, read_nodes
from hwcheck.cli.recording import keep_run, record_of
from hwcheck.cli.referring import Referring, load_pinned, open_store
from hwcheck.cli.reporting import find_run
from hwcheck.errors import MachineError, UsageError
from hwcheck.evidence_dir import FolderKeeper
from hwcheck.profiles import ProfileSet
from hwcheck.transports.outcome import Outcome

NOT_KEPT = 3


def accept(arguments: argparse.Namespace) -> int:
    """Carry out the verb."""
    if arguments.evidence or arguments.root:
        raise UsageError("only a running node can be accepted: name nodes (-i, -w), --live-root, or none")
    if arguments.only:
        raise UsageError("a node is accepted as a whole: leave out --only; waivers say what the site accepts")
    started = dt.datetime.now(dt.UTC)
    if arguments.resume:
        folder = AcceptFolder.load(arguments.resume)
        arguments = folder.options(arguments, _defaults())
        with folder.locked():
            if folder.record["phase"] == DONE:
                return _tell_again(folder, arguments)
            return _Acceptance(arguments).go(folder)
    acceptance = _Acceptance(arguments)
    folder = AcceptFolder.new(arguments, started)
    say(f"acceptance {folder.name}; should it break off, hwcheck accept --resume {folder.name} goes on with it")
    with folder.locked():
        return acceptance.go(folder)


def _defaults() -> argparse.Namespace:
    """Return the arguments of a call without any option."""
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    return parser.parse_args(["accept"])


def _tell_again(folder: AcceptFolder, arguments: argparse.Namespace) -> int:
    """Say how an acceptance has ended; it is kept now, where that failed or was cut short."""
    place = Path(folder.record["place"])
    say(f"acceptance {folder.name} has ended")
    kept = keep_run(find_run(str(place / RUN_FILE), ""), open_store(arguments.store), None)
    tell_files(folder.name, place)
    return int(folder.record["code"]) or (0 if kept else NOT_KEPT)


class _Acceptance:
    """
    One acceptance, while it goes on.

    Args:
        arguments: of the verb, as it was begun.

    Raises:
        HwcheckError: something that the command line names cannot be used; nothing is begun.
    """

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        demand_roll_options(arguments)
        if arguments.output is not None:
            demand_place(arguments.output)
        self._store = open_store(arguments.store)
        self._bench = Bench(arguments)
        self._suite = Suite(arguments)
        self._after = After(arguments, self._store) if arguments.after else None
        self._measuring = self._measurer()
        self._signer, ring = certifying.signer_of(arguments.key, arguments.valid)
        if ring is not None:
            say(f"made a key to sign with: {self._signer.fingerprint}")

    def _measurer(self) -> Measuring:
        arguments = argparse.Namespace(**vars(self._arguments))
        referring = Referring(load_pinned(arguments.references), self._store, arguments.profile)
        if self._after is None:
            return Measuring(arguments, self._bench, referring.of)
        arguments.tests = arguments.tests or list(self._after.tests)
        return Measuring(arguments, self._bench, referring.of, self._after.carry)

    def go(self, folder: AcceptFolder) -> int:
        """Go on from where it is; returns the exit code."""
        change = Change(self._arguments, folder, self._after)
        if folder.record["phase"] == FIX:
            change.make()
            folder.go_to(MEASURE)
        began = dt.datetime.now(dt.UTC)
        say(f"reading {change.count or 'the'} node{'' if change.count == 1 else 's'} anew")
        read = read_nodes(self._arguments, self._arguments.tier)
        folder.claim(outcome.name for outcome in read)
        folder.note("recheck", ((one.name, str(one.error or "read")) for one in read), began)
        return self._finish(folder, self._measure(folder, read), change)

    def _measure(self, folder: AcceptFolder, read: Iterable[Outcome]) -> list[Measured]:
        began = dt.datetime.now(dt.UTC)
        if self._arguments.no_baseline:
            return self._measuring.only_judge(read)
        say("measuring; each test runs alone on its node")
        measured = self._measuring.measure(read)
        told = ((one.name, one.left_out or f"{len(one.verdict.measurements)} figures") for one in measured)
        folder.note("baseline", told, began)
        return measured

    def _finish(self, folder: AcceptFolder, measured: list[Measured], change: Change) -> int:
        """Say the verdict, sign, write everything down."""
        self._suite.run(folder, [one.verdict for one in measured])
        verdicts = list(self._bench.then_fleet(one.verdict for one in measured))
        started = dt.datetime.fromisoformat(folder.record["begun"])
        more: dict[str, Any] = {"stages": folder.record["stages"], "changes": change.changes()}
        record = record_of("accept", folder.name, verdicts, self._bench.profile, started, **more)
        whole = _keep_evidence(folder, measured)
        ending = self._write(folder, record, measured, change)
        whole = whole and ending.place == self._place(folder)
        folder.go_to(DONE, code=ending.code or (0 if whole else NOT_KEPT), place=str(ending.place.resolve()))
        kept = keep_run(record, self._store, None)
        ending.tell()
        return int(folder.record["code"]) or (0 if kept else NOT_KEPT)

    def _place(self, folder: AcceptFolder) -> Path:
        return Path(self._arguments.output or folder.path / "result")

    def _write(self, folder: AcceptFolder, record: dict[str, Any], measured: list[Measured], change: Change) -> Ending:
        """
        Write all files where they are wanted; beside the acceptance where that cannot be done any more.

        Raises:
            MachineError: neither can be written.
        """
        hashes = {one.name: evidence_hash(dict(node_of(one.outcome).files())) for one in measured}
        profiles = ProfileSet(self._arguments.site)
        for place in dict.fromkeys((self._place(folder), folder.path / "result")):
            try:
                withdrawn = certifying.withdraw(place, (one.name for one in measured))
                write_files(record, place)
                certified = certifying.certify(record, [], place, self._signer, profiles, hashes)
            except OSError as error:
                say(f"{error.filename or place}: {error.strerror or error}")
                continue
            return Ending(record, certified, withdrawn, change.not_changed(), place)
        raise MachineError(
            f"what came of it cannot be written; hwcheck accept --resume {folder.name} reads and measures anew, once "
            "there is room"
        )


def _keep_evidence(folder: AcceptFolder, measured: list[Measured]) -> bool:
    """Keep what the certificates rest on; tells where that cannot be done: the verdict stands without it."""
    try:
        with FolderKeeper(folder.evidence("after")) as keeper:
            for one in measured:
                keeper.keep(node_of(one.outcome))
    except OSError as error:
        say(f"the evidence is not kept: {error.filename or folder.path}: {error.strerror or error}")
        return False
    return True


def say(text: str) -> None:
    """Tell the operator what begins."""
    print(f"hwcheck: {text}", file=sys.stderr, flush=True)
