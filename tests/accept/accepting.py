"""A lab fleet that is accepted: nodes with mixed faults, and the controller that does it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hwcheck.lab import nodes
from hwcheck.lab.faults import FAULTS, catalogue
from hwcheck.lab.host.lab import HostLab
from tests.apply.fixing import OPT_IN, SITE

FLEET = (
    ("hgx-h200", ""), ("hgx-h100", ""), ("hgx-b200", ""), ("gb200", ""),
    ("hgx-h200", "persistence-off"), ("hgx-h100", "governor-powersave"), ("gb200", "memlock-64k"),
    ("hgx-b200", "numa-balancing"), ("hgx-h200", "fabric-manager-down"), ("gb200", "scheduler-down"),
    ("hgx-h100", "aspm-on"), ("hgx-b200", "chrony-dead"),
    ("hgx-h100", "remap-failed"), ("hgx-h200", "nvlinks-dead"), ("hgx-b200", "port-slow"), ("gb200", "c2c-link-down"),
)  # fmt: skip
"""Platform and fault of each node: healthy ones, twelve that end well, and four that no software can fix."""
STAGES = ("check", "apply", "recheck", "baseline")


@dataclass(frozen=True)
class Ended:
    """How a controller ended."""

    code: int
    out: str
    err: str


class AcceptBench:
    """
    One lab.

    Args:
        folder: for the lab and the controller's state.
        fleet: platform and fault of each node.
    """

    def __init__(self, folder: Path, fleet: tuple[tuple[str, str], ...] = FLEET) -> None:
        catalogue()
        self.lab = HostLab(folder / "lab")
        self.state = folder / "state"
        self.faults: dict[str, str] = {}
        for number, (platform, fault) in enumerate(fleet, 1):
            name = f"n{number:02d}"
            self.faults[name] = fault
            nodes.up(self.lab.home, name, platform, [fault] if fault else [])
        failed = self.lab.up(list(self.faults))
        assert not failed, failed

    def close(self) -> None:
        """End the lab."""
        self.lab.down()

    @property
    def by_hand(self) -> set[str]:
        """Nodes that no software can fix."""
        return {name for name, fault in self.faults.items() if fault and FAULTS[fault].fix == "hands"}

    def run(self, *words: str) -> Ended:
        """Run a verb to its end."""
        return self.program(*self._command(*words))

    def program(self, *words: str) -> Ended:
        """Run a program to its end."""
        done = subprocess.run(
            words, env=self._environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
            check=False, timeout=900,
        )  # fmt: skip
        return Ended(done.returncode, done.stdout, done.stderr)

    def words(self) -> list[str]:
        """Return the command line of an acceptance."""
        return [
            "accept", "-i", str(self.lab.inventory), "--site", str(SITE), "--opt-in", OPT_IN, "--yes", "--settle",
            "0.5", "--freeze", "", "--test", "load-hbm", "--reboot-timeout", "60", "--connect-timeout", "60",
        ]  # fmt: skip

    def kill_after(self, stage: str) -> str:
        """
        Begin an acceptance and kill it once it has recorded a stage, or begun a run of apply.

        Returns:
            Its name.
        """
        controller = subprocess.Popen(
            self._command(*self.words()), env=self._environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        known = set(self.state.glob("hwcheck/accept/*/accept.json"))
        until = time.monotonic() + 300
        while time.monotonic() < until and controller.poll() is None:
            for path in set(self.state.glob("hwcheck/accept/*/accept.json")) - known:
                record = json.loads(path.read_text(encoding="utf-8"))
                if stage in {one["stage"] for one in record["stages"]} or (stage == "begun" and record["apply"]):
                    controller.send_signal(signal.SIGKILL)
                    controller.wait()
                    return path.parent.name
            time.sleep(0.05)
        raise AssertionError(f"it ended before {stage}")

    def result(self, run: str) -> tuple[dict[str, Any], Path]:
        """Return the record of an acceptance, and the folder of its certificates."""
        folder = self.state / "hwcheck/accept" / run / "result"
        told: dict[str, Any] = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        return told, folder

    def _command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "hwcheck", *words]

    def _environment(self) -> dict[str, str]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        return {**os.environ, "XDG_STATE_HOME": str(self.state), "XDG_CACHE_HOME": str(self.state), "PATH": path,
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}  # fmt: skip
