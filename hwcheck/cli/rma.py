"""``hwcheck rma``: one file for the vendor: what is wrong with a part, its serial number, and the evidence."""

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
        "rma",
        help="bundle for the vendor",
        description="Make one file for the vendor: incident and findings of a part, its serial number, and the "
        "evidence, read now (deep tier) or taken earlier. Nothing is reset or changed; do it before anything is.",
        epilog="Exit codes: 0 the bundle is whole; 3 the node could not be read to its end (a bundle is made of what "
        "came) or not at all (none is made); 2 wrong usage.",
    )  # fmt: skip
    parser.add_argument("node", metavar="NODE", nargs="?", default="", help="of the inventory, or reached over SSH")
    parser.add_argument(
        "--evidence", nargs="+", metavar="PATH", default=[],
        help="read no node: an evidence directory, a bundle or posted files; NODE chooses among several",
    )  # fmt: skip
    parser.add_argument(
        "--gpu", metavar="N|ADDRESS|SERIAL", default="", help="the part: index, PCI address, serial number or UUID"
    )
    parser.add_argument("-o", "--output", metavar="FILE.tar.gz", type=Path, required=True, help="where to write it")
    parser.add_argument(
        "--redact", action="store_true", help="replace names, addresses and UUIDs by pseudonyms; serial numbers stay"
    )
    parser.add_argument("--redact-key", metavar="FILE", type=Path, help="with --redact: as for hwcheck collect")
    parser.add_argument(
        "--site", metavar="FILE", action="append", default=[], type=Path, help="YAML layers to judge by"
    )
    parser.add_argument("--store", metavar="URL", default="", help="store of earlier runs (default: this user's)")
    add_target_options(parser)
    parser.set_defaults(run=run, tier="deep")


def run(arguments: argparse.Namespace) -> int:
    """Read, judge, bundle, and return the exit code."""
    if not arguments.output.name.endswith((".tar.gz", ".tgz")):
        raise UsageError(f"{arguments.output}: the bundle is one file, NAME.tar.gz")
    if arguments.redact_key and not arguments.redact:
        raise UsageError("--redact-key goes with --redact")
    if arguments.evidence:
        if arguments.inventory or arguments.nodes or arguments.root or arguments.live_root:
            raise UsageError("--evidence is bundled without reading any node: leave out -i, -w, --root and --live-root")
        from hwcheck.cli.rma_bundle import of_evidence  # noqa: PLC0415 - half of the start-up

        with told(str(arguments.output)):
            return of_evidence(arguments)
    if arguments.node:
        if arguments.nodes or arguments.limit:
            raise UsageError("NODE says which node: leave out -w and --limit")
        if arguments.inventory:
            arguments.limit = arguments.node
        else:
            arguments.nodes = arguments.node
    with told(str(arguments.output)), Collection(arguments) as collection:
        if len(collection.targets) != 1:
            raise UsageError(f"a bundle is of one node, these are {len(collection.targets)}: name it")
        if collection.is_local:
            collection.start()
        from hwcheck.cli.rma_bundle import of_node  # noqa: PLC0415 - loaded while this machine reads

        return of_node(arguments, collection)
