"""
``hwcheck check``: declare its options, begin to read, then load what judges.

Starts with as few imports as it can: a node, this machine above all, reads while the parsers and checks are loaded.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from hwcheck.cli.store import add_keep_option
from hwcheck.cli.targets import Collection, add_target_options
from hwcheck.cli.trouble import told
from hwcheck.errors import UsageError

FORMATS = ("text", "json", "jsonl", "junit", "html", "prometheus")


def add_parser(verbs: Any) -> None:
    """Declare the verb's options."""
    parser = verbs.add_parser(
        "check",
        help="judge nodes",
        description="Judge this machine, other nodes over SSH (-i, -w), or evidence: posted files (nvidia-smi, dmesg, "
        "ibstat ...), evidence directories, bundles. Nothing is changed on a node and nothing is left there.",
    )
    parser.add_argument(
        "--evidence", nargs="+", metavar="PATH", default=[],
        help="judge these and read no node: files, directories or bundles; - reads standard input; paths without a "
        "manifest are one node",
    )  # fmt: skip
    parser.add_argument("--format", choices=FORMATS, default="text", help="form of the report (default: text)")
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, help="write it there, whole or not at all (default: print it)"
    )
    parser.add_argument(
        "--profile", metavar="NAME", default="", help="judge by this platform profile; default: recognised"
    )
    parser.add_argument(
        "--site", metavar="FILE", action="append", default=[], type=Path, help="a YAML layer on top of every profile"
    )
    parser.add_argument("--strict", action="store_true", help="warnings count as fails for the exit code")
    parser.add_argument("--only", metavar="FAMILY", action="append", default=[], help="judge these families only")
    parser.add_argument("--waivers", metavar="FILE", type=Path, help="accepted findings (YAML)")
    parser.add_argument(
        "--no-state", action="store_true", help="neither compare with the last reading of the node nor keep this one"
    )
    add_keep_option(parser)
    add_target_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Judge node by node, print, and return the exit code."""
    if arguments.evidence:
        if arguments.inventory or arguments.nodes or arguments.root or arguments.live_root:
            raise UsageError("--evidence is judged without reading any node: leave out -i, -w, --root and --live-root")
        from hwcheck.cli.judging import judge_posted  # noqa: PLC0415 - half of the start-up, see above

        with told("this machine"):
            return judge_posted(arguments)
    with told("this machine"), Collection(arguments) as collection:
        if collection.is_local:
            collection.start()
        from hwcheck.cli.judging import judge_live  # noqa: PLC0415 - as above

        return judge_live(arguments, collection)
