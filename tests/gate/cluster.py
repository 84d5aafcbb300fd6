"""A real slurmctld with a slurmd for each lab node, without systemd and apart from a Slurm of this machine."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from hwcheck.integrations import INTEGRATIONS
from tests.gate.certified import ROOT, Certified

NEEDED = ("slurmctld", "slurmd", "scontrol", "srun", "munged")
_CONF = """\
ClusterName=lab
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/pgid
TaskPlugin=task/none
ReturnToService=2
PrologFlags=Alloc
Prolog={folder}/prolog
HealthCheckProgram={folder}/health
HealthCheckInterval=5
HealthCheckNodeState=ANY
{nodes}
PartitionName=all Nodes=ALL Default=YES State=UP
"""
_WRAPPER = """#!/bin/sh
# What a site would have in the environment of slurmd: which node this is, since all of them share one machine.
. {folder}/of.${{SLURMD_NODENAME}}
exec {folder}/{script}
"""


def lacks() -> str:
    """Say what this machine lacks for a cluster of its own; "" where nothing."""
    if os.geteuid() != 0:
        return "slurmd needs root"
    missing = [name for name in NEEDED if shutil.which(name) is None]
    return f"Debian's slurm-wlm and munge are not installed ({', '.join(missing)})" if missing else ""


class Cluster:
    """
    A cluster of lab nodes.

    Args:
        folder: for everything that it writes.
        nodes: by the name that Slurm has for them.
    """

    def __init__(self, folder: Path, nodes: dict[str, Certified]) -> None:
        self.folder, self.nodes = folder, nodes
        self._running: list[subprocess.Popen[bytes]] = []
        self._environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}

    def start(self) -> None:
        """Write its files and start its daemons."""
        (self.folder / "state").mkdir()
        (self.folder / "munge.key").write_bytes(os.urandom(1024))
        (self.folder / "munge.key").chmod(0o600)
        for name in ("slurm-health", "slurm-prolog"):
            file = INTEGRATIONS[name][0]
            command = [sys.executable, "-m", "hwcheck", "gate", "--print", name, "--into", str(self.folder)]
            subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
            wrapper = self.folder / name.removeprefix("slurm-")
            wrapper.write_text(_WRAPPER.format(folder=self.folder, script=file), encoding="ascii")
            wrapper.chmod(0o755)
        for name, one in self.nodes.items():
            self._write_environment(name, one)
        ports = free_ports(len(self.nodes) + 1)
        host = socket.gethostname()
        rows = [
            f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2 RealMemory=100"
            for name, port in zip(self.nodes, ports[1:], strict=True)
        ]
        conf = _CONF.format(folder=self.folder, host=host, port=ports[0], nodes="\n".join(rows))
        (self.folder / "slurm.conf").write_text(conf, encoding="ascii")
        ends = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
        files = (f"--{name}={self.folder}/munge.{end}" for name, end in ends.items())
        self._spawn("munged", "--foreground", "--force", *files)
        self.wait((self.folder / "munge.socket").exists)
        self._spawn("slurmctld", "-D")
        for name in self.nodes:
            self._spawn("slurmd", "-D", "-N", name)

    def _write_environment(self, name: str, one: Certified) -> None:
        found = one.node.environment()
        rows = [f"export {key}='{found[key]}'" for key in found]
        words = " ".join(one.words()[3:])
        rows += [
            f"export HWCHECK='{sys.executable} -m hwcheck'", f"export HWCHECK_GATE='{words}'",
            f"export PYTHONPATH='{ROOT}'", f"export SLURM_CONF='{self.folder}/slurm.conf'",
        ]  # fmt: skip
        (self.folder / f"of.{name}").write_text("\n".join(rows) + "\n", encoding="utf-8")

    def _spawn(self, *command: str) -> None:
        with (self.folder / f"{command[0]}.out").open("ab") as out:
            self._running.append(
                subprocess.Popen(
                    command, env=self._environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                    start_new_session=True,
                )
            )  # fmt: skip

    def stop(self) -> None:
        """End the daemons, and with their groups what they have started."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            for process in self._running:
                if process.poll() is None:
                    os.killpg(process.pid, number)
            end = time.monotonic() + 10
            while any(process.poll() is None for process in self._running) and time.monotonic() < end:
                time.sleep(0.05)

    def run(self, *command: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
        """Run a command of Slurm."""
        return subprocess.run(
            command, env=self._environment, capture_output=True, text=True, check=False, timeout=timeout
        )

    def states(self) -> dict[str, tuple[str, str]]:
        """Return state and reason of each node, without who set it and when."""
        shown = self.run("scontrol", "show", "node").stdout
        found = {}
        for block in shown.split("\n\n"):
            name, state = re.search(r"NodeName=(\S+)", block), re.search(r"State=(\S+)", block)
            reason = re.search(r"Reason=(.*?)(?: \[\S+\])?$", block, re.MULTILINE)
            if name and state:
                found[name[1]] = (state[1], reason[1] if reason else "")
        return found

    def wait(self, is_so: Callable[[], bool], seconds: float = 120) -> None:
        """Wait until something is so; fail with the states of the nodes when it does not come."""
        end = time.monotonic() + seconds
        while not is_so():
            assert time.monotonic() < end, (self.states(), self.told())
            time.sleep(0.3)

    def told(self) -> str:
        """Return the last of what slurmctld said."""
        log = self.folder / "slurmctld.log"
        return log.read_text(encoding="utf-8", errors="replace")[-1500:] if log.exists() else ""


def free_ports(count: int) -> list[int]:
    """Return ports of this machine that nobody listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports
