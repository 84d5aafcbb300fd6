"""``hwcheck collect``: keep evidence of nodes, for support, for an RMA, or to judge it again elsewhere."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from hwcheck.cli.targets import Collection, add_target_options
from hwcheck.cli.trouble import told
from hwcheck.errors import UsageError


def add_parser(verbs: Any) -> None:
    """Declare the verb's options."""
    parser = verbs.add_parser(
        "collect",
        help="keep evidence",
        description="Read nodes and keep what they said, as it came: a folder for each, or one bundle. Judge it later "
        "with hwcheck check --evidence. Secrets are taken out; files can be read by their owner alone.",
    )
    parser.add_argument(
        "-o", "--output", metavar="PLACE", required=True, type=Path, help="new folder, or bundle (NAME.tar.gz)"
    )
    parser.add_argument(
        "--redact", action="store_true", help="replace names, addresses, UUIDs and serial numbers by pseudonyms"
    )
    parser.add_argument("--keep-serials", action="store_true", help="with --redact: keep serial numbers, for an RMA")
    parser.add_argument(
        "--redact-key", metavar="FILE", type=Path,
        help="with --redact: secret that pseudonyms are made with (default: one that is kept, so that bundles agree)",
    )  # fmt: skip
    add_target_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Keep node by node; returns 3 when a node could not be read to its end."""
    if (arguments.keep_serials or arguments.redact_key) and not arguments.redact:
        raise UsageError("--keep-serials and --redact-key go with --redact")
    with told(str(arguments.output)), Collection(arguments) as collection:
        if collection.is_local:
            collection.start()
        from hwcheck.cli.keeping import keep  # noqa: PLC0415 - loaded while this machine reads

        return keep(arguments, collection)
