"""
What ``hwcheck gate`` costs before a job: on a certified lab node, beside the bare start of the same Python.

Methods take turns within a round, so that what else this machine does hits all alike. Figures are wall time as a prolog
sees it, and CPU time of the command with its children. Where a checkout of LBNL NHC is named (``--nhc``) it runs 20
checks of this machine in the same rounds; it is another tool's work on other things, told for scale.

Compiled files are used, as on a node: ``PYTHONDONTWRITEBYTECODE`` would compile the gate at each start.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from hwcheck.lab import nodes
from tests.gate.certified import certified

AIM = 150
"""Milliseconds that the gate may take beside the bare start of Python."""

_START = "import sys; from hwcheck.cli.start import main; sys.exit(main())"
"""What the installed command is."""

NHC_CHECKS = """
* || check_fs_mount_rw -f /
* || check_fs_used / 99%
* || check_fs_free / 1MB
* || check_fs_inodes / 100
* || check_fs_ifree / 100
* || check_hw_physmem_free 1MB
* || check_hw_mem_free 1MB
* || check_hw_eth lo
* || check_file_test -r -f /etc/passwd
* || check_file_test -r -f /etc/group
* || check_file_test -r -f /proc/cmdline
* || check_file_test -c -w /dev/null
* || check_file_test -d -w /tmp
* || check_file_contents /etc/passwd '/^root:/'
* || check_file_contents /proc/mounts '/ / /'
* || check_file_contents /proc/meminfo '/^MemTotal:/'
* || check_cmd_output -t 5 -r 0 -m '/Linux/' uname -s
* || check_cmd_status -t 5 -r 0 true
* || check_ps_loadavg 10000 10000 10000
* || check_fs_mount_rw -f /dev/shm
"""


def run(command: list[str], environment: dict[str, str]) -> tuple[float, float, str]:
    """Run a command that must succeed; returns wall and CPU milliseconds, and its first line."""
    with tempfile.TemporaryFile("w+") as out:  # no pipe: NHC's watchdog would hold it open after NHC has ended
        before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, check=False
        )
        wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
        out.seek(0)
        said = out.read()
    if done.returncode:
        sys.exit(f"{command[0]} ended with {done.returncode}: {said[-1500:]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall * 1000, cpu * 1000, said.partition("\n")[0]


def nhc_command(folder: Path, checkout: Path) -> list[str]:
    """Return the command line of NHC, with a configuration of 20 checks that pass."""
    conf = folder / "nhc.conf"
    conf.write_text(NHC_CHECKS, encoding="ascii")
    settings = (f"INCDIR={checkout}/scripts", f"HELPERDIR={checkout}/helpers", "MARK_OFFLINE=0", "DETACHED_MODE=0")
    return ["bash", str(checkout / "nhc"), "-c", str(conf), "-l", str(folder / "nhc.log"), *settings]


def main() -> None:
    """Measure, and say how far from the aim."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="runs of each method (default: 15)")
    parser.add_argument("--platform", default="hgx-h200", help="of the lab node (default: hgx-h200)")
    parser.add_argument("--nhc", type=Path, help="a checkout of LBNL NHC to compare with")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hwbench") as place:
        folder = Path(place)
        node, lacks = nodes.up(folder / "lab", "gated", arguments.platform, [])
        one = certified(node, folder / "papers")
        environment = one.environment()
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        python = sys.executable  # itself, and no shim that looks for it first
        gate = [python, "-c", _START, *one.words()[2:]]
        methods: dict[str, Callable[[], tuple[float, float, str]]] = {
            "python -c pass": lambda: run([python, "-c", "pass"], environment),
            "hwcheck gate": lambda: run(gate, environment),
            "hwcheck gate --full": lambda: run([*gate, "--full"], environment),
        }
        if arguments.nhc is not None:
            methods["LBNL NHC, 20 checks"] = lambda: run(nhc_command(folder, arguments.nhc), dict(os.environ))
        for method in methods.values():
            method()
            method()  # compiled files, caches of the kernel, the gate's memory
        figures: dict[str, list[tuple[float, float, str]]] = {name: [] for name in methods}
        for _ in range(arguments.rounds):
            for name, method in methods.items():
                figures[name].append(method())
        assert "nothing has changed" in figures["hwcheck gate"][-1][2], figures["hwcheck gate"][-1]
        tell(figures, arguments.platform, lacks)
        nodes.down(folder / "lab", node)


def tell(figures: dict[str, list[tuple[float, float, str]]], platform: str, lacks: str) -> None:
    """Print the table and the ratios that were aimed at."""
    print(f"a certified lab node ({platform}{', without NVML: ' + lacks if lacks else ''}), "
          f"{len(figures['hwcheck gate'])} rounds, load {os.getloadavg()[0]:.1f}: median (range)")  # fmt: skip
    for name, runs in figures.items():
        walls, cpus = [one[0] for one in runs], [one[1] for one in runs]
        print(
            f"  {name:22} {median(walls):7.0f} ms wall ({min(walls):.0f}-{max(walls):.0f}), {median(cpus):5.0f} ms CPU"
        )
    middle = {name: median(one[0] for one in runs) for name, runs in figures.items()}
    beside = middle["hwcheck gate"] - middle["python -c pass"]
    print(f"beside bare Python: {beside:.0f} ms (aim: under {AIM}): {'reached' if beside < AIM else 'MISSED'}")
    if "LBNL NHC, 20 checks" in middle:
        ratio = middle["hwcheck gate"] / middle["LBNL NHC, 20 checks"]
        print(f"gate / NHC: {ratio:.2f} of the wall time (aim: at most 1.0): {'reached' if ratio <= 1 else 'MISSED'}")


if __name__ == "__main__":
    main()
