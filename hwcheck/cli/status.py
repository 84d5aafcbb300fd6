"""``hwcheck status``: how the fleet stands, by the runs that were kept."""

from __future__ import annotations

import argparse
from typing import Any

from hwcheck.cli.option_types import age
from hwcheck.cli.store import add_store_option


def add_parser(verbs: Any) -> None:
    """Declare the verb's options."""
    parser = verbs.add_parser(
        "status",
        help="say how the fleet stands, by the runs that were kept",
        description="Say of each node whether it is ok, failing or unknown by the last runs that were kept, which are "
        "drained by hwcheck, which findings are waived and until when, and which nodes have had no run for long. "
        "Exit code: 1 where a node fails, 3 where one is unknown or stale.",
    )
    parser.add_argument(
        "--stale", type=age, default=86400.0, metavar="AGE", help="a node without a run for so long is (default: 24h)"
    )
    parser.add_argument(
        "--expiring",
        type=age,
        default=14 * 86400.0,
        metavar="AGE",
        help="warn of waivers that end so soon (default: 14d)",
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="form (default: text)")
    add_store_option(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Ask and print."""
    from hwcheck.cli.status_report import report  # noqa: PLC0415 - SQLAlchemy is slow to import

    return report(arguments)
