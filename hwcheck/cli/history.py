"""``hwcheck history``: since when is something so, and what changed before it."""

from __future__ import annotations

import argparse
from typing import Any

from hwcheck.cli.option_types import age
from hwcheck.cli.store import add_store_option


def add_parser(verbs: Any) -> None:
    """Declare the verb's options."""
    parser = verbs.add_parser(
        "history",
        help="say since when a check fails, and what changed before it",
        description="Say of all runs that were kept since when something fails, when it was right again, and what "
        "changed in between: driver, firmware, kernel, parts, boots, and what hwcheck wrote.",
    )
    parser.add_argument("node", nargs="?", default="", metavar="NODE", help="node or node set; - or nothing: all")
    parser.add_argument("check", nargs="?", default="", metavar="CHECK", help="id, family, or pattern such as xid.*")
    parser.add_argument(
        "--since", type=age, default=90 * 86400.0, metavar="AGE", help="look back so far: 12h, 30d (default: 90d)"
    )
    parser.add_argument("--lasting", action="store_true", help="leave out what was right again")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="form (default: text)")
    add_store_option(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Ask and print."""
    from hwcheck.cli.history_report import report  # noqa: PLC0415 - SQLAlchemy is slow to import

    return report(arguments)
