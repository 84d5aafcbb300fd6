"""The end of an acceptance: its files, and what the operator is told."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hwcheck.apply import run_folder as states
from hwcheck.cli.certifying import PUBLIC, Certified
from hwcheck.cli.targets import fold
from hwcheck.errors import MachineError
from hwcheck.fleet import FLEET
from hwcheck.places import write_whole
from hwcheck.report.html import html
from hwcheck.report.json_run import dump_lines
from hwcheck.report.sheet import visible

RUN_FILE, REPORT_FILE = "run.json", "report.html"


def demand_place(place: Path) -> None:
    """
    Make sure that files can be written into a folder; it is made where it is not there.

    Raises:
        MachineError: they cannot.
    """
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        raise MachineError(f"{place}: {error.strerror or error}; nothing was begun") from error


def write_files(run: dict[str, Any], place: Path) -> None:
    """
    Write ``run.json`` and ``report.html``.

    Raises:
        OSError: one cannot be written.
    """
    place.mkdir(parents=True, exist_ok=True)
    write_whole(place / RUN_FILE, (dump_lines(run) + "\n").encode(), PUBLIC)
    write_whole(place / REPORT_FILE, html(run).encode(), PUBLIC)


@dataclass(frozen=True, slots=True)
class Ending:
    """
    How an acceptance has ended.

    Attributes:
        run: the whole of it.
        certified: what came of certifying.
        withdrawn: nodes that had a certificate of an earlier run in the folder.
        not_changed: node → its state in the run of apply and why, where that is not a good one.
        place: folder of the files.
    """

    run: dict[str, Any]
    certified: Certified
    withdrawn: list[str]
    not_changed: Mapping[str, tuple[str, str]]
    place: Path

    @property
    def code(self) -> int:
        """The exit code, where the run is kept."""
        across = {node["verdict"] for node in self.run["nodes"] if node["platform"] == FLEET}
        bad = any(state in (states.FAILED, states.QUARANTINED) for state, _ in self.not_changed.values())
        if bad or "fail" in across or any(one.failed for one in self.certified.refused):
            return 1
        return 3 if self.certified.refused or self.not_changed or "unknown" in across else 0

    def tell(self) -> None:
        """Say which nodes are certified, and what is in the way of each other one."""
        if self.certified.files:
            names = [name for name in self.certified.files if name]
            print(f"{len(self.certified.files)} certified: {fold(names) or 'this machine'}")
        for one in self.certified.refused:
            print(f"not certified: {visible(one.node) or 'this machine'}")
            for reason in one.reasons:
                print(f"    {visible(reason)}")
            if one.node in self.withdrawn:
                print("    its certificate of an earlier run is withdrawn from this folder")
        for name, (state, why) in self.not_changed.items():
            reason = f": {visible(why)}" if why else ""
            print(f"not changed as planned: {visible(name) or 'this machine'}: {state}{reason}")
        self._tell_across()
        tell_files(self.run["run"], self.place)

    def _tell_across(self) -> None:
        across = {node["name"] for node in self.run["nodes"] if node["platform"] == FLEET}
        for one in self.run["findings"]:
            if one["node"] in across and one["status"] in ("fail", "unknown") and one["waived"] is None:
                print(f"across the nodes: {one['status']} {one['check']}: {visible(one['message'])}")


def tell_files(name: str, place: Path) -> None:
    """Say where the files of a run are."""
    print(f"report:       {place / REPORT_FILE}")
    print(f"certificates: {place}")
    print(f"run {name}")
