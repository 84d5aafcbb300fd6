"""``hwcheck gate``: declare its options. Where nothing has changed, :mod:`hwcheck.cli.start` answers before that."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from hwcheck.cli.option_types import count, seconds
from hwcheck.cli.targets import Collection, add_target_options
from hwcheck.cli.trouble import told
from hwcheck.errors import UsageError

TIMEOUT = 45.0
"""Seconds for one node: Slurm ends a health check after 60."""
TRUST = 3600.0


def add_parser(verbs: Any) -> None:
    """Declare the verb's options."""
    parser = verbs.add_parser(
        "gate",
        help="ready or not",
        description="Is this machine ready for a job, or other nodes (-i, -w): certified, in date, as it was then, "
        "and without a new error? One line says why. Exit codes: 0 ready; 1 not; 3 could not tell (yet).",
    )
    parser.add_argument(
        "--certificate", metavar="PATH", type=Path,
        help="the node's certificate (default: /etc/hwcheck/certificate.json); for other nodes a folder that holds "
        "NODE.cert.json of each",
    )  # fmt: skip
    parser.add_argument(
        "--key", metavar="FILE", type=Path,
        help="public key that certificates are signed with (default: /etc/hwcheck/certificate.pub; for other nodes "
        "the key pinned here)",
    )  # fmt: skip
    parser.add_argument("--cuda", action="store_true", help="run a first kernel on each GPU too; always a full check")
    parser.add_argument(
        "--require", metavar="KIND", action="append", default=[],
        help="say ready only when this kind of output was told (may be repeated), such as chronyc.tracking",
    )  # fmt: skip
    parser.add_argument(
        "--unknown-times", metavar="N", type=count, default=3,
        help="what cannot be told so often in a row is a no (default: 3)",
    )  # fmt: skip
    parser.add_argument(
        "--unknown-for", metavar="S", type=seconds, default=0.0,
        help="what cannot be told for so many seconds is a no, however often it was asked",
    )  # fmt: skip
    parser.add_argument(
        "--trust", metavar="S", type=seconds, default=TRUST,
        help=f"how long a full check that passed is trusted while nothing changes (default: {TRUST:.0f} s)",
    )  # fmt: skip
    parser.add_argument("--full", action="store_true", help="a full check, whatever has changed")
    parser.add_argument("--explain", action="store_true", help="say what was looked at")
    parser.add_argument(
        "--state", metavar="DIR", default="", help="folder to remember looks in (default: /run/hwcheck, or XDG state)"
    )
    parser.add_argument("--profile", metavar="NAME", default="", help="judge by this platform profile")
    parser.add_argument("--site", metavar="FILE", action="append", default=[], type=Path, help="a YAML layer on top")
    parser.add_argument("--waivers", metavar="FILE", type=Path, help="accepted findings (YAML)")
    parser.add_argument(
        "--print", metavar="NAME", default="",
        help="write out a ready-made integration: slurm-prolog, slurm-health, systemd, npd or ci",
    )  # fmt: skip
    parser.add_argument("--into", metavar="DIR", type=Path, help="with --print: write its files there")
    add_target_options(parser)
    parser.set_defaults(run=run, strict=False, only=[], format="text")


def run(arguments: argparse.Namespace) -> int:
    """Say ready or not, node by node, and return the exit code."""
    if arguments.print:
        from hwcheck.cli.gate_files import write_out  # noqa: PLC0415 - judges nothing

        return write_out(arguments.print, arguments.into)
    if arguments.into:
        raise UsageError("--into goes with --print")
    if arguments.root:
        raise UsageError("an image is not running: there is nothing to be ready (--live-root for a running node)")
    arguments.timeout = arguments.timeout or (TIMEOUT if not arguments.cuda else 0.0)
    if arguments.cuda:
        _ask_cuda(arguments)
    from hwcheck.cli.gating import gate  # noqa: PLC0415 - half of the start-up

    with told("this machine"), Collection(arguments) as collection:
        return gate(arguments, collection)


def _ask_cuda(arguments: argparse.Namespace) -> None:
    """Ask the first kernel of the deep tier, and nothing else of it."""
    from hwcheck.sources.catalogue import SOURCES  # noqa: PLC0415 - only this asks for them

    deep = {source.id for source in SOURCES if source.tier == "deep"} - {"cuda-sanity"}
    if arguments.tier == "quick":
        arguments.tier = "deep"
        arguments.off = [*arguments.off, ",".join(sorted(deep))]
    arguments.require = [*arguments.require, "cuda.sanity"]
