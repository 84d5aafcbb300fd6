"""A node for writers: a tree below a root, and small programs on PATH."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from hwcheck.sources import boot
from hwcheck.sources.source import Absent, Context
from hwcheck.writers.place import Place
from hwcheck.writers.stages import answer
from tests.sources.tree import facts_of, output_of

BOOT = "/proc/sys/kernel/random/boot_id"


class Node:
    """
    A running node below a folder.

    Attributes:
        root: where its files are.
        log: what the programs were called with, one line each.
    """

    def __init__(self, folder: Path, *, live: bool = True) -> None:
        self.root = folder / "root"
        self.log = folder / "log"
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.live = live
        self.put(BOOT, "boot-1\n")
        (self.root / "etc").mkdir()

    @property
    def place(self) -> Place:
        """Return it as writers see it."""
        return Place(str(self.root), live=self.live)

    def put(self, path: str, text: str, mode: int = 0o644) -> Path:
        """Put a file below the root."""
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        target.chmod(mode)
        return target

    def text(self, path: str) -> str | None:
        """Return a file below the root; None when there is none."""
        target = self.root / path.lstrip("/")
        return target.read_text(encoding="utf-8") if target.exists() else None

    def program(self, name: str, script: str = "") -> None:
        """Put a program on PATH: ``$ROOT`` is the node; each call is logged."""
        target = self.bin / name
        head = f'#!/bin/sh\nROOT={self.root}\necho "{name} $*" >> {self.log}\n'
        target.write_text(head + script + "\n", encoding="utf-8")
        target.chmod(stat.S_IRWXU)

    def calls(self) -> list[str]:
        """Return what the programs were called with, and forget it."""
        text = self.log.read_text(encoding="utf-8") if self.log.exists() else ""
        self.log.unlink(missing_ok=True)
        return [line.strip() for line in text.splitlines()]

    def stage(self, stage: str, *steps: dict[str, Any], run: str = "r1", **more: Any) -> dict[str, Any]:
        """Carry out one stage."""
        return answer(
            {"stage": stage, "run": run, "holder": "me", "steps": list(steps), "root": str(self.root),
             "live_root": self.live, **more}
        )  # fmt: skip

    def apply(self, *steps: dict[str, Any], run: str = "r1", **more: Any) -> dict[str, Any]:
        """Prepare and commit."""
        prepared = self.stage("prepare", *steps, run=run, **more)
        if not prepared["ok"] or not prepared["pending"]:
            return prepared
        return self.stage("commit", *steps, run=run, journal=prepared["journal"], **more)

    def tree(self) -> dict[str, tuple[str, int]]:
        """Return each file with its bytes and mode, but for hwcheck's own."""
        return {
            str(path.relative_to(self.root)): (path.read_text(encoding="latin-1"), path.stat().st_mode)
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and not path.is_symlink() and "/hwcheck/" not in str(path)
        }

    def held_by_evidence(self) -> list[tuple[str, str]]:
        """Return mechanism and key of all that our files hold, as a plan reads it from the node's evidence."""
        try:
            output = output_of(boot.SOURCES, "own-files", Context(root=str(self.root)))
        except Absent:
            return []
        held = facts_of(output).value("settings.held")
        assert held is not None
        return sorted((one["mechanism"], one["key"]) for one in held)

    def round_trip(self, *steps: dict[str, Any], count: int = 1) -> list[str]:
        """
        Check what holds for every mechanism, and return what the programs were called with by the first run.

        The check stage says what the run then does; it is read back; a second run changes nothing; evidence tells the
        keys that our files hold, as the node's own stage does; the undoing restores every byte and mode.
        """
        before = self.tree()
        told = self.stage("check", *steps)
        assert self.tree() == before
        self.calls()
        done = self.apply(*steps)
        assert done["ok"], done
        calls = self.calls()
        changed = [one["key"] for one in done["results"] if one["status"] == "changed"]
        assert [one["key"] for one in told["results"] if one["status"] == "would change"] == changed
        assert len(changed) == count, done["results"]
        again = self.apply(*steps, run="r2")
        assert (again["ok"], again["changed"]) == (True, False), again
        assert {one["status"] for one in again["results"]} == {"right"}, again["results"]
        assert self.held_by_evidence() == [(one["mechanism"], one["key"]) for one in self.stage("held")["held"]]
        after = self.tree()
        undone = self.stage("undo", run="r1")
        assert (undone["ok"], undone["results"]) == (True, []), undone
        assert self.tree() == before
        assert self.apply(*steps, run="r3")["ok"]
        assert self.tree() == after
        return calls


def status(done: dict[str, Any]) -> list[tuple[str, str]]:
    """Return status and reason of each step."""
    return [(one["status"], one["why"]) for one in done["results"]]


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    """Return a running node."""
    made = Node(tmp_path)
    monkeypatch.setenv("PATH", f"{made.bin}{os.pathsep}/usr/bin:/bin")
    return made


@pytest.fixture
def image(tmp_path: Path) -> Node:
    """Return an image: nothing may be run there."""
    return Node(tmp_path, live=False)
