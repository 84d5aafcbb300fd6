"""
``./run bench apply``: the settings of lab nodes brought about, side by side in one run on the same nodes.

hwcheck (read → plan → one module call → read anew and judge) against the same settings as builtin tasks of Ansible, one
a key whatever the number of devices, which only write their line into a file: no running value, no journal, no reading
back. All settings of the H200 profile that a lab node can have wrong, and kernel parameters of a site. Both have
pipelining, 32 forks, a key exchange without its post-quantum part and shared connections. Nodes are made anew for each
run, so that everything is to be changed each time. Controller and nodes share this machine's cores, and a node's tools
(systemctl, update-grub) are programs in Python here; so the controller's own CPU time is told beside the wall time.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from hwcheck.lab import nodes
from hwcheck.lab.host.lab import HostLab, missing

KEX = "KexAlgorithms=curve25519-sha256"
FAULTS = (
    "clock-lock", "power-cap", "acs-on", "aspm-on", "mrrs-512", "irqs-far", "governor-powersave",
    "memlock-64k", "numa-balancing", "arguments-lost", "chrony-dead",
)  # fmt: skip
FAMILIES = "pcie,clocks,power,numa,cpu,kernel,gpu,sysctl,time,limits,service"
WANTED = {
    "sysctl.max_map_count": 400000, "sysctl.min_free_kbytes": 200000, "sysctl.somaxconn": 16384,
    "sysctl.rmem_max": 33554432, "sysctl.wmem_max": 33554432, "sysctl.netdev_max_backlog": 20000,
}  # fmt: skip
Cost = tuple[float, float]
"""Wall and CPU seconds."""
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"


class Bench:
    """
    A lab whose nodes are wrong in every setting.

    Args:
        folder: for the lab and what is written.
        count: nodes.
    """

    def __init__(self, folder: Path, count: int) -> None:
        self._folder = folder
        self._state = folder / "state"
        self.names = [f"node-{number:03d}" for number in range(1, count + 1)]
        self.lab = HostLab(folder / "lab")
        self._site = folder / "site.yaml"
        checks = {id: {"expect": {"equals": value}, "why": "the benchmark", "source": "the benchmark"}
                  for id, value in WANTED.items()}  # fmt: skip
        self._site.write_text(yaml.safe_dump({"name": "bench", "checks": checks}), encoding="utf-8")

    def fresh(self) -> None:
        """Make all nodes anew, wrong in every setting."""
        self.lab.down()
        for name in self.names:
            if (self.lab.home / name).exists():
                nodes.down(self.lab.home, nodes.load(self.lab.home, name))
        for name in self.names:
            nodes.up(self.lab.home, name, "hgx-h200", list(FAULTS))
        failed = self.lab.up(self.names)
        if failed:
            sys.exit(f"the lab did not start: {failed}")

    def run(self, *words: str, ok: tuple[int, ...] = (0,)) -> str:
        """Run a command to its end."""
        shared = f"-o {KEX} -o ControlMaster=auto -o ControlPersist=30s -o ControlPath={self._folder}/%C"
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, cwd=self._folder,
            env={**os.environ, "PATH": PATH, "XDG_STATE_HOME": str(self._state), "XDG_CACHE_HOME": str(self._state),
                 "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "ANSIBLE_PIPELINING": "1",
                 "ANSIBLE_SSH_ARGS": shared},
        )  # fmt: skip
        if done.returncode not in ok:
            sys.exit(f"{words[:4]} ended with {done.returncode}: {done.stdout[-1500:]} {done.stderr[-1500:]}")
        return done.stdout

    def _hwcheck(self, verb: str, *words: str, ok: tuple[int, ...] = (0,)) -> str:
        return self.run(
            sys.executable, "-m", "hwcheck", verb, "-i", str(self.lab.inventory), "--site", str(self._site), "-q",
            "--only", FAMILIES, "--opt-in", FAMILIES, *words, ok=ok,
        )  # fmt: skip

    def apply(self) -> None:
        """Let hwcheck do it, in one wave."""
        self._hwcheck("apply", "--yes", "--wave", "999", "--settle", "0.1", "--freeze", "", "--no-reboot")

    def steps(self) -> list[dict[str, Any]]:
        """Return what is to be done on the first node."""
        plan = json.loads(self._hwcheck("plan", "--format", "json", ok=(0, 3)))
        found: list[dict[str, Any]] = plan["nodes"][0]["steps"]
        return found

    def builtin(self, steps: list[dict[str, Any]]) -> None:
        """Let builtin tasks write a line for each key."""
        tasks = [
            {
                "name": f"Line for {key}",
                "ansible.builtin.lineinfile": {
                    "path": f"/etc/bench-{mechanism}.conf", "line": f"{key} = {value}", "create": True, "mode": "0644",
                },
            }
            for (mechanism, key), value in keys(steps).items()
        ]  # fmt: skip
        play = [{"name": "Builtin", "hosts": "all", "gather_facts": False, "tasks": tasks}]
        (self._folder / "builtin.yml").write_text(yaml.safe_dump(play), encoding="utf-8")
        self.run("ansible-playbook", "-i", str(self.lab.inventory), "-f", "32", "builtin.yml")


def keys(steps: list[dict[str, Any]]) -> dict[tuple[str, str], str]:
    """Return mechanism and key → value: a task of a playbook would loop over the devices."""
    return {(step["mechanism"], step["key"]): step["value"] for step in steps}


def compare(folder: Path, count: int, rounds: int) -> None:
    """Run both in turn on so many nodes, and print their medians."""
    bench = Bench(folder, count)
    mine: list[Cost] = []
    theirs: list[Cost] = []
    idle: list[Cost] = []
    for _ in range(rounds):
        bench.fresh()
        steps = bench.steps()
        mine.append(timed(bench.apply))
        idle.append(timed(bench.apply))
        theirs.append(timed(lambda: bench.builtin(steps)))  # noqa: B023 - run at once
    bench.lab.down()
    print(f"{count:3} nodes, {len(steps)} settings of {len(keys(steps))} keys, {rounds} rounds", flush=True)
    for name, wanted in (("wall", 0), ("controller's CPU", 1)):
        ours, builtin, nothing = ([cost[wanted] for cost in costs] for costs in (mine, theirs, idle))
        print(
            f"    {name:17} hwcheck apply {spread(ours)} s, nothing to do {spread(nothing)} s, "
            f"builtin tasks {spread(builtin)} s, ratio {median(ours) / median(builtin):.2f}",
            flush=True,
        )


def timed(what: Any) -> Cost:
    """Return the wall seconds of a call, and the CPU seconds of the programs it ran; nodes are not among them."""
    begun, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    what()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.monotonic() - begun, spent


def spread(values: list[float]) -> str:
    """Write median and range."""
    return f"{median(values):.1f} ({min(values):.1f}-{max(values):.1f})"


def main() -> None:
    """Run all sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each (default: 3)")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 8, 32], help="numbers of nodes (default: 1 8 32)")
    arguments = parser.parse_args()
    lacks = missing()
    if lacks:
        sys.exit("the lab's host form needs " + "; ".join(lacks))
    for count in arguments.sizes:
        with tempfile.TemporaryDirectory(prefix="hwapply") as folder:
            compare(Path(folder), count, arguments.rounds)
    print("aim: at most 0.1 of the wall time of builtin tasks at 32 nodes")


if __name__ == "__main__":
    main()
