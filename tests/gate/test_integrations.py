"""Ready-made integrations: what they do with each answer of the gate, and that they are written out whole."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from hwcheck.integrations import INTEGRATIONS
from tests.gate.certified import ROOT

FOLDER = ROOT / "hwcheck/integrations"
READY, NOT = "ready: certified until 2027-01-01; 651 checks passed", "not ready: xid.79 of 0000:18:00.0: off the bus"
UNTOLD, ERROR = "could not tell: nvml (look 1 of 3)", ""
ANSWERS = {READY: 0, NOT: 1, UNTOLD: 3, ERROR: 1}
"""What a gate says → its exit code; the last one is a hwcheck that broke."""


def gate_that_says(folder: Path, line: str) -> str:
    """Write a command that answers like a gate."""
    command = folder / "hwcheck-said"
    said = f"printf '%s\\n' '{line}'\n" if line else ""
    command.write_text(f"#!/bin/sh\n{said}exit {ANSWERS.get(line, 1)}\n", encoding="utf-8")
    command.chmod(0o755)
    return str(command)


def run(script: str, folder: Path, line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run one of the scripts with such a gate."""
    return subprocess.run(
        ["sh", str(FOLDER / script)], capture_output=True, text=True, check=False, timeout=30,
        env={**os.environ, "HWCHECK": gate_that_says(folder, line), "SLURMD_NODENAME": "gpu-7", **environment},
    )  # fmt: skip


@pytest.mark.parametrize("line", ANSWERS)
def test_prolog_refuses_only_a_no(tmp_path: Path, line: str) -> None:
    """A job is held back by a no alone, not by what could not be told or by a hwcheck that broke."""
    assert run("hwcheck-slurm-prolog.sh", tmp_path, line).returncode == (1 if line == NOT else 0)


def asked_of_slurm(tmp_path: Path, line: str, state: str, reason: str) -> list[str]:
    """Run the health check on a node in this state; returns what was asked of slurmctld, one word a line."""
    scontrol, asked = tmp_path / "scontrol", tmp_path / "asked"
    shown = f"NodeName=gpu-7 Arch=x86_64\\n   State={state} ThreadsPerCore=1\\n"
    shown += f"   Reason={reason} [root@2026-12-01T10:00:00]\\n" if reason else ""
    scontrol.write_text(
        f"#!/bin/sh\n[ \"$1\" = show ] && {{ printf '{shown}'; exit; }}\nprintf '%s\\n' \"$@\" >'{asked}'\n",
        encoding="utf-8",
    )
    scontrol.chmod(0o755)
    done = run("hwcheck-slurm-health.sh", tmp_path, line, SCONTROL=str(scontrol))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return asked.read_text(encoding="utf-8").splitlines() if asked.exists() else []


DRAIN = ["update", "NodeName=gpu-7", "State=DRAIN"]
OURS = "hwcheck: xid.79 of 0000:18:00.0: off the bus"


@pytest.mark.parametrize(
    ("line", "state", "reason", "asked"),
    [
        (NOT, "IDLE", "", [*DRAIN, f"Reason={OURS}"]),
        (NOT, "ALLOCATED", "", [*DRAIN, f"Reason={OURS}"]),
        (NOT, "IDLE+DRAIN", OURS, []),
        (NOT, "IDLE+DRAIN", "hwcheck: another", [*DRAIN, f"Reason={OURS}"]),
        (NOT, "IDLE+DRAIN", "new cable", []),
        (READY, "IDLE", "", []),
        (READY, "IDLE+DRAIN", OURS, ["update", "NodeName=gpu-7", "State=UNDRAIN"]),
        (READY, "IDLE+DRAIN", "new cable", []),
        (READY, "IDLE+DRAIN", f"was {OURS}", []),
        (READY, "DOWN", OURS, []),
        (UNTOLD, "IDLE", "", []),
        (UNTOLD, "IDLE+DRAIN", OURS, []),
        (ERROR, "IDLE", "", []),
    ],
)
def test_health_check_touches_only_its_own_drains(
    tmp_path: Path, line: str, state: str, reason: str, asked: list[str]
) -> None:
    """A no drains a node that nobody drained, a yes ends only drains of ours, and what is open changes nothing."""
    assert asked == asked_of_slurm(tmp_path, line, state, reason)


def test_reason_of_a_node_is_an_argument(tmp_path: Path) -> None:
    """What a node says stays one argument, however it reads, and its length is bounded."""
    hostile = "not ready: $(touch pwned) `id` ; State=RESUME \\ " + "x" * 400
    ANSWERS[hostile] = 1
    asked = asked_of_slurm(tmp_path, hostile, "IDLE", "")
    assert asked[:3] == DRAIN
    assert asked[3].startswith("Reason=hwcheck: $(touch pwned) `id` ; State=RESUME")
    assert (len(asked), len(asked[3]) <= 220) == (4, True)
    del ANSWERS[hostile]


def test_slurmctld_that_does_not_answer_changes_nothing(tmp_path: Path) -> None:
    """Where the state of the node cannot be had nothing is asked for."""
    done = run("hwcheck-slurm-health.sh", tmp_path, NOT, SCONTROL="false")
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    ("line", "code"), [(READY, 0), (NOT, 1), (UNTOLD, 2), (ERROR, 2), ("not ready: " + "y" * 200, 1)]
)
def test_problem_detector_gets_its_codes_and_one_short_line(tmp_path: Path, line: str, code: int) -> None:
    """The plugin ends with 0, 1 or 2 and prints one line of at most 80 characters."""
    done = run("hwcheck-npd.sh", tmp_path, line)
    assert done.returncode == code
    assert (0 < len(done.stdout) <= 81, done.stdout.count("\n")) == (True, 1)


def test_configurations_can_be_read() -> None:
    """The plugin's JSON names its own script, and the job of the pipeline is YAML with a gate in it."""
    plugin = json.loads((FOLDER / "hwcheck-npd.json").read_text(encoding="utf-8"))
    assert plugin["rules"][0]["path"].endswith("/hwcheck-npd.sh")
    assert plugin["rules"][0]["condition"] == plugin["conditions"][0]["type"]
    job = yaml.safe_load((FOLDER / "hwcheck-ci.yml").read_text(encoding="utf-8"))
    assert "hwcheck gate" in job["gpu-gate"]["script"][0]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here")
def test_units_are_understood_by_systemd(tmp_path: Path) -> None:
    """Service and timer load without a complaint, beside that of a command which is not installed here."""
    for file in INTEGRATIONS["systemd"]:
        text = (FOLDER / file).read_text(encoding="utf-8").replace("ExecStart=hwcheck", "ExecStart=/bin/true")
        (tmp_path / file).write_text(text, encoding="utf-8")
    names = [str(tmp_path / file) for file in INTEGRATIONS["systemd"]]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *names], capture_output=True, text=True, check=False
    )
    assert [line for line in done.stderr.splitlines() if "hwcheck-gate" in line] == []


@pytest.mark.parametrize("name", INTEGRATIONS)
def test_integrations_are_written_out(tmp_path: Path, name: str) -> None:
    """Printed or into a folder, the files come as they are, scripts can be run, and none is written over."""
    command = [sys.executable, "-m", "hwcheck", "gate", "--print", name]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    for _ in range(2):
        done = subprocess.run([*command, "--into", str(tmp_path)], env=environment, capture_output=True, check=False)
    assert done.returncode == 2
    for file in INTEGRATIONS[name]:
        text = (FOLDER / file).read_text(encoding="utf-8")
        assert text in printed
        assert (tmp_path / file).read_text(encoding="utf-8") == text
        assert os.access(tmp_path / file, os.X_OK) == text.startswith("#!")
