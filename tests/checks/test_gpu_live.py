"""Checks on what only a live node tells of its GPUs."""

from __future__ import annotations

import pytest

from hwcheck.checks import RELATIONS
from hwcheck.engine import Judge
from hwcheck.facts import Fact, Missing, Reason, Snapshot, gpu_at
from hwcheck.findings import Finding, Status
from hwcheck.profiles.layers import Profile

GPU = gpu_at("0000:18:00.0")


def judged(check: str, **facts: object) -> Finding:
    """Judge one GPU by one relation; dots of fact names stand as ``__``."""
    snapshot = Snapshot()
    for name, value in facts.items():
        snapshot.put(GPU, name.replace("__", "."), Fact(value))
    judge = Judge(Profile("test", "test", ("test",), {}, {}, ""))
    judge.checks = [RELATIONS[check]]
    return next(finding for finding in judge.findings(snapshot) if finding.check == check)


@pytest.mark.parametrize(("result", "status", "words", "remedy"), [
    ("ok", Status.PASS, "computed right", ""),
    ("wrong result: element 17 is 34, not 51", Status.FAIL, "computes wrong", "RMA"),
    ("cuCtxCreate_v2: CUDA_ERROR_ECC_UNCORRECTABLE (214)", Status.FAIL, "CUDA_ERROR_ECC_UNCORRECTABLE", "reset"),
    ("cuCtxCreate_v2: CUDA_ERROR_SYSTEM_NOT_READY (802)", Status.FAIL, "fabric manager", "nvidia-fabricmanager"),
    ("cuModuleLoadData: CUDA_ERROR_JIT_COMPILER_NOT_FOUND (221)", Status.FAIL, "compile", "reinstall the driver"),
    ("cuCtxCreate_v2: CUDA_ERROR_DEVICE_UNAVAILABLE (46)", Status.SKIP, "in use", ""),
    ("cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (2)", Status.SKIP, "in use", ""),
])  # fmt: skip
def test_a_first_kernel_is_judged(result: str, status: Status, words: str, remedy: str) -> None:
    """A wrong number and an error fail with the remedy of their cause; a GPU that a job holds is skipped."""
    finding = judged("gpu.cuda_sanity", sanity__cuda=result)
    assert finding.status is status
    assert words in finding.message
    assert not remedy or (finding.remedy is not None and remedy in finding.remedy.text)


def test_a_kernel_that_did_not_end_is_unknown() -> None:
    """A GPU on which the kernel hung is never a pass."""
    missing = Missing(Reason.TIMEOUT, "the kernel did not end")
    assert judged("gpu.cuda_sanity", sanity__cuda=missing).status is Status.UNKNOWN


def test_a_power_profile_is_said_and_not_judged() -> None:
    """A requested profile is named with what is in force in its place; none is a pass; older GPUs have none."""
    name = "gpu__power_profile__requested"
    assert judged("power.profile", **{name: ()}).status is Status.PASS
    asked = judged("power.profile", **{name: ("MAX_Q",), "gpu__power_profile__enforced": ()})
    assert asked.status is Status.SKIP
    assert "MAX_Q is requested, in force: none" in asked.message
    assert judged("power.profile", **{name: Missing(Reason.ABSENT)}).status is Status.SKIP
