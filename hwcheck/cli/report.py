"""``hwcheck report``: a run that was kept, in another form."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from hwcheck.cli.store import add_store_option

FORMATS = ("text", "html", "json", "junit", "prometheus")


def add_parser(verbs: Any) -> None:
    """Declare the verb's options."""
    parser = verbs.add_parser(
        "report",
        help="show a run that was kept: text, HTML, JUnit, Prometheus",
        description="Show a run again, in any form. HTML is one file that loads nothing: fleet, nodes, incidents with "
        "their evidence, topology, measurements, changes. Prometheus is a file for node_exporter's textfile collector.",
        epilog="Exit codes: 0 the report was made, whatever it says; 2 there is no such run.",
    )
    parser.add_argument(
        "run_names",
        metavar="RUN",
        nargs="+",
        help="a file with the JSON of a run, - for standard input, or a name in the store; several become one report",
    )
    parser.add_argument("--format", choices=FORMATS, default="text", help="form of the report (default: text)")
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, help="write it there, whole or not at all (default: print it)"
    )
    add_store_option(parser)
    parser.add_argument("--strict", action="store_true", help="a warning is a failure (text, junit)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Make the report."""
    from hwcheck.cli.reporting import make_report  # noqa: PLC0415 - rich is slow to import

    return make_report(arguments)
