"""What CUDA says about the GPUs: whether it initialises, whether deviceQuery passes."""

from __future__ import annotations

from hwcheck.checks.relation import Answer, Given, fail, ok, relation, skip
from hwcheck.findings import Remedy, Urgency

_START_FABRIC_MANAGER = Remedy(
    "act",
    "Install nvidia-fabricmanager of exactly the driver's version, then systemctl enable --now nvidia-fabricmanager "
    "(systemctl restart when it runs already); HGX B200 and B300 also need nvlsm, ib_umad and mlx5_core. Then run the "
    "test again.",
    disturbs="board",
)
_CHECK_DRIVER = Remedy(
    "act",
    "Compare the driver of nvidia-smi with the CUDA version of the program (and of the container), see that "
    "/dev/nvidia* exist and CUDA_VISIBLE_DEVICES names real GPUs, then run the program again.",
    disturbs="nothing",
)


@relation("driver.cuda_init", needs=("cuda.init_error",), urgency=Urgency.NOW, remedy=_START_FABRIC_MANAGER)
def cuda_initialises(given: Given) -> Answer:
    """
    CUDA initialises.

    What it checks: whether a CUDA program in the evidence (nccl-tests, deviceQuery, nvbandwidth, dcgmi diag) could
    initialise.

    Why it matters: without it no job runs, while nvidia-smi looks perfectly healthy. CUDA error 802, "system not yet
    initialized", comes from GPUs behind NVSwitch whose fabric is not set up.

    How to fix: start nvidia-fabricmanager of exactly the driver's version. Other words than 802 point at the driver.

    Applies to: evidence that holds the message. A program that ran is seen in its own result.

    Source: NVIDIA CUDA driver API, cuInit and error codes; NVIDIA Fabric Manager user guide; nccl-tests issue 264.
    """
    words = given["cuda.init_error"]
    if "system not yet initialized" in words:
        text = (
            "CUDA cannot initialise: system not yet initialized; on an NVSwitch node the fabric manager is not running"
        )
        return fail(text, observed=words)
    return fail(f"CUDA cannot initialise: {words}", observed=words, remedy=_CHECK_DRIVER)


@relation(
    "gpu.cuda_devices",
    needs=("cuda.query_result",),
    uses=("cuda.device_count", "cuda.init_error"),
    urgency=Urgency.NOW,
    remedy=_CHECK_DRIVER,
)
def device_query_passes(given: Given) -> Answer:
    """
    CUDA deviceQuery sees the GPUs and passes.

    What it checks: the result line of the CUDA sample deviceQuery.

    Why it matters: it is the smallest program that opens every GPU through CUDA.

    How to fix: see driver.cuda_init, whose message names the CUDA error.

    Applies to: evidence with the result line. How many GPUs there should be is another check's question.

    Source: NVIDIA cuda-samples, deviceQuery.
    """
    count = given.maybe("cuda.device_count")
    if given["cuda.query_result"] == "PASS":
        seen = f"{count} GPUs" if count is not None else "its GPUs"
        return ok(f"CUDA deviceQuery sees {seen} and passes", observed="PASS", expected="PASS")
    if given.maybe("cuda.init_error") is not None:
        return skip("CUDA deviceQuery did not run because CUDA does not initialise", observed="FAIL")
    return fail("CUDA deviceQuery ended with FAIL", observed="FAIL", expected="PASS")
