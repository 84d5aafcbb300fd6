"""``hwcheck store``: where runs are kept, which there are, take some in, forget old ones."""

from __future__ import annotations

import argparse
import os
from typing import Any

from hwcheck.cli.option_types import age

VARIABLE = "HWCHECK_STORE"
_HELP = f"postgresql://HOST/DATABASE, sqlite:///FILE, or a file; default: ${VARIABLE}, else a file of your own"


def add_store_option(parser: Any) -> None:
    """Declare ``--store`` of a verb that asks a store."""
    parser.add_argument("--store", metavar="URL", default=_default() or "", help=_HELP)


def add_keep_option(parser: Any) -> None:
    """Declare ``--store`` of a verb that keeps its run where that is asked for."""
    parser.add_argument(
        "--store", metavar="URL", nargs="?", const=_default() or "", default=_default(),
        help=f"keep this run, for history and status; {_HELP}; with ${VARIABLE} set each run is kept; none: nowhere",
    )  # fmt: skip


def _default() -> str | None:
    return os.environ.get(VARIABLE) or None


def add_parser(verbs: Any) -> None:
    """Declare the verb's options."""
    parser = verbs.add_parser(
        "store", help="keep and forget runs", description="Say where runs are kept, take runs in, list and forget them."
    )
    deeds = parser.add_subparsers(title="deeds", metavar="DEED", dest="deed", required=True)
    _add(deeds, "path", "print where runs are kept")
    found = _add(deeds, "list", "list runs, the newest first")
    found.add_argument("--kind", default="", help="check, apply, baseline, accept or gate")
    found.add_argument("--node", default="", metavar="NODE", help="runs that have this node")
    found.add_argument("--limit", type=int, default=50, metavar="N", help="the last N (default: 50)")
    _add(deeds, "show", "print a run as JSON").add_argument("name", metavar="RUN")
    taken = _add(deeds, "import", "take in runs: hwcheck check --format json, or files that wait beside a store")
    taken.add_argument("files", nargs="+", metavar="FILE", help="- reads standard input")
    forget = _add(deeds, "forget", "remove old runs")
    forget.add_argument("--older", type=age, required=True, metavar="AGE", help="that began before that: 90d, 12h")
    parser.set_defaults(run=run)


def _add(deeds: Any, name: str, text: str) -> Any:
    parser = deeds.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    add_store_option(parser)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Do it."""
    from hwcheck.cli.store_deeds import DEEDS  # noqa: PLC0415 - SQLAlchemy is slow to import

    return DEEDS[arguments.deed](arguments)
