"""
``./run bench collect``: reading nodes over SSH, side by side in one run on the same lab nodes.

hwcheck against OpenSSH that runs the same bytes, OpenSSH that runs ``true``, ``ansible -m setup`` and pytest-testinfra
with 20 assertions. What uses OpenSSH is given its fastest ways: a key exchange without its post-quantum part (but where
it says "default kex"), pipelining, connections that are shared within a run, and none that is warm from the run before.

Controller and nodes share this machine's cores, so wall time holds both sides; controller CPU is that of the command
and its children alone, since nodes are the children of the lab. Methods take turns within a round.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Self

from hwcheck.lab import nodes
from hwcheck.lab.host.lab import HostLab, missing
from hwcheck.transports.request import Request

AT_ONCE = 32
PLATFORM = "hgx-h200"
KEX = "KexAlgorithms=curve25519-sha256"
ANSIBLE = Path(sys.executable).with_name("ansible")
PATH = f"{ANSIBLE.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
ASSERTIONS = """
import pytest

FILES = ["/etc/hostname", "/etc/passwd", "/etc/fstab", "/boot/grub/grub.cfg", "/etc/os-release"]
SYSCTLS = ["kernel.numa_balancing", "kernel.tainted", "kernel.osrelease", "vm.max_map_count", "vm.min_free_kbytes"]
SYS = ["/sys/module/pcie_aspm/parameters/policy", "/sys/kernel/mm/transparent_hugepage/enabled",
       "/sys/devices/system/cpu/online", "/proc/driver/nvidia/version", "/proc/cmdline"]


@pytest.mark.parametrize("path", FILES)
def test_file(host, path):
    assert host.file(path).exists


@pytest.mark.parametrize("name", SYSCTLS)
def test_sysctl(host, name):
    assert host.check_output("cat /proc/sys/" + name.replace(".", "/")) != ""


@pytest.mark.parametrize("path", SYS)
def test_attribute(host, path):
    assert host.file(path).content_string


@pytest.mark.parametrize("word", ["mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3", "mlx5_4"])
def test_port(host, word):
    assert "ACTIVE" in host.file(f"/sys/class/infiniband/{word}/ports/1/state").content_string
"""


@dataclass
class Timing:
    """Seconds of some runs: wall, and CPU of the controller."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)


class Bench:
    """
    One lab and what is run against it.

    Args:
        folder: for the lab and what the methods write.
        most: nodes.
    """

    def __init__(self, folder: Path, most: int) -> None:
        self._folder = folder
        self._lab = HostLab(folder / "lab")
        self._names = [f"node-{number:03d}" for number in range(1, most + 1)]
        self._program = Request().program()
        (folder / "test_twenty.py").write_text(ASSERTIONS, encoding="utf-8")
        (folder / "out").mkdir()

    def __enter__(self) -> Self:
        """Make and start all nodes."""
        begun = time.monotonic()
        home = self._lab.home
        first, _ = nodes.up(home, self._names[0], PLATFORM, [])
        for name in self._names[1:]:
            shutil.copytree(first.folder, home / name, symlinks=True, copy_function=os.link)
            for file in ("root/etc/hostname",):
                (home / name / file).unlink()
                (home / name / file).write_text(f"{name}\n", encoding="utf-8")
        made = time.monotonic()
        failed = self._lab.up(self._names)
        if failed:
            sys.exit(f"the lab did not start: {failed}")
        print(
            f"{len(self._names)} lab nodes ({PLATFORM}): files {made - begun:.1f} s, "
            f"start {time.monotonic() - made:.1f} s"
        )
        return self

    def __exit__(self, *_: object) -> None:
        """End the lab."""
        begun = time.monotonic()
        self._lab.down()
        print(f"lab down: {time.monotonic() - begun:.1f} s")

    def methods(self, *, peers: bool) -> dict[str, Callable[[int], None]]:
        """Return what is compared: name → run on the first so many nodes."""
        found: dict[str, Callable[[int], None]] = {
            "hwcheck check": lambda count: self._hwcheck(count, "check", "--format", "json"),
            "hwcheck check --ssh openssh": lambda count: self._hwcheck(
                count, "check", "--format", "json", "--ssh", "openssh"
            ),
            "hwcheck collect": self._collect,
            "ssh, same bytes": lambda count: self._ssh(count, "python3 -I -S -", self._program),
            "ssh true": lambda count: self._ssh(count, "true", b""),
            "ssh true, default kex": lambda count: self._ssh(count, "true", b"", fast=False),
        }
        if peers and ANSIBLE.exists():
            found["ansible -m setup"] = self._setup
            found["ansible -m setup, default kex"] = lambda count: self._setup(count, fast=False)
        if peers and ANSIBLE.exists() and importlib.util.find_spec("testinfra"):
            found["testinfra, 20 assertions"] = self._testinfra
        return found

    def run(self, command: list[str], *, ok: tuple[int, ...] = (0,), **environment: str) -> str:
        """Run a command to its end; returns what it printed."""
        done = subprocess.run(
            command, cwd=self._folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PATH": PATH, **environment},
        )  # fmt: skip
        if done.returncode not in ok:
            sys.exit(f"{command[:4]} ended with {done.returncode}: {done.stdout[-500:]} {done.stderr[-1500:]}")
        return done.stdout

    def _limited(self, count: int) -> list[str]:
        return ["-i", str(self._lab.inventory), "--limit", ",".join(self._names[:count])]

    def _hwcheck(self, count: int, *words: str) -> None:
        self.run([sys.executable, "-m", "hwcheck", *words, "-q", *self._limited(count)])

    def _collect(self, count: int) -> None:
        target = self._folder / "out" / str(time.monotonic_ns())
        self._hwcheck(count, "collect", "-o", str(target))
        shutil.rmtree(target)

    def _ssh(self, count: int, command: str, stdin: bytes, *, fast: bool = True) -> None:
        known, key = self._lab.folder / "known_hosts", self._lab.folder / "client_key"
        addresses = self._lab.running()
        words = ["ssh", "-F", "none", "-i", str(key), "-o", f"UserKnownHostsFile={known}", "-o", "IdentitiesOnly=yes",
                 "-o", "LogLevel=ERROR", "-p", str(self._lab.port), *(["-o", KEX] if fast else [])]  # fmt: skip

        def one(name: str) -> None:
            subprocess.run([*words, f"root@{addresses[name]}", command], input=stdin, capture_output=True, check=True)

        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(one, self._names[:count]))

    def _setup(self, count: int, *, fast: bool = True) -> None:
        where = ["-i", str(self._shared(fast=fast)), "--limit", ",".join(self._names[:count]), "-f", str(AT_ONCE)]
        self.run([str(ANSIBLE), "lab", "-m", "setup", *where], ANSIBLE_PIPELINING="1")

    def _testinfra(self, count: int) -> None:
        hosts = ",".join(f"ansible://{name}" for name in self._names[:count])
        self.run([
            sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(self._folder),
            "-p", "no:cacheprovider", f"--hosts={hosts}", f"--ansible-inventory={self._shared()}",
            str(self._folder / "test_twenty.py"),
        ])  # fmt: skip

    def _shared(self, *, fast: bool = True) -> Path:
        """Write an inventory whose connections are shared within one run."""
        folder = Path(tempfile.mkdtemp(prefix="m", dir=self._folder))
        kex = f"-o {KEX} " if fast else ""
        options = f"{kex}-o ControlMaster=auto -o ControlPersist=20s -o ControlPath={folder}/%C "
        text = self._lab.inventory.read_text(encoding="utf-8")
        (folder / "lab.yaml").write_text(text.replace("_common_args: ", f"_common_args: {options}"), encoding="utf-8")
        return folder / "lab.yaml"

    def transport(self, count: int) -> dict[str, list[float]]:
        """Measure the fan-out alone in a process of its own; see :func:`transport_child`."""
        text = self.run([sys.executable, "-m", "tests.bench.collect", "--transport-child", *self._limited(count), "-q"])
        found: dict[str, list[float]] = json.loads(text)
        return found

    def local(self) -> tuple[float, float]:
        """Time ``hwcheck check`` of this machine, and of a lab node's tree."""
        begun = time.monotonic()
        self.run([sys.executable, "-m", "hwcheck", "check", "-q"], ok=(0, 1, 3))
        middle = time.monotonic()
        node = nodes.load(self._lab.home, self._names[0])
        self.run(
            [sys.executable, "-m", "hwcheck", "check", "-q", "--live-root", str(node.root)],
            ok=(0,),
            **node.environment(),
        )
        return middle - begun, time.monotonic() - middle


def transport_child(words: list[str]) -> None:
    """Ask nodes, keep nothing; print CPU seconds of this process beside what each node says it took."""
    from hwcheck.cli.targets import Collection, add_target_options  # noqa: PLC0415 - imports are not measured

    parser = argparse.ArgumentParser()
    add_target_options(parser)
    with Collection(parser.parse_args(words)) as collection:
        collection.request.program()
        begun, spent = time.monotonic(), time.process_time()
        outcomes = list(collection)
        figures = {"wall": [time.monotonic() - begun], "cpu": [time.process_time() - spent]}
    figures["node"] = [float(outcome.usage["cpu"]) for outcome in outcomes]
    figures["node_children"] = [float(outcome.usage["children_cpu"]) for outcome in outcomes]
    print(json.dumps(figures))


def measure(method: Callable[[int], None], count: int, timing: Timing) -> None:
    """Run once; add wall and CPU of this process and its children."""
    before, begun = spent(), time.monotonic()
    method(count)
    timing.wall.append(time.monotonic() - begun)
    timing.cpu.append(spent() - before)


def spent() -> float:
    """Return CPU seconds of this process and of its ended children."""
    of = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in of)


def spread(values: list[float], unit: float = 1.0, digits: int = 2) -> str:
    """Write median and range."""
    low, middle, high = (f"{value * unit:.{digits}f}" for value in (min(values), median(values), max(values)))
    return f"{middle} ({low}-{high})"


def compare(bench: Bench, count: int, rounds: int, *, peers: bool) -> dict[str, Timing]:
    """Run all methods in turn, and print their medians."""
    methods = bench.methods(peers=peers)
    timings = {name: Timing() for name in methods}
    for method in methods.values():
        method(1)  # compiled files, caches of the kernel, the inventory's cache
    for _ in range(rounds):
        for name, method in methods.items():
            measure(method, count, timings[name])
    print(f"\n{count} node{'s' if count > 1 else ''}, {rounds} rounds: median (range)")
    print(f"  {'':30}{'wall s':>22}{'controller CPU ms a node':>30}")
    for name, timing in timings.items():
        print(f"  {name:30}{spread(timing.wall):>22}{spread(timing.cpu, 1000 / count, 0):>30}", flush=True)
    return timings


def tell_transport(bench: Bench, count: int, rounds: int) -> None:
    """Print what the fan-out alone takes, and what the node program says it takes."""
    found = [bench.transport(count) for _ in range(rounds)]
    cpu = [one["cpu"][0] / count for one in found]
    node = [value for one in found for value in one["node"]]
    children = [value for one in found for value in one["node_children"]]
    print(f"  transport alone, {count} nodes: {spread(cpu, 1000, 1)} ms controller CPU a node, "
          f"wall {spread([one['wall'][0] for one in found])} s")  # fmt: skip
    print(
        f"  node program: {spread(node, 1000, 0)} ms CPU, "
        f"beside {spread(children, 1000, 0)} ms of its children (NVML, spawns)"
    )


def tell_aims(results: dict[int, dict[str, Timing]]) -> None:
    """Print the ratios that were aimed at."""
    for own in ("hwcheck check", "hwcheck collect"):
        print(f"\nratios of medians of wall time, {own} against:")
        for count, timings in results.items():
            mine = median(timings[own].wall)
            ratios = [
                f"{name} {mine / median(timing.wall):.2f}" for name, timing in timings.items() if "hwcheck" not in name
            ]
            print(f"  {count:4} nodes: " + "; ".join(ratios))
    print("  aims: 32 nodes at most 0.15 of ansible -m setup; 8 nodes at most 0.3 of testinfra")


def tell_missing() -> None:
    """Say what is not compared, and why."""
    if not ANSIBLE.exists():
        print("not compared: ansible -m setup, testinfra (ansible-core is not installed)")
    elif not importlib.util.find_spec("testinfra"):
        print("not compared: testinfra (pytest-testinfra is not installed)")


def main() -> None:
    """Run all sizes."""
    if sys.argv[1:2] == ["--transport-child"]:
        transport_child(sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="runs of each method (default: 5)")
    parser.add_argument("--full", action="store_true", help="128 nodes too")
    parser.add_argument("--sizes", type=int, nargs="+", help="numbers of nodes in place of 1, 8 and 32")
    parser.add_argument("--no-peers", action="store_true", help="without Ansible and testinfra")
    arguments = parser.parse_args()
    lacks = missing()
    if lacks:
        sys.exit("the lab's host form needs " + "; ".join(lacks))
    sizes = arguments.sizes or [1, 8, 32, *([128] if arguments.full else [])]
    with tempfile.TemporaryDirectory(prefix="hwbench") as folder:
        os.environ["XDG_CACHE_HOME"] = os.environ["XDG_STATE_HOME"] = folder
        with Bench(Path(folder), max(sizes)) as bench:
            tell_missing()
            results = {count: compare(bench, count, arguments.rounds, peers=not arguments.no_peers) for count in sizes}
            print()
            tell_transport(bench, min(32, max(sizes)), arguments.rounds)
            pairs = [bench.local() for _ in range(arguments.rounds)]
            print(f"  hwcheck check of this machine {spread([one for one, _ in pairs])} s, "
                  f"of a lab node's tree {spread([two for _, two in pairs])} s wall")  # fmt: skip
            tell_aims(results)


if __name__ == "__main__":
    main()
