"""nccl-tests over several nodes: the command line, and the head node that has the launcher, or lacks it."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from hwcheck.baselines.collective import collective_lines, environment
from hwcheck.parse import take_snapshot
from hwcheck.transports import local
from hwcheck.transports.collective import measure_collective
from hwcheck.transports.gathered import evidence_of
from hwcheck.transports.outcome import Outcome
from hwcheck.transports.target import LOCAL, Target

RESULT = Path(__file__).parents[1] / "parse/nccl_tests/two_nodes_not_validated.txt"
HEAD = Target("a", connection=LOCAL)


def put(folder: Path, name: str, text: str) -> None:
    """Put a program into a folder."""
    file = folder / name
    file.write_text("#!/bin/sh\n" + text)
    file.chmod(file.stat().st_mode | stat.S_IXUSR)


def run() -> Outcome:
    """Measure two nodes of eight GPUs from this one."""
    return measure_collective(HEAD, ["a", "b"], 8, local.collect, adapters=["mlx5_0", "mlx5_1"], limit=20.0)


def test_the_command_lines_start_one_rank_for_each_gpu() -> None:
    """By Open MPI or by Slurm; NCCL says which transport it took."""
    assert environment(["mlx5_0", "mlx5_1"]) == {"NCCL_DEBUG": "INFO", "NCCL_IB_HCA": "=mlx5_0,mlx5_1"}
    lines = collective_lines(["a", "b"], 8, list(environment()))
    assert {launcher: " ".join(line) for launcher, line in lines.items()} == {
        "mpirun": "mpirun --allow-run-as-root --np 16 --map-by ppr:8:node --host a:8,b:8 -x NCCL_DEBUG "
        "all_reduce_perf -b 1G -e 8G -f 2 -g 1",
        "srun": "srun --nodes=2 --nodelist=a,b --ntasks-per-node=8 --gpus-per-node=8 --exclusive --kill-on-bad-exit=1 "
        "--export=ALL all_reduce_perf -b 1G -e 8G -f 2 -g 1",
    }


@pytest.mark.parametrize(("hosts", "gpus"), [(["a"], 8), (["a", "a"], 8), (["a", "b"], 0)])
def test_a_collective_needs_two_nodes_and_a_gpu(hosts: list[str], gpus: int) -> None:
    """Else there is nothing to measure between them."""
    with pytest.raises(ValueError, match="a collective needs two nodes"):
        collective_lines(hosts, gpus, [])


def test_the_launcher_that_is_there_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it prints is read as any output of nccl-tests; the program stands in it by its path."""
    put(tmp_path, "all_reduce_perf", "exit 0\n")
    put(tmp_path, "srun", f'echo "$NCCL_DEBUG $@" > {tmp_path}/words; /bin/cat {RESULT}\n')
    monkeypatch.setenv("PATH", str(tmp_path))
    outcome = run()
    (answer,) = [one for one in outcome.answers if one.kind == "nccl-tests"]
    assert answer.status == "ok"
    said = (tmp_path / "words").read_text()
    assert said.startswith("INFO --nodes=2")
    assert f" {tmp_path}/all_reduce_perf -b 1G" in said
    snapshot = take_snapshot(evidence_of(outcome))
    (subject,) = snapshot.subjects("measurement")
    assert snapshot.value("result.conditions", subject)["hosts"] == 2


def test_what_is_missing_on_the_head_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program first, then the launcher."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [(one.status, one.detail) for one in run().answers if one.kind == "nccl-tests"] == [
        ("absent", "all_reduce_perf (nccl-tests, built from NVIDIA/nccl-tests with MPI=1)"),
    ]
    put(tmp_path, "all_reduce_perf", "exit 0\n")
    assert [(one.status, one.detail) for one in run().answers if one.kind == "nccl-tests"] == [
        ("absent", "mpirun or srun (package openmpi-bin, or slurm-client)"),
    ]
