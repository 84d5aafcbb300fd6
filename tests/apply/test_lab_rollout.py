"""Roll-outs on lab nodes over SSH and Ansible: a canary that gets worse, a node that is at work, a reviewed plan."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hwcheck.lab import nodes
from hwcheck.lab.host.lab import HostLab, missing

pytestmark = [pytest.mark.lab, pytest.mark.slow]
SYSCTL = "root/etc/sysctl.d/90-hwcheck.conf"
DROP_IN = "root/etc/systemd/system/slurmd.service.d/90-hwcheck.conf"


class Desk:
    """A lab and a controller in front of it."""

    def __init__(self, folder: Path) -> None:
        self.lab = HostLab(folder / "lab")
        self._state = folder / "state"

    def up(self, name: str, *faults: str) -> None:
        """Make and start a node."""
        nodes.up(self.lab.home, name, "hgx-h200", list(faults))
        assert not self.lab.up([name])

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a verb."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        environment = {**os.environ, "XDG_STATE_HOME": str(self._state), "XDG_CACHE_HOME": str(self._state),
                       "PATH": path, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}  # fmt: skip
        return subprocess.Popen(
            [sys.executable, "-m", "hwcheck", *words], env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def run(self, *words: str) -> tuple[int, str]:
        """Run a verb to its end; returns exit code and what it said."""
        with self.start(*words) as running:
            said, _ = running.communicate(timeout=240)
            return running.returncode, said

    def apply(self, *words: str) -> tuple[str, ...]:
        """Return the words of a roll-out on all nodes."""
        inventory = str(self.lab.inventory)
        return ("apply", "-i", inventory, "--yes", "-q", "--freeze", "", "--timeout", "120", *words)

    def await_state(self, node: str, state: str) -> None:
        """Wait until the last run says this of a node."""
        until = time.monotonic() + 120
        while time.monotonic() < until:
            for path in self._state.glob("hwcheck/runs/*/run.json"):
                record = json.loads(path.read_text(encoding="utf-8"))
                if record["nodes"].get(node, {}).get("state") == state:
                    return
            time.sleep(0.1)
        pytest.fail(f"{node} was never {state}")

    def value(self, node: str) -> str:
        """Return the running value that the tests change."""
        file = self.lab.home / node / "root/proc/sys/kernel/numa_balancing"
        return file.read_text(encoding="utf-8").strip()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """Give an empty lab."""
    lacks = missing()
    if lacks:
        pytest.skip(f"the lab's host form needs {'; '.join(lacks)}")
    made = Desk(tmp_path)
    yield made
    made.lab.down()


def test_a_canary_that_gets_worse_holds_and_the_others_are_as_they_were(desk: Desk) -> None:
    """It loses a GPU between the change and the look at it; the evidence of the other nodes shows no change."""
    for name in ("n-1", "n-2", "n-3"):
        desk.up(name, "numa-balancing")
    with desk.start(*desk.apply("--settle", "8")) as running:
        desk.await_state("n-1", "changed")
        code, said = desk.run("lab", "--dir", str(desk.lab.home), "break", "n-1", "gpu-lost")
        assert code == 0, said
        said, _ = running.communicate(timeout=240)
    assert running.returncode == 1
    assert "the canary n-1 has become worse" in said
    assert "2 not touched: n-[2-3]" in said
    assert [desk.value(name) for name in ("n-1", "n-2", "n-3")] == ["0", "1", "1"]
    assert not any((desk.lab.home / name / "root/var/lib/hwcheck").exists() for name in ("n-2", "n-3"))


def test_a_node_at_work_is_never_written_to(desk: Desk) -> None:
    """A process has a GPU open: what would disturb it is refused, and nothing of it is written."""
    desk.up("n-1", "memlock-64k", "leftover-process")
    code, said = desk.run(*desk.apply("--settle", "0.2"))
    assert code == 3
    assert "the node is not idle, nothing was written" in said
    assert not (desk.lab.home / "n-1" / DROP_IN).exists()


def test_a_reviewed_plan_stops_where_the_node_has_changed_since(desk: Desk, tmp_path: Path) -> None:
    """It runs exactly as it was reviewed, or not at all."""
    desk.up("n-1", "numa-balancing")
    plan = str(tmp_path / "plan.json")
    code, said = desk.run("plan", "-i", str(desk.lab.inventory), "-q", "-o", plan)
    assert code == 0, said
    (desk.lab.home / "n-1/root/proc/sys/kernel/numa_balancing").write_text("2\n", encoding="utf-8")
    command, *rest = desk.apply("--settle", "0.2")
    code, said = desk.run(command, plan, *rest)
    assert code == 1
    assert "the plan saw running 1" in said
    assert desk.value("n-1") == "2"
    assert not (desk.lab.home / "n-1" / SYSCTL).exists()
