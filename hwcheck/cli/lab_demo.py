"""
The whole loop on four lab nodes, as an operator would type it: every command is printed before it is run.

In host form the nodes are a fleet that is reached over SSH and changed by Ansible. In tree form (no root, no sshd) each
is a folder of this machine, accepted by itself, and the report is put together at the end.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from hwcheck.errors import MachineError
from hwcheck.lab.host.lab import missing

NODES = (
    ("good-1", "hgx-h200", ()),
    ("tuned-1", "hgx-h200", ("governor-powersave", "memlock-64k", "numa-balancing", "persistence-off", "irqs-far",
                             "arguments-lost")),
    ("worn-1", "hgx-h100", ("remap-failed",)),
    ("tray-1", "gb200", ("power-cap", "scheduler-down")),
)  # fmt: skip
"""Name, platform and faults: a healthy one, one with six faults, one for the vendor, a tray with two."""
CERTIFIED = {"good-1", "tuned-1", "tray-1"}
OPT_IN = "power,numa,kernel,cpu"
_TESTS = ("--test", "load-hbm,load-host-copy,load-peers")


@dataclass(slots=True)
class Demo:
    """
    One demonstration.

    Args:
        folder: for the lab and its state; gone afterwards.
        output: where certificates and the report go.
        host: nodes have an sshd each.
    """

    folder: Path
    output: Path
    host: bool

    def go(self) -> int:
        """Run all steps; 0 when every node ended as it should."""
        began = time.monotonic()
        self._title("Four simulated nodes")
        for name, platform, faults in NODES:
            broken = [word for fault in faults for word in ("--fault", fault)]
            form = ["--form", "host" if self.host else "tree", "--name", name.rpartition("-")[0]]
            self._run("lab", "--dir", str(self._lab), "up", "--platform", platform, *form, *broken, silent=True)
        try:
            self._title("Judge, fix, measure, certify")
            self._accept()
            right = self._certified() == CERTIFIED
            self._title("A certificate, offline")
            self._run("verify", str(self._certificate("tuned-1")))
            self._title("The gate: after a reboot, and after something broke")
            self._gates()
        finally:
            self._run("lab", "--dir", str(self._lab), "down", silent=True)
        print(f"\n{len(self._certified())} of {len(NODES)} nodes are certified, {time.monotonic() - began:.0f} s")
        print(f"certificates: {self.output}\nreport:       {self.output / 'report.html'}")
        if not right:
            raise MachineError(f"the demo itself is broken: certified are {', '.join(sorted(self._certified()))}")
        return 0

    @property
    def _lab(self) -> Path:
        return self.folder / "lab"

    @property
    def _inventory(self) -> str:
        return str(self._lab / ".host" / "inventory.yaml")

    def _accept(self) -> None:
        words = ["--yes", "--opt-in", OPT_IN, "--settle", "0.3", "--freeze", "", *_TESTS]
        if self.host:
            self._run("accept", "-i", self._inventory, *words, "-o", str(self.output))
            return
        runs = []
        for name, _, _ in NODES:
            place = self.output / name
            self._on(name, "accept", "--live-root", str(self._root(name)), *words, "-o", str(place))
            runs.append(str(place / "run.json"))
        self._run("report", *runs, "--format", "html", "-o", str(self.output / "report.html"))

    def _gates(self) -> None:
        self._run("lab", "--dir", str(self._lab), "reboot", "tuned-1")
        self._gate("tuned-1")
        self._run("lab", "--dir", str(self._lab), "break", "good-1", "nvlinks-dead")
        self._gate("good-1")

    def _gate(self, name: str) -> None:
        if self.host:
            self._run("gate", "-i", self._inventory, "-w", name, "--certificate", str(self.output), "-q")
        else:
            key = ["--certificate", str(self._certificate(name)), "--key", str(self._public_key())]
            state = ["--state", str(self.folder / f"gate-{name}")]
            self._on(name, "gate", "--live-root", str(self._root(name)), *key, *state)

    def _certified(self) -> set[str]:
        return {name for name, _, _ in NODES if self._certificate(name).exists()}

    def _certificate(self, name: str) -> Path:
        return (self.output if self.host else self.output / name) / f"{name}.cert.json"

    def forget(self) -> None:
        """Remove the certificates of an earlier demonstration, in either form; nothing else in the folder is ours."""
        for name, _, _ in NODES:
            for place in (self.output, self.output / name):
                for suffix in ("json", "html"):
                    (place / f"{name}.cert.{suffix}").unlink(missing_ok=True)

    def _public_key(self) -> Path:
        return next((self.folder / "state").rglob("*.pub"), self.folder / "no.pub")

    def _root(self, name: str) -> Path:
        return self._lab / name / "root"

    # -------------------------------------------------------------------------------------------------------- running

    def _title(self, text: str) -> None:
        print(f"\n=== {text}\n", flush=True)

    def _on(self, name: str, *words: str) -> None:
        """Run a verb with the tools and NVML of a node in tree form."""
        self._run("lab", "--dir", str(self._lab), "shell", name, "--", sys.executable, "-m", "hwcheck", *words)

    def _run(self, *words: str, silent: bool = False) -> None:
        print(f"$ hwcheck {shlex.join(self._short(word) for word in words)}", flush=True)
        environment = {**os.environ, "XDG_STATE_HOME": str(self.folder / "state"), "HWCHECK_STORE": ""}
        environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment.get('PATH', os.defpath)}"
        said = subprocess.PIPE if silent else None
        done = subprocess.run(  # noqa: S603 - hwcheck itself
            [sys.executable, "-m", "hwcheck", *words], env=environment, stdin=subprocess.DEVNULL, stdout=said,
            stderr=subprocess.STDOUT if silent else None, text=True, check=False,
        )  # fmt: skip
        if done.returncode not in (0, 1, 3):
            told = f"hwcheck {words[0]} ended with {done.returncode} {done.stdout or ''}".rstrip()
            raise MachineError(f"the demo itself is broken: {told}")
        if not silent:
            print(f"  exit code {done.returncode}\n", flush=True)

    def _short(self, word: str) -> str:
        """Write a word of a command line for people: our temporary folder and Python are of no interest."""
        word = word.replace(str(self.folder), "DEMO").replace(str(self.output), "OUT")
        return "python" if word == sys.executable else word


def run(form: str, output: Path | None) -> int:
    """
    Run the demonstration.

    Args:
        form: ``host``, ``tree`` or ``auto``.
        output: where certificates and the report go; None for a folder of our own.

    Raises:
        MachineError: this machine cannot do it, or it did not end as it should.
    """
    lacks = missing() + _lacks_of_controller()
    if form == "host" and lacks:
        raise MachineError(f"the host form needs {'; '.join(lacks)}")
    host = form != "tree" and not lacks
    if not host:
        print(f"hwcheck: nodes are folders, not hosts: {'; '.join(lacks) or 'as asked for'}", file=sys.stderr)
    place = output or Path(tempfile.gettempdir(), f"hwcheck-demo-{os.getuid()}")
    place.mkdir(parents=True, exist_ok=True)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))  # in order: the lab goes down
    with tempfile.TemporaryDirectory(prefix="hwdemo-") as folder:
        demo = Demo(Path(folder), place.resolve(), host)
        demo.forget()
        return demo.go()


def _lacks_of_controller() -> list[str]:
    """Say what a fleet over SSH needs beside the lab itself."""
    import shutil  # noqa: PLC0415 - only the demo asks

    here = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return [] if shutil.which("ansible-playbook", path=here) else ["Ansible (pip install 'hwcheck[ansible]')"]
