"""
Every platform × every fault that software can fix, as one fleet: planned, applied, right on fresh evidence, idempotent.

``python -m tests.apply.fixing [FAULT ...]`` prints a table; the test suite demands it.

Rounds on the same nodes: apply and take back (files, modes and findings as before), then apply for good, a second plan
that is empty, a reload of the drivers and a reboot after which all still passes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from hwcheck.lab import nodes
from hwcheck.lab.faults import FAULTS, catalogue
from hwcheck.lab.host.lab import HostLab
from hwcheck.lab.platforms import PLATFORMS
from tests.lab.host_machine import login

SITE = Path(__file__).parents[2] / "inventories/lab/site.yaml"
OPT_IN = "pcie,clocks,power,roce,rdma,numa,cpu,kernel,driver,gpu,hbm,nvlink,fabric,imex,sysctl,time,limits,service"
FIXABLE = (
    "persistence-off", "clock-lock", "power-cap", "acs-on", "aspm-on", "mrrs-512", "irqs-far", "trust-pcp", "no-pfc",
    "wrong-tos", "ecn-off", "governor-powersave", "chrony-dead", "memlock-64k", "numa-balancing",
    "arguments-lost", "fabric-manager-down", "scheduler-down", "remap-pending",
)  # fmt: skip
"""Faults that are settings or wait for an act; the others need hands, or an owner's decision."""
_FOREVER = "a lock of somebody else was before, which NVML does not tell"
"""What no rollback can bring back, and says so."""
RELOAD = """
units= modules=
for unit in nvidia-persistenced nvidia-fabricmanager nvidia-imex nvidia-dcgm; do
    systemctl is-active -q $unit && systemctl stop $unit && units="$units $unit"
done
for module in nvidia_fs gdrdrv nvidia_peermem nvidia_drm nvidia_modeset nvidia_uvm nvidia mlx5_ib mlx5_core; do
    [ -e /sys/module/$module ] && modprobe -r $module && modules="$module $modules"
done
for module in $modules; do modprobe $module; done
for unit in $units; do systemctl start $unit; done
echo reloaded $modules
"""
"""What an operator does who puts the drivers of GPUs and adapters in anew: hwcheck has no part in it."""
_LEFT_OUT = (
    "/root/var/log/sshd.log",
    "/attributes.log",
    "/root/var/lib/hwcheck",
    "/root/run",
    "/root/proc",
    "/root/sys",
)


@dataclass
class Row:
    """What became of one node; each entry is "" for right, or what is wrong."""

    name: str
    platform: str
    fault: str
    steps: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


class FixBench:
    """
    One lab with a node for each row.

    Args:
        folder: for the lab and the controller's state.
        pairs: platform and fault of each node.
    """

    def __init__(self, folder: Path, pairs: list[tuple[str, str]]) -> None:
        self.lab = HostLab(folder / "lab")
        self._state = folder / "state"
        self.rows = [Row(f"{platform}-{fault}"[:42].rstrip("-"), platform, fault) for platform, fault in pairs]
        for row in self.rows:
            nodes.up(self.lab.home, row.name, row.platform, [row.fault])
        failed = self.lab.up([row.name for row in self.rows])
        assert not failed, failed

    def close(self) -> None:
        """End the lab."""
        self.lab.down()

    def hwcheck(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a verb on all nodes."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        environment = {
            **os.environ, "XDG_STATE_HOME": str(self._state), "XDG_CACHE_HOME": str(self._state), "PATH": path,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }  # fmt: skip
        return subprocess.run(
            [sys.executable, "-m", "hwcheck", *words], env=environment, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, check=False, timeout=1200,
        )  # fmt: skip

    def _on_all(self, verb: str, *words: str) -> subprocess.CompletedProcess[str]:
        return self.hwcheck(
            verb, "-i", str(self.lab.inventory), "--site", str(SITE), "-q", "--tier", "deep", "--off", "nvme-health",
            "--timeout", "180", "--connect-timeout", "60", *words,
        )  # fmt: skip

    def check(self) -> dict[str, dict[tuple[str, str], str]]:
        """Return what every node says: node → (check, subject) → status."""
        told = self._on_all("check", "--format", "json", "--no-state")
        assert told.stdout, told.stderr[-2000:]
        found: dict[str, dict[tuple[str, str], str]] = {row.name: {} for row in self.rows}
        for finding in json.loads(told.stdout)["findings"]:
            if finding["node"] in found and finding["status"] in ("fail", "warn", "unknown"):
                found[finding["node"]][finding["check"], finding["subject"]] = finding["status"]
        away = {name: told.stderr[-500:] for name, said in found.items() if ("evidence.reachable", "") in said}
        assert not away, away
        return found

    def plan(self) -> dict[str, dict[str, Any]]:
        """Return the plan of every node."""
        told = self._on_all("plan", "--opt-in", OPT_IN, "--format", "json")
        return {node["name"]: node for node in json.loads(told.stdout)["nodes"]}

    def apply(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Apply to all nodes."""
        return self._on_all(
            "apply", "--opt-in", OPT_IN, "--wave", "99", "--settle", "0.5", "--freeze", "", "--reboot-timeout", "60",
            *words,
        )  # fmt: skip

    def last_run(self) -> Path:
        """Return the folder of the last run."""
        return max(path.parent for path in self._state.glob("hwcheck/runs/*/run.json"))

    def files(self, name: str) -> dict[str, str]:
        """Return what lies on a node's disk: path → mode, owner and hash."""
        found = {}
        top = str(self.lab.home / name)
        for base, _, names in os.walk(f"{top}/root"):
            for leaf in names:
                path = Path(base, leaf)
                short = str(path)[len(top) :]
                if short.startswith(_LEFT_OUT):
                    continue
                about = path.lstat()
                what = str(path.readlink()) if path.is_symlink() else sha256(path.read_bytes()).hexdigest()
                found[short] = f"{about.st_mode:o} {about.st_uid}:{about.st_gid} {what}"
        return found

    # ------------------------------------------------------------------------------------------------------- rounds

    def take_back(self) -> None:
        """Apply, take back, and compare with before."""
        before = {row.name: self.files(row.name) for row in self.rows}
        said = self.check()
        plans = self.plan()
        for row in self.rows:
            plan = plans[row.name]
            row.steps = [f"{step['mechanism']} {step['key']}" for step in plan["steps"]]
            row.steps += [f"{act['do']} {act['target']}" for act in plan["acts"]] + ["reboot"] * bool(plan["reboot"])
            if not row.steps:
                row.wrong.append("nothing is planned")
        dry = self.apply("--dry-run")
        applied = self.apply("--yes")
        self._compare_with_dry_run(dry.stdout)
        self._look(applied)
        told = self.hwcheck("rollback", self.last_run().name, "--yes", "-q")
        for line in told.stdout.splitlines():
            if ("left as it is" in line or "not taken back" in line) and _FOREVER not in line:
                self._add(line.partition(":")[0], line)
        after = {row.name: self.files(row.name) for row in self.rows}
        for row in self.rows:
            differ = sorted(
                path
                for path in before[row.name].keys() | after[row.name].keys()
                if before[row.name].get(path) != after[row.name].get(path)
            )
            row.wrong += [f"rollback leaves {path}" for path in differ[:4]]
        back = self.check()
        for row in self.rows:
            new = back[row.name].items() - said[row.name].items()
            if new or (back[row.name] != said[row.name] and not _acts(row)):
                row.wrong.append(f"rollback: {_difference(said[row.name], back[row.name])}")

    def for_good(self) -> None:
        """Apply, plan again, apply again, reload the drivers, check, reboot, check."""
        applied = self.apply("--yes")
        self._look(applied)
        runs = self.last_run()
        for name, plan in self.plan().items():
            rest = [f"{one['mechanism']} {one['key']}" for one in plan["steps"]] + [one["do"] for one in plan["acts"]]
            self._add(name, f"the second plan has {rest}") if rest or plan["reboot"] else None
        second = self.apply("--yes")
        if self.last_run() != runs:
            self.rows[0].wrong.append(f"a second apply began a run: {second.stdout[-300:]}")
        for row in self.rows:
            told = login(self.lab, row.name, RELOAD)
            if not {"nvidia", "mlx5_core"} <= set(told.split()):
                row.wrong.append(f"the drivers were not reloaded: {told}")
        for name, bad in self.check().items():
            self._add(name, f"after a reload of the drivers: {sorted(bad)[:3]}") if bad else None
        self.reboot()
        for name, bad in self.check().items():
            self._add(name, f"after a reboot: {sorted(bad)[:3]}") if bad else None

    def reboot(self) -> None:
        """Reboot all nodes."""
        for row in self.rows:
            told = self.hwcheck("lab", "--dir", str(self.lab.home), "reboot", row.name)
            if told.returncode:
                row.wrong.append(f"lab reboot: {told.stderr[-200:]}")

    def _look(self, applied: subprocess.CompletedProcess[str]) -> None:
        """See whether fresh evidence is right, and say why where it is not."""
        record = json.loads((self.last_run() / "run.json").read_text(encoding="utf-8"))
        bad = self.check()
        for row in self.rows:
            known = record["nodes"].get(row.name)
            if known is None and not _acts(row):
                row.wrong.append(f"not in the run: {applied.stderr[-300:]}")
            if known is not None and (known["state"] != "good" or known["refused"]):
                row.wrong.append(f"{known['state']}: {known['why']} {known['refused']}")
            if bad[row.name]:
                row.wrong.append(f"still says {sorted(bad[row.name])[:4]}")

    def _compare_with_dry_run(self, dry: str) -> None:
        """Demand that check mode has predicted what the run then changed."""
        foretold: dict[str, set[str]] = {}
        name = ""
        for line in dry.splitlines():
            if line.endswith(":") and line[:-1] in {row.name for row in self.rows}:
                name = line[:-1]
            elif line.startswith("  would change"):
                foretold.setdefault(name, set()).add(line.split()[2])
        results = json.loads((self.last_run() / "run.json").read_text(encoding="utf-8")).get("results", {})
        for row in self.rows:
            done = {one["id"] for one in results.get(row.name, []) if one["status"] == "changed"}
            if done != foretold.get(row.name, set()):
                row.wrong.append(f"check mode foretold {sorted(foretold.get(row.name, set()))}, changed {sorted(done)}")

    def _add(self, name: str, text: str) -> None:
        next(row for row in self.rows if row.name == name).wrong.append(text)


def every_pair(faults: tuple[str, ...] = FIXABLE, platforms: tuple[str, ...] = PLATFORMS) -> list[tuple[str, str]]:
    """Return each platform with each of these faults that it can have."""
    catalogue()
    return [(platform, fault) for platform in platforms for fault in faults if platform in FAULTS[fault].platforms]


def each_fault_once() -> list[tuple[str, str]]:
    """Return each fault on one platform, the platforms in turn."""
    catalogue()
    found = []
    for number, fault in enumerate(FIXABLE):
        able = [platform for platform in PLATFORMS if platform in FAULTS[fault].platforms]
        found.append((able[number % len(able)], fault))
    return found


def _acts(row: Row) -> bool:
    """Tell whether something is done that nothing undoes: a service that was started, a reset, a reboot."""
    return "gpu graphics_clocks" in row.steps or any(
        step.startswith(("start ", "restart ", "reset", "reload", "reboot")) for step in row.steps
    )


def _difference(before: dict[tuple[str, str], str], after: dict[tuple[str, str], str]) -> str:
    return f"gone {sorted(before.keys() - after.keys())[:3]}, new {sorted(after.keys() - before.keys())[:3]}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("faults", nargs="*", default=list(FIXABLE))
    parser.add_argument("--platform", action="append", default=[])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hwfix") as folder:
        begun = time.monotonic()
        pairs = every_pair(tuple(arguments.faults), tuple(arguments.platform) or PLATFORMS)
        bench = FixBench(Path(folder), pairs)
        print(f"{len(bench.rows)} nodes, {time.monotonic() - begun:.1f} s to start", flush=True)
        try:
            bench.take_back()
            print(f"apply and take back: {time.monotonic() - begun:.1f} s", flush=True)
            bench.for_good()
        finally:
            bench.close()
        for row in bench.rows:
            print(f"{row.platform:10} {row.fault:22} {'right' if not row.wrong else ''}  {'; '.join(row.steps)[:150]}")
            for text in row.wrong[:6]:
                print(f"    {text[:400]}")
        print(
            f"{sum(not row.wrong for row in bench.rows)} of {len(bench.rows)} right, {time.monotonic() - begun:.0f} s"
        )


if __name__ == "__main__":
    main()
