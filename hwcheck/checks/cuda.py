"""What CUDA and DCGM say about the GPUs: whether CUDA initialises, whether deviceQuery and dcgmi health are content."""

from __future__ import annotations

from hwcheck.checks.relation import Answer, Given, fail, ok, relation, skip, warn
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


@relation(
    "gpu.dcgm_health",
    needs=("dcgm.health",),
    uses=("dcgm.health_text",),
    urgency=Urgency.JOB_END,
    remedy=Remedy(
        "act",
        "Read the incident that dcgmi health names, drain the node and reset the GPU; then run dcgmi health -c and "
        "dcgmi diag -r 3.",
        disturbs="node",
    ),
)
def dcgm_health_is_good(given: Given) -> Answer:
    """
    DCGM's health watches are content.

    What it checks: "Overall Health" of ``dcgmi health -c``.

    Why it matters: DCGM watches ECC, PCIe replays, NVLink errors, power and heat between two looks of anyone else.

    How to fix: act on the incident it lists; a Failure wants the GPU out of work, a Warning a look.

    Applies to: nodes where a watch was set (``dcgmi health -s``); without one DCGM answers Healthy and has looked at
    nothing, which its text does not tell.

    Source: NVIDIA DCGM user guide, health monitoring.
    """
    health = given["dcgm.health"]
    listed = given.maybe("dcgm.health_text")
    said = f": {listed[:160]}" if listed and health != "Healthy" else ""
    if health == "Healthy":
        return ok("DCGM health is Healthy", observed=health, expected="Healthy")
    judge = warn if health == "Warning" else fail
    return judge(f"DCGM health is {health}{said}", observed=health, expected="Healthy")


@relation(
    "nvlink.dcgm_links",
    needs=("dcgm.nvlinks",),
    urgency=Urgency.NOW,
    remedy=Remedy(
        "act",
        "Look for Xid 74 (Hopper) or 144-150 (Blackwell) and SXid lines and nvidia-smi nvlink -e of this GPU, then "
        "reset the GPUs of the board and look again; a link that stays down is a case for service.",
        disturbs="board",
    ),
)
def dcgm_sees_no_link_down(given: Given) -> Answer | None:
    """
    DCGM sees no NVLink down.

    What it checks: the letters of ``dcgmi nvlink -s``: none is D.

    Why it matters: collectives run at the pace of the GPU with the fewest links.

    How to fix: find the error behind it in the kernel log, reset, then service.

    Applies to: GPUs with links. Disabled links (X) are no fault here: how many a board uses is the platform's figure.

    Source: NVIDIA DCGM user guide, dcgmi nvlink.
    """
    rows = given["dcgm.nvlinks"]
    down = [row for row in rows if row["down"]]
    if down:
        named = ", ".join(f"GPU {row['gpu']}: {row['down']}" for row in down)
        return fail(f"NVLinks down, as DCGM counts GPUs: {named}", observed=len(down), expected=0)
    up = sum(row["up"] for row in rows)
    return ok(f"DCGM sees {up} NVLinks up and none down", observed=up) if up else None
