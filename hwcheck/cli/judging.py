"""Judge what was read, print it, and count for the exit code: what ``hwcheck check`` does once nodes are being read."""

from __future__ import annotations

import argparse
import datetime as dt
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hwcheck import __version__
from hwcheck.checks import COMPARED
from hwcheck.cli.reporting import print_whole
from hwcheck.cli.targets import Collection, fold
from hwcheck.cli.trouble import printing
from hwcheck.cli.whole_file import printed_to
from hwcheck.errors import MachineError, ProfileError, UsageError
from hwcheck.evidence import Evidence
from hwcheck.findings import NodeVerdict, Status
from hwcheck.fleet import Fleet
from hwcheck.history import State
from hwcheck.parse import take_snapshot
from hwcheck.pipeline import Pipeline
from hwcheck.profiles import ProfileSet
from hwcheck.readers import read_paths
from hwcheck.report import json_run
from hwcheck.report.progress import Progress
from hwcheck.transports.gathered import evidence_of
from hwcheck.transports.outcome import Outcome
from hwcheck.transports.target import Target
from hwcheck.waivers import Waiver, load_waivers

if TYPE_CHECKING:
    from hwcheck.cli.recording import Recorder


class Bench:
    """
    All that judges: profiles, families and waivers of the command line.

    Args:
        arguments: of ``hwcheck check``.

    Raises:
        ProfileError: a layer or waiver file does not load; before anything is judged.
        UsageError: no such family.
    """

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.started = dt.datetime.now(dt.UTC)
        self.strict = bool(arguments.strict)
        self.form = str(arguments.format)
        self._store: str | None = getattr(arguments, "store", None)
        self.recorder: Recorder | None = None
        self._profiles = ProfileSet(arguments.site)
        self._platform = str(arguments.profile)
        if self._platform:
            self._profiles.profile(self._platform)  # an unknown name stops before anything is read
        self._only = _families(arguments.only, self._profiles)
        self._waivers = _waivers(arguments.waivers, self.started.date())
        self._pipelines: dict[str, Pipeline] = {}
        self._fleet = Fleet()
        self.posted = self._pipeline({}, "", "")

    def pipeline(self, target: Target, *, final: bool = True) -> Pipeline:
        """
        Return what judges a node: with its own layer and profile, where its inventory variables have them.

        Args:
            target: the node.
            final: what it says of a node counts in the comparison of the fleet, so it is asked once for each.

        Raises:
            ProfileError: the layer does not load, or there is no such profile.
        """
        return self._pipeline(target.site, target.profile, f"hwcheck_site of {target.name}", final=final)

    def _pipeline(self, site: dict[str, Any], platform: str, where: str, *, final: bool = True) -> Pipeline:
        key = json.dumps([site, platform, final], sort_keys=True)
        if key not in self._pipelines:  # hosts of a group share theirs
            profiles = self._profiles.over(site, where) if site else self._profiles
            if platform:
                profiles.profile(platform)
            chosen = self._platform or platform
            fleet = self._fleet if final else None
            self._pipelines[key] = Pipeline(profiles, chosen, self._only, self._waivers, fleet)
        return self._pipelines[key]

    def open_store(self) -> None:
        """
        Get ready to keep this run, where that is asked for; called before any node is read.

        Raises:
            StoreError: the command line names no store.
        """
        if self._store not in (None, "none"):
            from hwcheck.cli.recording import Recorder  # noqa: PLC0415 - SQLAlchemy is slow to import

            self.recorder = Recorder(self._store, "check", self.profile, self.started)

    @property
    def profile(self) -> dict[str, str]:
        """Which profile judges, and the hash of all layers."""
        return {"name": self._platform or "auto", "hash": self._profiles.hash}

    def then_fleet(self, verdicts: Iterable[NodeVerdict]) -> Iterator[NodeVerdict]:
        """Pass the nodes on, then say what only a look at all of them can tell."""
        yield from verdicts
        fleet = self._fleet.verdict()
        if fleet is not None and fleet.findings:
            yield fleet

    def report(self, verdicts: Iterable[NodeVerdict], output: Path | None = None) -> int:
        """Print verdicts, into a file where one is given, and return the exit code."""
        tally = Tally(strict=self.strict)
        started = self.started.isoformat(timespec="seconds")
        seen = tally.count(self.then_fleet(verdicts))
        recorder = self.recorder
        with printing(), printed_to(output):
            report(recorder.see(seen) if recorder else seen, self.form, self.profile, started, strict=self.strict)
            sys.stdout.flush()  # a reader that is gone shows here, not in a traceback of the interpreter's end
        if recorder:
            recorder.keep()
        return tally.exit_code


def judge_posted(arguments: argparse.Namespace) -> int:
    """Judge evidence named on the command line."""
    bench = Bench(arguments)
    bench.open_store()
    verdicts = (verdict for evidence in _read(arguments.evidence) for verdict in bench.posted.judge_all(evidence))
    return bench.report(verdicts, arguments.output)


def _read(paths: list[str]) -> Iterator[Evidence]:
    found = False
    for evidence in read_paths(paths):
        found = True
        yield evidence
    if not found:
        raise UsageError("nothing to judge in " + ", ".join(paths))


def judge_live(arguments: argparse.Namespace, collection: Collection) -> int:
    """Judge nodes as they answer; text and JSON lines as they come, the others in the order of the inventory."""
    bench = Bench(arguments)
    bench.open_store()
    for target in collection.targets:
        bench.pipeline(target)  # a host's layer that does not load stops before anything is read
    state = None if arguments.no_state or collection.request.root else _state()
    with Progress(len(collection.targets), fold, quiet=arguments.quiet) as progress:
        verdicts = _live(collection, bench, state, progress)
        if bench.form not in ("text", "jsonl"):
            placed = sorted(verdicts, key=lambda pair: pair[0])
            return bench.report((verdict for _, verdict in placed), arguments.output)
        return bench.report((verdict for _, verdict in verdicts), arguments.output)


def _state() -> State | None:
    """Return the last readings of nodes; None, and a word about it, where this user has no place for them."""
    try:
        return State(COMPARED)
    except MachineError as error:
        print(f"hwcheck: readings are not kept: {error}", file=sys.stderr)
        return None


def _live(
    collection: Collection, bench: Bench, state: State | None, progress: Progress
) -> Iterator[tuple[int, NodeVerdict]]:
    for outcome in collection:
        verdict = _judge(outcome, bench, state)
        failing = any(finding.status is Status.FAIL and finding.counts for finding in verdict.findings)
        progress.count(outcome.name, failing=failing, unreachable=outcome.error is not None)
        with progress.hidden():
            yield collection.position(outcome), verdict


def _judge(outcome: Outcome, bench: Bench, state: State | None) -> NodeVerdict:
    pipeline = bench.pipeline(outcome.target)
    evidence = evidence_of(outcome)
    if evidence.unreachable:
        return pipeline.judge(evidence)
    snapshot = take_snapshot(evidence)
    verdict = pipeline.judge_snapshot(snapshot, state.previous(snapshot) if state is not None else None)
    if state is not None:
        try:
            state.keep(snapshot)
        except OSError as error:
            print(f"hwcheck: this reading is not kept for the next: {error}", file=sys.stderr)
    return verdict


def _families(names: list[str], profiles: ProfileSet) -> list[str]:
    families = [family for name in names for family in name.split(",") if family]
    known = profiles.families
    for family in families:
        if family not in known:
            raise UsageError(f"no such family: {family}; there are {', '.join(sorted(known))}")
    return families


def _waivers(path: Path | None, today: dt.date) -> list[Waiver]:
    if path is None:
        return []
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ProfileError(f"cannot be read: {getattr(error, 'strerror', None) or error}", str(path)) from error
    return load_waivers(text, str(path), today)


class Tally:
    """
    Counts statuses of verdicts that stream by, for the exit code.

    Args:
        strict: a warning counts as a fail.
    """

    def __init__(self, *, strict: bool) -> None:
        self._strict = strict
        self._seen: set[Status] = set()

    def count(self, verdicts: Iterable[NodeVerdict]) -> Iterator[NodeVerdict]:
        """Pass verdicts on."""
        for verdict in verdicts:
            self._seen.update(finding.status for finding in verdict.findings if finding.counts)
            yield verdict

    @property
    def exit_code(self) -> int:
        """1 beats 3 beats 0."""
        if Status.FAIL in self._seen or (self._strict and Status.WARN in self._seen):
            return 1
        return 3 if Status.UNKNOWN in self._seen else 0


def report(verdicts: Iterable[NodeVerdict], form: str, profile: dict[str, str], started: str, *, strict: bool) -> None:
    """Print verdicts in the form asked for; text and jsonl as they come."""
    tool = f"hwcheck {__version__}"
    if form in ("json", "html", "prometheus"):
        print_whole(json_run.run_object(verdicts, tool, profile, started), form)
    elif form == "jsonl":
        for verdict in verdicts:
            print(json_run.dump(json_run.run_object([verdict], tool, profile, started)), flush=True)
    elif form == "junit":
        from hwcheck.report.junit import render_junit  # noqa: PLC0415 - only this form needs it

        sys.stdout.write(render_junit(verdicts, strict=strict))
    else:
        from hwcheck.report.text import print_run  # noqa: PLC0415 - rich is slow to import

        print_run(verdicts, strict=strict)
