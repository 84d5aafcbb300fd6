"""What the driver itself says of a GPU: which recovery it asks for, and whether it can read the GPU at all."""

from __future__ import annotations

from dataclasses import replace

from hwcheck.checks.relation import Answer, Given, fail, ok, relation, warn
from hwcheck.findings import Act, Remedy, Urgency

_RESET = Remedy(
    "act",
    "Drain the node, then reset the GPU (nvidia-smi --gpu-reset; on an HGX board all GPUs together, with persistence "
    "daemon and fabric manager stopped). If it returns, reboot; if it still returns, run the field diagnostic for RMA.",
    disturbs="board",
    acts=(Act("reset_gpu", "{subject}"),),
)
_REBOOT = Remedy(
    "act",
    "Drain the node and reboot it; if the request returns, open a case with the vendor.",
    disturbs="node",
    acts=(Act("reboot"),),
)
_DRAIN_P2P = Remedy(
    "act",
    "Let no new job use this GPU's NVLink peers (drain peer-to-peer traffic), and reset the GPU when its jobs have "
    "ended.",
    disturbs="gpu",
    acts=(Act("reset_gpu", "{subject}"),),
)
_ONE_VALUE = replace(_RESET, acts=(), by_hand="One value that cannot be read is no reason for a reset by itself.")
_LOST = replace(_RESET, acts=(), by_hand="A reset does not bring a GPU back that is off the bus: power-cycle the node.")
_ACTIONS = {
    "reset": (_RESET, Urgency.NOW),
    "gpu reset": (_RESET, Urgency.NOW),
    "reboot": (_REBOOT, Urgency.NOW),
    "node reboot": (_REBOOT, Urgency.NOW),
    "drain p2p": (_DRAIN_P2P, Urgency.JOB_END),
    "drain and reset": (_RESET, Urgency.JOB_END),
}


@relation("gpu.recovery_action", needs=("gpu.recovery_action",), urgency=Urgency.NOW, remedy=_RESET)
def no_recovery_asked_for(given: Given) -> Answer:
    """
    The driver asks for no recovery of this GPU.

    What it checks: the field "GPU Recovery Action".

    Why it matters: the driver has seen an error after which it demands a reset, a reboot or a drain. Work goes on in a
    state that NVIDIA does not vouch for.

    How to fix: do what the driver asks for: drain peer-to-peer traffic, reset the GPU, or reboot the node.

    Applies to: drivers from R570 on; older ones say "Reset Required" and "Drain and Reset Recommended" instead.

    Source: nvml.h, nvmlDeviceGpuRecoveryAction_t; nvidia-smi -q of drivers 570 to 590.
    """
    action = given["gpu.recovery_action"]
    if action.lower() == "none":
        return ok("the driver asks for no recovery", observed=action, expected="None")
    remedy, urgency = _ACTIONS.get(action.lower(), (_RESET, Urgency.NOW))
    return fail(
        f"the driver asks for a recovery: {action}", observed=action, expected="None", remedy=remedy, urgency=urgency
    )


@relation("gpu.access", needs=("gpu.access_error",), urgency=Urgency.NOW, remedy=_RESET)
def driver_can_read_gpu(given: Given) -> Answer:
    """
    The driver can read this GPU.

    What it checks: whether nvidia-smi or NVML got an error instead of a value: "GPU requires reset", "Unknown Error",
    "ERR!", "GPU is lost".

    Why it matters: a GPU in this state fails every job that touches it, while its index and memory size may still
    look right.

    How to fix: drain, reset the GPU, else reboot; look for an Xid of this GPU in the kernel log first.

    Applies to: any GPU.

    Source: nvidia-smi documentation of error values; posts of H100 nodes with "[GPU requires reset]".
    """
    error = given["gpu.access_error"]
    if "reset" in error.lower():
        return fail(f"the GPU needs a reset before it can be used: {error}", observed=error)
    if "lost" in error.lower():
        text = f"the driver cannot read this GPU: {error}; it needs a reset or a reboot"
        return fail(text, observed=error, remedy=_LOST)
    if "unknown error" in error.lower() or error.strip() == "ERR!":
        return fail(f"the driver cannot read this GPU: {error}; it needs a reset or a reboot", observed=error)
    return warn(f"the driver failed to read a value of this GPU: {error}", observed=error, remedy=_ONE_VALUE)
