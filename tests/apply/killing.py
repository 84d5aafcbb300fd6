"""
SIGKILL of the controller at spread moments of a roll-out: what is left on the nodes, and what becomes of it.

``python -m tests.apply.killing --moments 30`` runs all moments; the test suite runs a few.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from base64 import b64decode
from pathlib import Path
from typing import Any

from hwcheck.lab import nodes
from hwcheck.lab.host.lab import HostLab
from tests.lab.host_machine import login

WANTED = {
    "net.core.somaxconn": "16384", "net.core.netdev_max_backlog": "20000", "net.core.rmem_max": "33554432",
    "vm.max_map_count": "400000",
}  # fmt: skip
ARGUMENT = "isolcpus=2-3"
_ENTRY = "  {}: {{expect: {{equals: {}}}, why: the test wants it, source: this test}}\n"
_CHECKS = {f"sysctl.{key.rpartition('.')[2]}": value for key, value in WANTED.items()}
SITE = "name: kill\nchecks:\n" + "".join(_ENTRY.format(*pair) for pair in _CHECKS.items())
_OF_BOOT = _ENTRY.format("kernel.isolcpus", ARGUMENT.partition("=")[2])
FILES = (
    "etc/sysctl.d/90-hwcheck.conf", "etc/systemd/system/slurmd.service.d/90-hwcheck.conf",
    "etc/default/grub.d/90-hwcheck.cfg", "boot/grub/grub.cfg",
)  # fmt: skip
"""
What a run writes: kernel parameters; a limit of the scheduler's unit, which is restarted for it; and, where it reboots,
a kernel argument.
"""


class KillBench:
    """
    A lab of four nodes, a controller to be killed, and the question what it left.

    Args:
        folder: for the lab and the controller's state.
        count: nodes.
        boots: whether the run also sets a kernel argument, for which each node is rebooted.
    """

    def __init__(self, folder: Path, count: int = 4, *, boots: bool = False) -> None:
        self.lab = HostLab(folder / "lab")
        self.names = [f"kill-{number}" for number in range(1, count + 1)]
        self._state = folder / "state"
        self._site = folder / "site.yaml"
        self._site.write_text(SITE + _OF_BOOT * boots, encoding="utf-8")
        self._boots = boots
        for name in self.names:
            nodes.up(self.lab.home, name, "hgx-h200", ["memlock-64k"])
        failed = self.lab.up(self.names)
        assert not failed, failed
        self.before = {name: self._values(name) for name in self.names}

    def close(self) -> None:
        """End the lab."""
        self.lab.down()

    def _command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "hwcheck", *words]

    def _environment(self) -> dict[str, str]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        return {**os.environ, "XDG_STATE_HOME": str(self._state), "XDG_CACHE_HOME": str(self._state), "PATH": path,
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}  # fmt: skip

    def _words(self) -> list[str]:
        where = ["-i", str(self.lab.inventory), "--site", str(self._site)]
        what = ["--only", "sysctl,limits" + ",kernel" * self._boots, "--opt-in", "kernel.isolcpus"]
        how = ["--settle", "0.1", "--wave", "1,50%,100%", "--freeze", "", "--reboot-timeout", "60"]
        return ["apply", *where, *what, *how, "--yes", "-q"]

    def apply(self, node: str) -> subprocess.CompletedProcess[str]:
        """Run a roll-out on one node to its end."""
        return self.run(*self._words(), "-w", node)

    def begin(self) -> subprocess.Popen[bytes]:
        """Start a roll-out."""
        words = self._command(*self._words())
        return subprocess.Popen(
            words, env=self._environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run another verb to its end."""
        return subprocess.run(
            self._command(*words), env=self._environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
            check=False, timeout=300,
        )  # fmt: skip

    def last_run(self) -> str:
        """Return the name of the last run; "" when none was begun."""
        found = sorted(path.parent.name for path in self._state.glob("hwcheck/runs/*/run.json"))
        return found[-1] if found else ""

    def _values(self, name: str) -> dict[str, str | None]:
        root = self.lab.home / name / "root"
        found: dict[str, str | None] = {
            key: (root / "proc/sys" / key.replace(".", "/")).read_text(encoding="utf-8").strip() for key in WANTED
        }
        for path in FILES:
            file = root / path
            found[path] = file.read_text(encoding="utf-8") if file.exists() else None
        return found

    def journals(self, name: str) -> list[dict[str, Any]]:
        """Return what a node has written down."""
        folder = self.lab.home / name / "root/var/lib/hwcheck/journal"
        return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]

    def unjournalled(self, name: str, run: str) -> list[str]:
        """Return what is neither as before nor as the run's journal says it would be."""
        now, before = self._values(name), self.before[name]
        mine = next((one for one in self.journals(name) if one["run"] == run), None)
        changes = {} if mine is None else {change["target"]: change for change in mine["changes"]}
        wrong = []
        for key, value in now.items():
            if value == before[key]:
                continue
            if key == FILES[-1]:  # made anew by the loader's own command, which the journal has
                wrong += [] if mine and mine["commands"] else [f"{key} was made anew"]
                continue
            target = f"/{key}" if key in FILES else "/proc/sys/" + key.replace(".", "/")
            change = changes.get(target)
            if change is None or _plain(change["after"]) != value or _plain(change["before"]) != before[key]:
                wrong.append(f"{key} is {value!r}")
        return wrong

    def all_changed(self) -> bool:
        """Tell whether every node has every value, and has booted with the argument where the run reboots."""
        now = [self._values(name) for name in self.names]
        return (
            all(values[key] == value for values in now for key, value in WANTED.items())
            and all(values[path] for values in now for path in FILES[: 4 if self._boots else 2])
            and all(self._has_argument(name) is self._boots for name in self.names)
        )

    def _has_argument(self, name: str) -> bool:
        return ARGUMENT in (self.lab.home / name / "root/proc/cmdline").read_text(encoding="utf-8").split()

    def boot_again(self) -> None:
        """Reboot nodes whose command line has what was taken back; and let a day pass: it has three reboots at most."""
        for name in self.names:
            for path in (self.lab.home / name / "root/var/lib/hwcheck/journal").glob("*.json"):
                journal = json.loads(path.read_text(encoding="utf-8"))
                for act in journal["acts"]:
                    act["at"] = "2000-01-01T00:00:00Z"
                path.write_text(json.dumps(journal), encoding="utf-8")
            for _ in range(3):  # the reboot that the run had begun may come in between
                if self._has_argument(name) and self.run("lab", "--dir", str(self.lab.home), "reboot", name).returncode:
                    time.sleep(2.0)

    def all_as_before(self) -> bool:
        """Tell whether every node is as it was."""
        return all(self._values(name) == self.before[name] for name in self.names)

    def settle(self) -> None:
        """Wait until no orphan of a killed controller is at work."""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            done = subprocess.run(
                ["pgrep", "-f", f"ansible-playbook.*{self._state.parent}|{self.lab.folder}/inventory"],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            if not done.stdout.strip():
                return
            time.sleep(0.2)

    def kill_at(self, seconds: float, *, resume: bool) -> tuple[str, list[str]]:
        """
        Kill a roll-out after some seconds; then resume it, or take it back.

        Returns:
            What had become of the nodes when it was killed, and everything that is wrong.
        """
        known = self.last_run()
        controller = self.begin()
        try:
            controller.wait(seconds)
        except subprocess.TimeoutExpired:
            controller.send_signal(signal.SIGKILL)
            controller.wait()
        run = self.last_run()
        if run == known:
            self.settle()
            return "before the run", [] if self.all_as_before() else ["changed without a run"]
        states = self._states(run)
        for name in self.names:
            self._await(name)
        wrong = [f"{name}: {text}" for name in self.names for text in self.unjournalled(name, run)]
        if resume:
            told = self.run("apply", "--resume", run, "--yes", "-q")
            if told.returncode or not self.all_changed():
                wrong.append(f"resume ended with {told.returncode}: {told.stdout[-500:]}{told.stderr[-800:]}")
        told = self.run("rollback", run, "--yes")
        self.settle()
        for name in self.names:
            self._await(name)
        if told.returncode or not self.all_as_before():
            wrong.append(f"rollback ended with {told.returncode}: {told.stdout[-500:]}{told.stderr[-800:]}")
        self.boot_again()
        wrong += [f"{name}: still boots with {ARGUMENT}" for name in self.names if self._has_argument(name)]
        leases = [name for name in self.names if self.lease(name)]
        return states, [*wrong, *(f"{name} is still leased" for name in leases)]

    def _await(self, name: str) -> None:
        """Wait until a node answers: one that boots has the kernel's own values for a moment."""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            if name in self.lab.running() and "up" in login(self.lab, name, "echo up"):
                return
            time.sleep(0.5)

    def lease(self, name: str) -> str:
        """Return the lease of a node; "" when it has none."""
        return login(self.lab, name, "cat /run/hwcheck/lease.json 2>/dev/null || true").strip()

    def plant_lease(self, name: str, run: str, holder: str) -> None:
        """Lease a node to somebody else."""
        form = """'{"run": "%s", "holder": "%s", "boot_id": "%s"}'"""
        boot = '"$(cat /proc/sys/kernel/random/boot_id)"'
        script = f"mkdir -p /run/hwcheck; printf {form} {run} {holder} {boot} >/run/hwcheck/lease.json"
        login(self.lab, name, script)

    def _states(self, run: str) -> str:
        path = self._state / "hwcheck/runs" / run / "run.json"
        record = json.loads(path.read_text(encoding="utf-8"))
        return ", ".join(str(known["state"]) for known in record["nodes"].values())

    def duration(self) -> float:
        """Return how long a whole roll-out takes, and take it back."""
        begun = time.monotonic()
        self.begin().wait()
        taken = time.monotonic() - begun
        assert self.all_changed()
        assert self.run("rollback", self.last_run(), "--yes").returncode == 0
        self.boot_again()
        return taken


def _plain(state: Any) -> Any:
    """Return the text of a change's state."""
    return b64decode(state["bytes"]).decode() if isinstance(state, dict) else state


def main() -> None:
    """Run many moments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moments", type=int, default=30)
    parser.add_argument("--boots", action="store_true", help="also set a kernel argument, and reboot for it")
    moments, boots = (arguments := parser.parse_args()).moments, arguments.boots
    with tempfile.TemporaryDirectory(prefix="hwkill") as folder:
        bench = KillBench(Path(folder), boots=boots)
        try:
            whole = bench.duration()
            print(f"a whole roll-out on {len(bench.names)} nodes takes {whole:.1f} s")
            bad = 0
            for number in range(moments):
                at = 0.3 + (whole - 0.3) * number / max(1, moments - 1)
                states, wrong = bench.kill_at(at, resume=bool(number % 2))
                bad += bool(wrong)
                print(
                    f"{at:5.2f} s  {'resume  ' if number % 2 else 'rollback'}  {states:60} {wrong or 'right'}",
                    flush=True,
                )
            sys.exit(f"{bad} of {moments} moments left something wrong" if bad else None)
        finally:
            bench.close()


if __name__ == "__main__":
    main()
