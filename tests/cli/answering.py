"""Nodes that answer what a test wants, in place of a transport."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from hwcheck.cli import measuring
from hwcheck.errors import TransportError
from hwcheck.transports.outcome import HELLO, Outcome
from hwcheck.transports.stream import Answer
from hwcheck.transports.target import Target
from tests.machines import as_q, hgx_h200

IDLE = "processes=1\n"
BUSY = "pid=77 state=R ppid=1 uid=0 age=9 devices=nvidia0 wait=- comm=train\nprocesses=1\n"
GPU = "0000:18:00.0"


def answer(kind: str, text: str) -> Answer:
    """Return one answer that came whole."""
    return Answer(kind, "ok", 0.1, "", "", text.encode())


def node(name: str, *answers: Answer, boot: str = "b1") -> Outcome:
    """Return a node that said hello, and this."""
    hello = {"host": name, "boot_id": boot, "time": "1796000000"}
    text = "".join(f"{key}={value}\n" for key, value in hello.items())
    return Outcome(Target(name), (answer(HELLO, text), *answers), hello)


def idle(name: str, holders: str = IDLE, boot: str = "b1") -> Outcome:
    """Return a healthy node on which nobody works, unless ``holders`` says who."""
    return node(name, answer("nvidia-smi.q", as_q(hgx_h200())), answer("proc.holders", holders), boot=boot)


def silent(name: str) -> Outcome:
    """Return a node that cannot be reached."""
    return Outcome(Target(name), error=TransportError("no route to host"))


def loaded(name: str, *figures: float, boot: str = "b1") -> Outcome:
    """Return what a node measured of the copy within its first GPUs' memory, GB/s."""
    lines = [
        json.dumps({"test": "hbm.copy", "on": on, "value": value, "unit": "GB/s", "samples": [value] * 7,
                    "conditions": {"samples": 7, "spread": 0.1}})
        for on, value in zip((GPU, "0000:2a:00.0", "0000:3a:00.0"), figures, strict=False)
    ]  # fmt: skip
    return node(name, answer("hwcheck.load", "\n".join(lines) + "\n"), boot=boot)


def options(**more: Any) -> argparse.Namespace:
    """Return the command line of a verb that measures."""
    told = {
        "strict": False, "format": "text", "site": [], "profile": "hgx-h200", "only": [], "waivers": None, "tests": [],
        "idle_ignore": [], "load_timeout": 60.0, "quiet": True, "inventory": [], "nodes": "n1", "no_pairs": True,
    }  # fmt: skip
    return argparse.Namespace(**{**told, **more})


class Fleet:
    """
    Answers each read of the load in turn.

    Args:
        patch: takes the transport's place.
        loads: what nodes measure at the first load, the second, ...

    Attributes:
        asked: nodes and tests of each load.
    """

    def __init__(self, patch: pytest.MonkeyPatch, *loads: list[Outcome]) -> None:
        self.asked: list[tuple[list[str], tuple[str, ...]]] = []
        self._loads = list(loads)
        patch.setattr(measuring, "read_nodes", self._read)

    def _read(self, arguments: Any, tier: str, nodes: Any = (), only: tuple[str, ...] = ()) -> list[Outcome]:  # noqa: ARG002 - the form of what it stands for
        assert tier == measuring.LOAD
        self.asked.append((list(nodes), only))
        return self._loads.pop(0)


def home(tmp_path: Path, patch: pytest.MonkeyPatch) -> Path:
    """Give hwcheck a state folder of its own; returns it."""
    patch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    patch.delenv("HWCHECK_STORE", raising=False)
    return tmp_path / "state" / "hwcheck"
