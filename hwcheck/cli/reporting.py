"""Find a run and print it in the form asked for: what ``hwcheck report`` does."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from hwcheck.cli.trouble import printing, told
from hwcheck.cli.whole_file import printed_to
from hwcheck.errors import UsageError
from hwcheck.report import json_run
from hwcheck.report.merge import merge
from hwcheck.report.run_reading import read_run, verdicts_of

MAX_RUN = 4 << 30
"""Bytes of a run JSON at most: a thousand nodes have half a gigabyte."""


def make_report(arguments: argparse.Namespace) -> int:
    """Print the run; 0, whatever it says: nothing is judged here."""
    run = merge([find_run(name, arguments.store) for name in arguments.run_names])
    with printing(), printed_to(arguments.output):
        print_run(run, arguments.format, strict=arguments.strict)
        sys.stdout.flush()
    return 0


def find_run(name: str, store: str) -> dict[str, Any]:
    """
    Read a run: from standard input, from a file, or from the store.

    Raises:
        UsageError: that is no run.
        StoreError: there is neither a file nor a kept run of that name.
        MachineError: it cannot be read.
    """
    if name == "-":
        return read_run(sys.stdin.read(), "standard input")
    path = Path(name)
    if path.is_file():
        with told(name):
            if path.stat().st_size > MAX_RUN:
                raise UsageError(f"{name} is too large for the JSON of a run")
            return read_run(path.read_text(encoding="utf-8", errors="replace"), name)
    if "/" in name or name.endswith(".json"):
        raise UsageError(f"{name}: no such file")
    from hwcheck.store import Store  # noqa: PLC0415 - SQLAlchemy is slow to import

    return Store.open(store).load(name)


def print_run(run: dict[str, Any], form: str, *, strict: bool = False) -> None:
    """Print a run in any of the forms."""
    if form == "junit":
        from hwcheck.report.junit import render_junit  # noqa: PLC0415 - only this form needs it

        sys.stdout.write(render_junit(verdicts_of(run), strict=strict))
    elif form == "text":
        from hwcheck.report import text  # noqa: PLC0415 - rich is slow to import

        text.print_run(verdicts_of(run), strict=strict)
    else:
        print_whole(run, form)


def print_whole(run: dict[str, Any], form: str) -> None:
    """Print a run in one of the forms that are made of its JSON: json, html, prometheus."""
    if form == "html":
        from hwcheck.report.html import html  # noqa: PLC0415 - only this form needs it

        sys.stdout.write(html(run))
    elif form == "prometheus":
        from hwcheck.report.prometheus import render_prometheus  # noqa: PLC0415 - as above

        sys.stdout.write(render_prometheus(run))
    else:
        print(json_run.dump_lines(run))
