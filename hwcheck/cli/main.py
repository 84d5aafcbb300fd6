"""
``hwcheck``: parse the command line, call the verb, turn errors into exit codes.

Exit codes, the same for every verb: 0 no fail, all that was asked answered · 1 at least one fail · 2 usage, profile or
evidence wrong, nothing was judged · 3 no fail, but something asked could not be told. 1 beats 3 beats 0; warnings alone
are 0 unless ``--strict``.
"""

from __future__ import annotations

import argparse
import os
import sys

from hwcheck import __version__
from hwcheck.cli import accept as accept_verb
from hwcheck.cli import apply as apply_verbs
from hwcheck.cli import baseline as baseline_verb
from hwcheck.cli import certify as certify_verb
from hwcheck.cli import check as check_verb
from hwcheck.cli import collect as collect_verb
from hwcheck.cli import completion as completion_verb
from hwcheck.cli import explain as explain_verb
from hwcheck.cli import gate as gate_verb
from hwcheck.cli import history as history_verb
from hwcheck.cli import lab as lab_verb
from hwcheck.cli import plan as plan_verb
from hwcheck.cli import report as report_verb
from hwcheck.cli import rma as rma_verb
from hwcheck.cli import status as status_verb
from hwcheck.cli import store as store_verb
from hwcheck.cli import verify as verify_verb
from hwcheck.cli import waive as waive_verb
from hwcheck.errors import HwcheckError

USAGE = 2


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    parser = build_parser()
    arguments = parser.parse_args(argv)
    if getattr(arguments, "run", None) is None:
        parser.print_help(sys.stderr)
        return USAGE
    try:
        return int(arguments.run(arguments))
    except HwcheckError as error:
        print(f"hwcheck: {printable(str(error))}", file=sys.stderr)
        return USAGE
    except BrokenPipeError:
        # the reader (head, less) is gone: no traceback, and no second one when the interpreter flushes stdout
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141  # 128 + SIGPIPE, what a shell would see of a program that the signal ends
    except OSError as error:
        # a full disk, a folder that may not be written: a traceback would end with 1, which means that a node fails
        print(f"hwcheck: {printable(f'{error.filename or arguments.verb}: {error.strerror}')}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        print("hwcheck: interrupted", file=sys.stderr)
        return 130


def printable(text: str) -> str:
    """Escape what a file name or a node could smuggle into a terminal."""
    return "".join(char if char.isprintable() or char == "\n" else ascii(char)[1:-1] for char in text)


def build_parser() -> argparse.ArgumentParser:
    """Declare all verbs."""
    parser = argparse.ArgumentParser(
        prog="hwcheck",
        description="Is this GPU node fit for production, why not, and what makes it so?",
        epilog="Exit codes: 0 no fail; 1 a fail; 2 wrong usage, nothing was judged; "
        "3 something asked could not be told.",
    )
    parser.add_argument("--version", action="version", version=f"hwcheck {__version__}")
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", dest="verb")
    check_verb.add_parser(verbs)
    collect_verb.add_parser(verbs)
    plan_verb.add_parser(verbs)
    apply_verbs.add_parsers(verbs)
    baseline_verb.add_parser(verbs)
    accept_verb.add_parser(verbs)
    certify_verb.add_parser(verbs)
    verify_verb.add_parser(verbs)
    waive_verb.add_parser(verbs)
    rma_verb.add_parser(verbs)
    gate_verb.add_parser(verbs)
    report_verb.add_parser(verbs)
    history_verb.add_parser(verbs)
    status_verb.add_parser(verbs)
    store_verb.add_parser(verbs)
    explain_verb.add_parser(verbs)
    lab_verb.add_parser(verbs)
    completion_verb.add_parser(verbs)
    return parser
