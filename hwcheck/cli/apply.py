"""``hwcheck apply`` and ``hwcheck rollback``: declare their options; what they do is loaded when they are called."""

from __future__ import annotations

import argparse
from typing import Any

from hwcheck.cli.plan import add_plan_options
from hwcheck.cli.targets import add_target_options


def add_parsers(verbs: Any) -> None:
    """Declare both verbs."""
    _add_apply(verbs)
    _add_rollback(verbs)


def _add_apply(verbs: Any) -> None:
    parser = verbs.add_parser(
        "apply",
        help="change nodes so that they pass",
        description="Read and judge nodes, show what would be changed, and after consent change it: a canary of each "
        "cohort first, then waves, each read anew and compared. A node that is not idle is never written to. Every "
        "change is journalled before it is made: hwcheck rollback RUN takes it back.",
        epilog="Exit codes: 0 changed and right; 1 something could not be changed, a node got worse, or the roll-out "
        "holds; 3 a node could not be reached or was not idle; 2 wrong usage, nothing was touched.",
    )
    parser.add_argument("planfile", nargs="?", metavar="PLANFILE",
                        help="a reviewed plan (hwcheck plan -o), carried out exactly as it stands")  # fmt: skip
    parser.add_argument("--yes", action="store_true", help="consent: do not ask")
    parser.add_argument("--dry-run", action="store_true", help="say what each node would write, and write nothing")
    parser.add_argument("--resume", metavar="RUN", default="", help="go on with a run that was killed or is held")
    add_roll_options(parser.add_argument_group("roll-out"))
    add_plan_options(parser)
    parser.set_defaults(run=_apply, format="text")


def add_roll_options(roll: Any, wave: str = "1,5%,25%,100%") -> None:
    """Declare how a roll-out goes; ``hwcheck accept`` has these too, and all nodes in one wave."""
    roll.add_argument(
        "--wave", metavar="SIZES", default=wave,
        help="units of the canary for each cohort, then sizes of the waves (default: %(default)s)",
    )  # fmt: skip
    roll.add_argument(
        "--max-down", metavar="N", type=int, default=0, help="nodes out of work at once (default: a wave)"
    )
    roll.add_argument(
        "--max-domains", metavar="N", type=int, default=1,
        help="failure domains (hwcheck_failure_domain in the inventory) that a wave touches; 0: any (default: 1)",
    )  # fmt: skip
    roll.add_argument(
        "--drain", metavar="COMMAND", default="",
        help="slurm, or a command that gets the node's name and ends once it is drained and idle",
    )  # fmt: skip
    roll.add_argument("--undrain", metavar="COMMAND", default="", help="puts back what --drain COMMAND has drained")
    roll.add_argument("--drain-timeout", metavar="S", type=float, default=3600.0, help="seconds (default: 3600)")
    roll.add_argument(
        "--settle", metavar="S", type=float, default=3.0,
        help="seconds after a change before the node is judged, and between reads (default: 3)",
    )  # fmt: skip
    roll.add_argument("--reboot-timeout", metavar="S", type=float, default=900.0, help="seconds (default: 900)")
    roll.add_argument("--no-reboot", action="store_true", help="write what needs a reboot, and leave that to others")
    roll.add_argument(
        "--freeze", metavar="FILE", default="/etc/hwcheck/freeze",
        help="while this file is there, nothing is changed (default: /etc/hwcheck/freeze)",
    )  # fmt: skip
    roll.add_argument(
        "--idle-ignore", metavar="NAME", action="append", default=[],
        help="a program that holds devices and is no work (may be repeated)",
    )  # fmt: skip


def _add_rollback(verbs: Any) -> None:
    parser = verbs.add_parser(
        "rollback",
        help="take back what a run of apply has changed",
        description="Take back what a run has changed, where it is still as the run left it; what somebody else has "
        "changed since is left and said.",
    )
    parser.add_argument("of", metavar="RUN", help="name of the run, as hwcheck apply prints it")
    parser.add_argument("--yes", action="store_true", help="consent: do not ask")
    parser.add_argument(
        "--reboot", action="store_true",
        help="reboot idle nodes on which an old value counts from the next boot only; also after an earlier rollback",
    )  # fmt: skip
    add_target_options(parser)
    parser.set_defaults(run=_rollback)


def _apply(arguments: argparse.Namespace) -> int:
    from hwcheck.cli.applying import apply  # noqa: PLC0415 - judging, Ansible: loaded only where something is changed

    return apply(arguments)


def _rollback(arguments: argparse.Namespace) -> int:
    from hwcheck.cli.rolling_back import rollback  # noqa: PLC0415 - as above

    return rollback(arguments)
