"""A lab node in tree form with a certificate, and the gate asked about it as a prolog would."""

from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hwcheck import __version__
from hwcheck.cli.certifying import Signer, certify
from hwcheck.keyring import public_line
from hwcheck.lab.nodes import Node
from hwcheck.pipeline import Pipeline
from hwcheck.profiles import ProfileSet
from hwcheck.report.json_run import run_object
from tests.lab.lab_node import evidence_from

ROOT = Path(__file__).parents[2]
UTC = dt.UTC


@dataclass(frozen=True)
class Said:
    """What the gate said: exit code, first line, all of it, and what went to standard error."""

    code: int
    line: str
    text: str
    errors: str


@dataclass
class Certified:
    """
    A node with its papers.

    Attributes:
        node: in tree form.
        certificate, key: files beside the node, since mending takes away what was written into it.
        state: the gate's memory.
    """

    node: Node
    certificate: Path
    key: Path
    state: Path

    def words(self, *more: str) -> list[str]:
        """Return the command line behind the interpreter."""
        papers = ["--certificate", str(self.certificate), "--key", str(self.key), "--state", str(self.state)]
        return ["-m", "hwcheck", "gate", "-q", "--live-root", str(self.node.root), *papers, *more]

    def environment(self) -> dict[str, str]:
        """Return the environment that the node's tools and library are found in."""
        return {**os.environ, **self.node.environment(), "PYTHONPATH": str(ROOT)}

    def gate(self, *more: str) -> Said:
        """Ask the gate in a process of its own."""
        return ask(self.words(*more), self.environment())

    def sign(self, issued: dt.datetime | None = None, tier: str = "quick", site: tuple[Path, ...] = ()) -> None:
        """Certify the node as it is now, or as if that had been at another time, by what a tier tells."""
        now, profiles = issued or dt.datetime.now(UTC), ProfileSet(site)
        verdict = Pipeline(profiles).judge(evidence_from(self.node, tier))
        record = run_object(
            [verdict], f"hwcheck {__version__}", {"name": "auto", "hash": "0" * 16}, now.isoformat(timespec="seconds")
        )
        key = Ed25519PrivateKey.generate()
        folder = self.certificate.parent
        done = certify(
            json.loads(json.dumps(record, default=str)), [], folder, Signer(key, "tester@lab", 90), profiles,
            issued=now,
        )  # fmt: skip
        assert done.refused == []
        done.files[self.node.name].replace(self.certificate)
        self.key.write_bytes(public_line(key))
        self.key.chmod(0o644)

    def log(self, *messages: str) -> None:
        """Let the kernel log these, one record each."""
        kmsg = self.node.root / "dev/kmsg"
        number = len(kmsg.read_text(encoding="utf-8").splitlines())
        with kmsg.open("a", encoding="utf-8") as file:
            for at, message in enumerate(messages, number):
                file.write(f"3,{at},{(100 + at) * 1_000_000},-;{message}\n")


def ask(words: list[str], environment: dict[str, str]) -> Said:
    """Run the command line in a process of its own."""
    done = subprocess.run(
        [sys.executable, *words], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=False, timeout=120,
    )  # fmt: skip
    return Said(done.returncode, done.stdout.partition("\n")[0], done.stdout, done.stderr)


def certified(node: Node, folder: Path) -> Certified:
    """Certify a healthy node."""
    folder.mkdir(parents=True, exist_ok=True)
    found = Certified(node, folder / "certificate.json", folder / "certificate.pub", folder / "state")
    found.sign()
    return found
