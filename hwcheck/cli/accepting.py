"""
What ``hwcheck accept`` does: read → plan → change → read anew → measure → tests of the site → certify.

Exit code: 1 a node fails, or could not be changed · 3 nothing of that, but something could not be told, a node was not
measured, or the run is not kept · 0 every node is certified.
"""

from __future__ import annotations

import argparse
import datetime as dt
import sys
from collections.abc import Iterable
from typing import Any

from hwcheck.certificate import evidence_hash
from hwcheck.cli import certifying
from hwcheck.cli.accept_after import After
from hwcheck.cli.accept_change import Change
from hwcheck.cli.accept_folder import DONE, FIX, MEASURE, AcceptFolder
from hwcheck.cli.accept_report import tell, write_files
from hwcheck.cli.accept_suite import Suite
from hwcheck.cli.judging import Bench
from hwcheck.cli.keeping import node_of
from hwcheck.cli.measuring import Measured, Measuring, read_nodes
from hwcheck.cli.recording import keep_run, record_of
from hwcheck.cli.referring import Referring, load_pinned, open_store
from hwcheck.cli.targets import fold
from hwcheck.errors import UsageError
from hwcheck.evidence_dir import FolderKeeper
from hwcheck.profiles import ProfileSet
from hwcheck.transports.outcome import Outcome


def accept(arguments: argparse.Namespace) -> int:
    """Carry out the verb."""
    if arguments.evidence or arguments.root:
        raise UsageError("only a running node can be accepted: name nodes (-i, -w), --live-root, or none")
    if arguments.only:
        raise UsageError("a node is accepted as a whole: leave out --only; waivers say what the site accepts")
    started = dt.datetime.now(dt.UTC)
    folder = AcceptFolder.load(arguments.resume) if arguments.resume else None
    if folder is not None:
        arguments = folder.options(arguments)
    suite = Suite(arguments)
    signer, ring = certifying.signer_of(arguments.key, arguments.valid)
    if ring is not None:
        print(f"hwcheck: made a key to sign with: {signer.fingerprint}", file=sys.stderr)
    folder = folder or AcceptFolder.new(arguments, started)
    with folder.locked():
        return _Acceptance(arguments, folder, suite, signer).go()


class _Acceptance:
    """
    One acceptance, while it goes on.

    Args:
        arguments: of the verb, as it was begun.
        folder: its record, locked by the caller.
        suite: tests of the site.
        signer: signs certificates.
    """

    def __init__(
        self, arguments: argparse.Namespace, folder: AcceptFolder, suite: Suite, signer: certifying.Signer
    ) -> None:
        self._arguments = arguments
        self._folder = folder
        self._suite = suite
        self._signer = signer
        self._store = open_store(arguments.store)

    def go(self) -> int:
        """Go on from where it is; returns the exit code."""
        change = Change(self._arguments, self._folder)
        if self._folder.record["phase"] == FIX:
            change.make()
            self._folder.go_to(MEASURE)
        began = dt.datetime.now(dt.UTC)
        say(f"reading {change.count or 'the'} node{'' if change.count == 1 else 's'} anew")
        read = read_nodes(self._arguments, self._arguments.tier)
        with self._folder.alone_on(outcome.name for outcome in read):
            self._folder.note("recheck", ((one.name, str(one.error or "read")) for one in read), began)
            measured = self._measure(read)
        self._keep_evidence(measured)
        return self._finish(measured, change)

    def _measure(self, read: Iterable[Outcome]) -> list[Measured]:
        began = dt.datetime.now(dt.UTC)
        bench = Bench(self._arguments)
        referring = Referring(load_pinned(self._arguments.references), self._store, self._arguments.profile)
        measuring = Measuring(self._arguments, bench, referring.of)
        if self._arguments.after:
            after = After(self._arguments, self._store)
            measuring = Measuring(self._arguments, bench, referring.of, after.carry)
            if not self._arguments.tests:  # a cable, an adapter: no test of one node uses it
                return measuring.only_judge(read)
        if self._arguments.no_baseline:
            return measuring.only_judge(read)
        say("measuring; each test runs alone on its node")
        measured = measuring.measure(read)
        told = ((one.name, one.left_out or f"{len(one.verdict.measurements)} figures") for one in measured)
        self._folder.note("baseline", told, began)
        return measured

    def _keep_evidence(self, measured: list[Measured]) -> None:
        place = self._folder.path / "evidence" / f"after-{dt.datetime.now(dt.UTC):%H%M%S}"
        with FolderKeeper(place) as keeper:
            for one in measured:
                keeper.keep(node_of(one.outcome))

    def _finish(self, measured: list[Measured], change: Change) -> int:
        """Say the verdict, sign, write everything down."""
        verdicts = [one.verdict for one in measured]
        self._suite.run(self._folder, verdicts)
        profiles = ProfileSet(self._arguments.site)
        profile = {"name": self._arguments.profile or "auto", "hash": profiles.hash}
        started = dt.datetime.fromisoformat(self._folder.record["begun"])
        more: dict[str, Any] = {"stages": self._folder.record["stages"], "changes": change.changes()}
        record = record_of("accept", self._folder.name, verdicts, profile, started, **more)
        place = self._arguments.output or self._folder.path / "result"
        hashes = {one.name: evidence_hash(dict(node_of(one.outcome).files())) for one in measured}
        certified = certifying.certify(record, [], place, self._signer, profiles, hashes)
        write_files(record, place)
        kept = keep_run(record, self._store, None)
        left_out = [one for one in measured if one.left_out and not self._arguments.no_baseline]
        self._folder.go_to(DONE)
        return tell(record, certified, left_out, place, kept=kept and change.is_right)


def say(text: str) -> None:
    """Tell the operator what begins."""
    print(f"hwcheck: {text}", file=sys.stderr, flush=True)


def folded(names: list[str]) -> str:
    """Write names as a node set; this machine has none."""
    return fold([name for name in names if name]) or "this machine"
