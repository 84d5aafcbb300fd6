"""``hwcheck explain``: say what a check, a code, a profile, a source or a fact is."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add_parser(verbs: Any) -> None:
    """Declare the verb's options."""
    parser = verbs.add_parser(
        "explain",
        help="explain a check, code, profile, source, mechanism or fact",
        description="Explain a check id (hbm.total), a code (xid 79, sxid 20034), a profile (hgx-h200), a source "
        "(nvidia-smi.q), a mechanism (kernel_argument) or a fact (gpu.memory.total).",
    )
    parser.add_argument("words", nargs="+", metavar="ID")
    parser.add_argument(
        "--site", metavar="FILE", action="append", default=[], type=Path, help="a YAML layer on top: what it changes"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the page."""
    from hwcheck.profiles import ProfileSet  # noqa: PLC0415 - the other verbs read nodes before they load it
    from hwcheck.report.explain import print_page  # noqa: PLC0415 - rich is slow to import
    from hwcheck.sources.catalogue import SOURCES  # noqa: PLC0415 - as above

    print_page(arguments.words, ProfileSet(arguments.site), {source.kind: source.note for source in SOURCES})
    return 0
