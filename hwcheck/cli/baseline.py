"""``hwcheck baseline``: declare its options; what measures and judges is loaded when it is called."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from hwcheck.cli.option_types import seconds
from hwcheck.cli.targets import add_target_options


def add_parser(verbs: Any) -> None:
    """Declare the verb and its deeds."""
    parser = verbs.add_parser(
        "baseline",
        help="measure nodes, and hold the figures against what is right",
        description="Measure copies within HBM, to and from the host and between GPUs, launch latency, memory of the "
        "CPUs, jitter, disk and network, with nothing installed on the nodes, and wrap nvbandwidth, nccl-tests and "
        "others where they are there. A figure that was not had under valid conditions is never scored.",
    )
    deeds = parser.add_subparsers(title="deeds", metavar="DEED", dest="deed", required=True)
    _add_run(deeds)
    _add_record(deeds)
    _add_compare(deeds)
    _add_list(deeds)


def add_measuring_options(group: Any) -> None:
    """Declare how nodes are measured; ``hwcheck accept`` has these too."""
    group.add_argument(
        "--test", dest="tests", metavar="SOURCE", action="append", default=[],
        help="measure this only (may be repeated): a source of hwcheck baseline list, or between nodes rdma.write, "
        "rdma.latency, ucx, ucx.latency, tcp, and nccl over all nodes by mpirun or srun",
    )  # fmt: skip
    group.add_argument("--no-pairs", action="store_true", help="measure nothing between nodes")
    group.add_argument("--pair-seconds", metavar="S", type=seconds, default=5.0,
                       help="seconds for one bandwidth between two nodes (default: 5)")  # fmt: skip
    group.add_argument("--gpu-memory", action="store_true",
                       help="between nodes, take buffers in GPU memory: only GPUDirect counts then")  # fmt: skip
    group.add_argument("--load-timeout", metavar="S", type=seconds, default=1800.0,
                       help="seconds for the measurements of one node (default: 1800)")  # fmt: skip
    group.add_argument("--references", metavar="FILE", type=Path,
                       help="pinned bounds (default: references.json under hwcheck's state folder)")  # fmt: skip


def _add_run(deeds: Any) -> None:
    parser = deeds.add_parser(
        "run", help="measure nodes",
        description="Read nodes, and put those under load that nobody works on, each test alone; figures that fail or "
        "are near their bound are measured once more. No setting is changed.",
    )  # fmt: skip
    parser.add_argument("--yes", action="store_true", help="consent to the load: do not ask")
    parser.add_argument("--format", choices=("text", "json", "jsonl", "junit"), default="text", help="(default: text)")
    parser.add_argument("-o", "--output", metavar="RUN.json", type=Path, help="keep the run in this file too")
    parser.add_argument("--profile", metavar="NAME", default="", help="platform profile; default: recognised")
    parser.add_argument("--site", metavar="FILE", action="append", default=[], type=Path, help="a YAML layer on top")
    parser.add_argument("--waivers", metavar="FILE", type=Path, help="accepted findings (YAML)")
    parser.add_argument("--only", metavar="FAMILY", action="append", default=[], help="judge these families only")
    parser.add_argument("--strict", action="store_true", help="warnings count as fails for the exit code")
    parser.add_argument("--store", metavar="URL", default=None, help="keep the run there; none: nowhere")
    parser.add_argument("--idle-ignore", metavar="NAME", action="append", default=[],
                        help="a program that holds devices and is no work (may be repeated)")  # fmt: skip
    add_measuring_options(parser)
    add_target_options(parser)
    parser.set_defaults(run=_run)


def _add_record(deeds: Any) -> None:
    parser = deeds.add_parser(
        "record", help="pin the bounds of each cohort by what its nodes have measured",
        description="Make of the figures of healthy nodes the bounds that later runs are held against: for each "
        "cohort (platform, driver, firmware, kernel) and test the median less six deviations, of eight parts and "
        "three nodes at least. Figures that do not count, and those of nodes that fail, are left out.",
    )  # fmt: skip
    parser.add_argument("runs", metavar="RUN.json", nargs="*", help="of these runs; default: of all in the store")
    parser.add_argument("--references", metavar="FILE", type=Path, help="write here (default: as baseline run reads)")
    parser.add_argument("--store", metavar="URL", default=None, help="take the figures from there")
    parser.set_defaults(run=_record)


def _add_compare(deeds: Any) -> None:
    parser = deeds.add_parser("compare", help="set the figures of a run beside others")
    parser.add_argument("of", metavar="RUN", help="file of a run, or the name of one in the store")
    parser.add_argument("--with", dest="beside", metavar="RUN", default="", help="an earlier one")
    parser.add_argument("--references", metavar="FILE", type=Path, help="pinned bounds")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="(default: text)")
    parser.set_defaults(run=_compare)


def _add_list(deeds: Any) -> None:
    parser = deeds.add_parser("list", help="what is measured, and what it is held against")
    parser.add_argument("--profile", metavar="NAME", default="", help="floors of this platform")
    parser.add_argument("--references", metavar="FILE", type=Path, help="pinned bounds")
    parser.set_defaults(run=_list)


def _run(arguments: argparse.Namespace) -> int:
    from hwcheck.cli.baselining import run  # noqa: PLC0415 - parsers and checks are half of the start-up

    return run(arguments)


def _record(arguments: argparse.Namespace) -> int:
    from hwcheck.cli.pinning import record  # noqa: PLC0415 - as above

    return record(arguments)


def _compare(arguments: argparse.Namespace) -> int:
    from hwcheck.cli.pinning import compare  # noqa: PLC0415 - as above

    return compare(arguments)


def _list(arguments: argparse.Namespace) -> int:
    from hwcheck.cli.pinning import show  # noqa: PLC0415 - as above

    return show(arguments)
