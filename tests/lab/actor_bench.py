"""What tests of the lab's tools share: a node in tree form, its tools, its files."""

from __future__ import annotations

import subprocess
from pathlib import Path

from hwcheck.lab import nodes


class Bench:
    """A node in tree form, and its tools."""

    def __init__(self, home: Path, platform: str = "hgx-h200", *faults: str) -> None:
        number = sum(1 for _ in nodes.nodes(home)) + 1
        self.node = nodes.up(home, f"node-{number}", platform, list(faults))[0]
        self.root = self.node.root

    @classmethod
    def of(cls, node: nodes.Node) -> Bench:
        """Return the bench of a node that is there."""
        bench = cls.__new__(cls)
        bench.node, bench.root = node, node.root
        return bench

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a tool of the node."""
        tool = self.node.folder / "bin" / words[0]
        return subprocess.run([tool, *words[1:]], capture_output=True, text=True, check=False)

    def ask(self, *words: str) -> str:
        """Return what ``systemctl`` prints."""
        return self.run("systemctl", *words).stdout.strip()

    def act(self, *words: str) -> None:
        """Run ``systemctl``, which must succeed."""
        done = self.run("systemctl", *words)
        assert done.returncode == 0, done.stderr

    def write(self, path: str, text: str) -> None:
        """Write a file of the node."""
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def read(self, path: str) -> str:
        """Read a file of the node."""
        return (self.root / path.lstrip("/")).read_text(encoding="utf-8")

    def nvml(self, name: str) -> str:
        """Read an attribute of its NVML."""
        return (self.node.folder / "nvml" / name).read_text(encoding="utf-8").strip()

    def limit(self, unit: str) -> str:
        """Return the locked memory of a unit's main process."""
        pid = self.ask("show", "--value", "-p", "MainPID", unit)
        return self.read(f"/proc/{pid}/limits").splitlines()[-1].split()[3]
