"""``hwcheck accept``: declare its options; the loop itself is loaded when it is called."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from hwcheck.cli.apply import add_roll_options
from hwcheck.cli.baseline import add_measuring_options
from hwcheck.cli.option_types import days
from hwcheck.cli.plan import add_plan_options


def add_parser(verbs: Any) -> None:
    """Declare the verb's options."""
    parser = verbs.add_parser(
        "accept",
        help="the whole loop: judge, fix, measure, certify",
        description="Take new or repaired nodes into production: read and judge them, change after consent what is not "
        "right (with a reboot where that is due), judge them anew, measure them, run the tests of the site, and sign "
        "a certificate for each that passes. For every other node it says what is in the way. A node that fails holds "
        "up no other one.",
        epilog="Exit codes: 0 all are certified; 1 a node fails; 3 none fails, but something could not be told or "
        "measured; 2 wrong usage, nothing was touched.",
    )
    parser.add_argument("--yes", action="store_true", help="consent to changes, reboots and load: do not ask")
    parser.add_argument("--resume", metavar="RUN", default="", help="go on with an acceptance that was killed")
    parser.add_argument("-o", "--output", metavar="FOLDER", type=Path,
                        help="where certificates, report and run go (default: the run's own folder)")  # fmt: skip
    steps = parser.add_argument_group("steps")
    steps.add_argument("--no-fix", action="store_true", help="change nothing")
    steps.add_argument(
        "--no-baseline", action="store_true", help="measure nothing; the certificates then have no figures"
    )
    steps.add_argument("--suite", metavar="PATH", action="append", default=[],
                       help="tests of the site (pytest) that must pass too; needs hwcheck[suite]")  # fmt: skip
    steps.add_argument(
        "--after", metavar="PART", default="",
        help="a part was swapped (gpu2, nic3, mlx5_4, cable mlx5_4): measure only what it takes part in, and carry the "
        "other figures over from the last acceptance",
    )  # fmt: skip
    sign = parser.add_argument_group("certificates")
    sign.add_argument(
        "--key", metavar="FILE", type=Path, help="ed25519 key that signs (default: one made at first use)"
    )
    sign.add_argument("--valid", metavar="DAYS", type=days, default=90, help="how long they hold (default: 90d)")
    parser.add_argument("--store", metavar="URL", default=None, help="keep the run there; none: nowhere")
    add_measuring_options(parser.add_argument_group("measuring"))
    add_roll_options(parser.add_argument_group("changing"), wave="100%")
    add_plan_options(parser)
    parser.set_defaults(run=_accept, format="text", tier="deep")


def _accept(arguments: argparse.Namespace) -> int:
    from hwcheck.cli.accepting import accept  # noqa: PLC0415 - judging, Ansible, certificates: half of the start-up

    return accept(arguments)
