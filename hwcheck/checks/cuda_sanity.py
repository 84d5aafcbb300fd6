"""Whether a first kernel runs on each GPU and computes right."""

from __future__ import annotations

from hwcheck.checks.relation import Answer, Given, fail, ok, relation, skip
from hwcheck.findings import Remedy, Urgency

_RESET = Remedy(
    "act",
    "Drain the node and look for an Xid of this GPU in the kernel log; reset the GPU, then run the check again. If it "
    "fails again: field diagnostic, then RMA.",
    disturbs="gpu",
)
_FABRIC = Remedy(
    "act",
    "Start nvidia-fabricmanager of exactly the driver's version (systemctl enable --now nvidia-fabricmanager); on "
    "NVL72 trays look at the fabric state of the GPU. Then run the check again.",
    disturbs="board",
)
_DRIVER = Remedy(
    "act",
    "Compare the versions of the driver's libraries with the loaded module, and reinstall the driver as one set: its "
    "compiler for kernels belongs to it.",
    disturbs="node",
)
_BUSY = ("CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA_ERROR_OUT_OF_MEMORY")
"""A job holds the GPU, in exclusive mode or with all of its memory."""

_INSTALLED = ("CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "CUDA_ERROR_INVALID_PTX")


@relation("gpu.cuda_sanity", needs=("sanity.cuda",), urgency=Urgency.NOW, remedy=_RESET)
def first_kernel_is_right(given: Given) -> Answer:
    """
    A first kernel runs on the GPU and computes right.

    What it checks: context, copy to the GPU, a kernel on 65,536 numbers, copy back, comparison with the right result.

    Why it matters: it is the smallest job. A GPU on which it fails, or worse, computes wrong, spoils every job it is
    given, while nvidia-smi may show nothing.

    How to fix: error 802 (system not ready) is the fabric manager's; a missing compiler is an incomplete driver; all
    else is the GPU's: reset, field diagnostic, RMA.

    Applies to: deep reading of a live node. A GPU that a job holds exclusively, or whose memory is full, is skipped.

    Source: CUDA driver API, error codes.
    """
    result = given["sanity.cuda"]
    if result == "ok":
        return ok("a first CUDA kernel ran and computed right", observed=result, expected="ok")
    if any(name in result for name in _BUSY):
        return skip(f"the GPU is in use: {result}", observed=result)
    if "CUDA_ERROR_SYSTEM_NOT_READY" in result:
        text = f"CUDA says system not yet initialized, on an NVSwitch node the fabric manager's fault: {result}"
        return fail(text, observed=result, expected="ok", remedy=_FABRIC)
    if any(name in result for name in _INSTALLED):
        return fail(f"the driver cannot compile a kernel: {result}", observed=result, expected="ok", remedy=_DRIVER)
    if result.startswith("wrong result"):
        return fail(f"the GPU computes wrong: {result}", observed=result, expected="ok")
    return fail(f"a first CUDA kernel does not run: {result}", observed=result, expected="ok")
