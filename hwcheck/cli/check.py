"""``hwcheck check``: judge evidence."""

from __future__ import annotations

import argparse
import datetime
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from hwcheck import __version__
from hwcheck.errors import ProfileError, UsageError
from hwcheck.evidence import Evidence
from hwcheck.findings import NodeVerdict, Status
from hwcheck.pipeline import Pipeline
from hwcheck.profiles import ProfileSet
from hwcheck.readers import read_paths
from hwcheck.report import json_run
from hwcheck.waivers import Waiver, load_waivers

FORMATS = ("text", "json", "jsonl", "junit")


def add_parser(verbs: Any) -> None:
    """Declare the verb's options."""
    parser = verbs.add_parser(
        "check",
        help="judge a node",
        description="Judge evidence: posted files (nvidia-smi, dmesg, ibstat ...), evidence directories, bundles.",
    )
    parser.add_argument(
        "--evidence", nargs="+", metavar="PATH", required=True,
        help="files, directories or bundles to judge; - reads standard input; paths without a manifest are one node",
    )  # fmt: skip
    parser.add_argument("--format", choices=FORMATS, default="text", help="form of the report (default: text)")
    parser.add_argument("--profile", metavar="NAME", default="", help="judge by this platform profile; default: recognised")
    parser.add_argument(
        "--site", metavar="FILE", action="append", default=[], type=Path, help="a YAML layer on top of every profile"
    )
    parser.add_argument("--strict", action="store_true", help="warnings count as fails for the exit code")
    parser.add_argument("--only", metavar="FAMILY", action="append", default=[], help="judge these families only")
    parser.add_argument("--waivers", metavar="FILE", type=Path, help="accepted findings (YAML)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Judge node by node, print, and return the exit code."""
    now = datetime.datetime.now(datetime.UTC)
    profiles = ProfileSet(arguments.site)
    if arguments.profile:
        profiles.profile(arguments.profile)  # an unknown name stops before anything is read
    only = _families(arguments.only, profiles)
    pipeline = Pipeline(profiles, arguments.profile, only, _waivers(arguments.waivers, now.date()))
    tally = Tally(arguments.strict)
    verdicts = tally.count(pipeline.judge(evidence) for evidence in _read(arguments.evidence))
    profile = {"name": arguments.profile or "auto", "hash": profiles.hash}
    started = now.isoformat(timespec="seconds")
    report(verdicts, arguments.format, profile, started, strict=arguments.strict)
    return tally.exit_code


def _read(paths: list[str]) -> Iterator[Evidence]:
    found = False
    for evidence in read_paths(paths):
        found = True
        yield evidence
    if not found:
        raise UsageError("nothing to judge in " + ", ".join(paths))


def _families(names: list[str], profiles: ProfileSet) -> list[str]:
    families = [family for name in names for family in name.split(",") if family]
    known = profiles.families
    for family in families:
        if family not in known:
            raise UsageError(f"no such family: {family}; there are {', '.join(sorted(known))}")
    return families


def _waivers(path: Path | None, today: datetime.date) -> list[Waiver]:
    if path is None:
        return []
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ProfileError(f"cannot be read: {error}", str(path)) from error
    return load_waivers(text, str(path), today)


class Tally:
    """
    Counts statuses of verdicts that stream by, for the exit code.

    Args:
        strict: a warning counts as a fail.
    """

    def __init__(self, strict: bool) -> None:
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


def report(
    verdicts: Iterable[NodeVerdict], form: str, profile: dict[str, str], started: str, *, strict: bool
) -> None:
    """Print verdicts in the form asked for; text and jsonl as they come."""
    tool = f"hwcheck {__version__}"
    if form == "json":
        print(json_run.dump(json_run.run_object(verdicts, tool, profile, started), indent=1))
    elif form == "jsonl":
        for verdict in verdicts:
            print(json_run.dump(json_run.run_object([verdict], tool, profile, started)), flush=True)
    elif form == "junit":
        from hwcheck.report.junit import render_junit  # noqa: PLC0415 - only this form needs it

        sys.stdout.write(render_junit(verdicts, strict=strict))
    else:
        from hwcheck.report.text import print_run  # noqa: PLC0415 - rich is slow to import

        print_run(verdicts, strict=strict)
