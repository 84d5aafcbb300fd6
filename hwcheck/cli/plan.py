"""``hwcheck plan``: declare its options, begin to read, then load what judges and plans; as ``hwcheck check`` does."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from hwcheck.cli.targets import Collection, add_target_options
from hwcheck.errors import UsageError

FORMATS = ("text", "json", "ansible-vars")


def add_parser(verbs: Any) -> None:
    """Declare the verb's options."""
    parser = verbs.add_parser(
        "plan",
        help="what would be changed on nodes",
        description="Judge nodes as hwcheck check does, and say what would be changed to put right what is not: "
        "settings, restarts, one reboot at most; what is left out, and what needs a person. Nothing is changed.",
        epilog="Exit codes: 0 also when there is work to do; 4 then with --detailed-exitcode; 3 something could not be "
        "told; 2 wrong usage.",
    )
    add_plan_options(parser)
    parser.add_argument("--format", choices=FORMATS, default="text", help="form of the plan (default: text)")
    parser.add_argument("-o", "--output", metavar="PLANFILE", type=Path, help="keep the plan for hwcheck apply")
    parser.add_argument("--detailed-exitcode", action="store_true", help="exit 4 when there is work to do")
    parser.set_defaults(run=run)


def add_plan_options(parser: Any) -> None:
    """Declare what to judge, by what, and which opt-in changes are wanted."""
    parser.add_argument(
        "--evidence", nargs="+", metavar="PATH", default=[],
        help="plan by these and read no node: files, directories or bundles; - reads standard input",
    )  # fmt: skip
    parser.add_argument("--profile", metavar="NAME", default="", help="platform profile; default: recognised")
    parser.add_argument(
        "--site", metavar="FILE", action="append", default=[], type=Path, help="a YAML layer on top of every profile"
    )
    parser.add_argument("--only", metavar="FAMILY", action="append", default=[], help="plan for these families only")
    parser.add_argument("--waivers", metavar="FILE", type=Path, help="accepted findings (YAML): nothing is planned")
    parser.add_argument(
        "--opt-in", metavar="CHECK|FAMILY", action="append", default=[],
        help="plan also what is done only where it is asked for (may be repeated)",
    )  # fmt: skip
    add_target_options(parser)
    parser.set_defaults(strict=False)


def run(arguments: argparse.Namespace) -> int:
    """Plan, print, and return the exit code."""
    if arguments.evidence:
        if arguments.inventory or arguments.nodes or arguments.root or arguments.live_root:
            raise UsageError("--evidence is planned without reading any node: leave out -i, -w, --root and --live-root")
        from hwcheck.cli.planning import Planning, tell  # noqa: PLC0415 - half of the start-up

        return tell(arguments, Planning(arguments).of_evidence(arguments.evidence))
    with Collection(arguments) as collection:
        if collection.is_local:
            collection.start()
        from hwcheck.cli.planning import Planning, tell  # noqa: PLC0415 - as above

        return tell(arguments, Planning(arguments).of_nodes(collection, quiet=arguments.quiet))
