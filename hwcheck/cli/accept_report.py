"""The end of an acceptance: its files, and what the operator is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hwcheck.cli.certifying import Certified, write_whole
from hwcheck.cli.measuring import Measured
from hwcheck.cli.targets import fold
from hwcheck.report.html import html
from hwcheck.report.json_run import dump_lines
from hwcheck.report.sheet import visible


def write_files(run: dict[str, Any], place: Path) -> None:
    """
    Write ``run.json`` and ``report.html``.

    Raises:
        OSError: one cannot be written.
    """
    place.mkdir(parents=True, exist_ok=True)
    write_whole(place / "run.json", (dump_lines(run) + "\n").encode())
    write_whole(place / "report.html", html(run).encode())


def tell(run: dict[str, Any], certified: Certified, left_out: list[Measured], place: Path, *, kept: bool) -> int:
    """
    Say which nodes are certified, and what is in the way of each other one; returns the exit code.

    Args:
        run: the whole of it.
        certified: what came of certifying.
        left_out: nodes that were not measured though they should have been.
        place: folder of the files.
        kept: whether the run is in the store and all changes are right.
    """
    if certified.files:
        names = [name for name in certified.files if name]
        print(f"{len(certified.files)} certified: {fold(names) or 'this machine'}")
    for one in certified.refused:
        print(f"not certified: {visible(one.node) or 'this machine'}")
        for reason in one.reasons:
            print(f"    {visible(reason)}")
    for node in left_out:
        print(f"not measured: {visible(node.name) or 'this machine'}: {visible(node.left_out)}")
    print(f"report:       {place / 'report.html'}")
    print(f"certificates: {place}")
    print(f"run {run['run']}")
    if any(one.failed for one in certified.refused):
        return 1
    return 3 if certified.refused or left_out or not kept else 0
