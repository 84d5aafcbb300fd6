"""``hwcheck lab``: simulated nodes to try, to learn and to test with; nothing of this machine is changed."""

from __future__ import annotations

import argparse
import functools
from pathlib import Path
from typing import Any

from hwcheck.cli.trouble import told

_MOST = 250
_SYSTEMS = ("ubuntu", "rhel")
_FORMS = ("auto", "host", "tree")
_TOOLS = ("nvbandwidth", "all_reduce_perf", "dcgmi", "ib_write_bw", "ib_send_lat")
_PLATFORMS = "hgx-h200, hgx-h100, hgx-b200, gb200"


def add_parser(verbs: Any) -> None:
    """Declare the verb and what it can do."""
    parser = verbs.add_parser(
        "lab", help="simulated nodes, without a GPU",
        description="Simulated nodes: their files, tools and NVML, healthy or with named faults. In host form each has "
        "its own sshd and namespaces (needs root); in tree form it is a folder that check reads with --live-root.",
    )  # fmt: skip
    parser.add_argument(
        "--dir", metavar="DIR", type=Path, help="folder of the lab (default: $XDG_STATE_HOME/hwcheck/lab)"
    )
    deeds = parser.add_subparsers(title="deeds", metavar="DEED", required=True)
    _add_up(deeds)
    down = deeds.add_parser("down", help="take nodes away; all of them where none is named")
    down.add_argument("node", nargs="*")
    down.set_defaults(run=_deed("down"))
    deeds.add_parser("list", help="what there is").set_defaults(run=_deed("list_nodes"))
    deeds.add_parser("faults", help="what can be broken").set_defaults(run=_deed("faults"))
    broken = deeds.add_parser("break", help="break a node")
    broken.add_argument("node")
    broken.add_argument("fault", nargs="+", help="NAME, or NAME:N for the GPU, adapter or socket with number N")
    broken.set_defaults(run=_deed("break_node"))
    for name, text, run in (
        ("mend", "make a node healthy again, files and all", "mend"),
        ("reboot", "reboot a node: what is volatile goes, what its files say takes effect", "reboot"),
    ):
        deed = deeds.add_parser(name, help=text)
        deed.add_argument("node")
        deed.set_defaults(run=_deed(run))
    _add_demo(deeds)
    shell = deeds.add_parser("shell", help="run a command with a node's tools and NVML; a shell where none is given")
    shell.add_argument("node")
    shell.add_argument("command", nargs=argparse.REMAINDER)
    shell.set_defaults(run=_deed("shell"))


def _add_up(deeds: Any) -> None:
    up = deeds.add_parser("up", help="make nodes")
    up.add_argument("-n", "--number", metavar="N", type=_number, default=1, help="how many (default: 1)")
    up.add_argument("--platform", metavar="P", action="append", default=[],
                    help=f"{_PLATFORMS} (default: hgx-h200); several take turns")  # fmt: skip
    up.add_argument("--os", choices=_SYSTEMS, default=_SYSTEMS[0], help=f"flavour of Linux (default: {_SYSTEMS[0]})")
    up.add_argument("--fault", metavar="F", action="append", default=[], help="a fault of every node (may be repeated)")
    up.add_argument("--tool", metavar="T", action="append", default=[], choices=_TOOLS,
                    help=f"a load tool that is installed (may be repeated): {', '.join(_TOOLS)}")  # fmt: skip
    up.add_argument("--name", metavar="PREFIX", default="lab", help="names are PREFIX-1, PREFIX-2 ... (default: lab)")
    up.add_argument("--form", choices=_FORMS, default="auto", help="auto takes the best that this machine allows")
    up.set_defaults(run=_deed("up"))


def _add_demo(deeds: Any) -> None:
    demo = deeds.add_parser(
        "demo", help="the whole loop on four nodes, in about a minute",
        description="Make four nodes, one of them healthy, one that no software can fix; judge, fix, measure and "
        "certify them, and ask the gate before and after one is broken again. Prints every command that it runs.",
    )  # fmt: skip
    demo.add_argument("--form", choices=_FORMS, default="auto", help="of the nodes: auto takes the best there is")
    demo.add_argument("-o", "--output", metavar="FOLDER", type=Path,
                      help="for certificates and report (default: hwcheck-demo-UID among temporary files)")  # fmt: skip
    demo.set_defaults(run=_deed("demo"))


def _number(text: str) -> int:
    if not text.isdigit() or not 0 < int(text) <= _MOST:
        raise argparse.ArgumentTypeError(f"from 1 to {_MOST}")
    return int(text)


def _deed(name: str) -> Any:
    """Return what runs a deed: the lab itself is read only then."""
    return functools.partial(_run, name)


def _run(name: str, arguments: argparse.Namespace) -> int:
    from hwcheck.cli import lab_deeds  # noqa: PLC0415 - the other verbs start without the lab

    with told("the lab"):
        return int(getattr(lab_deeds, name)(arguments))
