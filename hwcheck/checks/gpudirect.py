"""GPUDirect RDMA as perftest saw it: can the NIC register GPU memory?"""

from __future__ import annotations

from hwcheck.checks.relation import Answer, Given, fail, relation
from hwcheck.findings import Remedy, Urgency

_PEERMEM = Remedy(
    "act",
    "With OFED or DOCA: modprobe nvidia_peermem, and name it in /etc/modules-load.d. With the open GPU kernel module "
    "and kernel 5.12 or later use dma-buf instead: ib_write_bw --use_cuda=N --use_cuda_dmabuf; NCCL takes it by "
    "itself. Then run the test again.",
    disturbs="nothing",
)


@relation(
    "rdma.gpu_memory_registration",
    needs=("rdma.gpu_memory_error",),
    uses=("kernel.modules", "kernel.modules.filter"),
    urgency=Urgency.NOW,
    remedy=_PEERMEM,
)
def gpu_memory_registers(given: Given) -> Answer:
    """
    The NIC can register GPU memory.

    What it checks: whether perftest with GPU buffers (``--use_cuda``) could allocate its memory region.

    Why it matters: without it there is no GPUDirect RDMA; NCCL then copies every message through host memory.

    How to fix: load nvidia_peermem (needs OFED's ib_core), or use dma-buf (open GPU kernel module, kernel 5.12 or
    later).

    Applies to: runs with GPU memory. Error 14 is EFAULT, a bad address: no limit of locked memory, whose words are
    "Cannot allocate memory". That the module is not loaded is no fault on a node that uses dma-buf.

    Source: linux-rdma/perftest issues 126, 269, 280, 346; NVIDIA GPUDirect RDMA guide; NCCL documentation.
    """
    error = given["rdma.gpu_memory_error"]
    dmabuf = "with --use_cuda_dmabuf" in error and "without" not in error
    if dmabuf:
        cause = "driver or kernel offer no dma-buf here; nvidia_peermem is the other way"
        text = f"perftest could not register GPU memory ({error}): {cause}"
        return fail(text, observed=error)
    loaded = _loaded(given.maybe("kernel.modules"), given.maybe("kernel.modules.filter") or "")
    cause = {
        True: "nvidia_peermem is loaded but has no effect, as with an in-box ib_core; use dma-buf",
        False: "nvidia_peermem is not loaded, and dma-buf was not asked for",
        None: "nvidia_peermem is not loaded or has no effect, and dma-buf was not asked for",
    }[loaded]
    return fail(f"perftest could not register GPU memory ({error}): {cause}", observed=error)


def _loaded(modules: tuple[str, ...] | None, pattern: str) -> bool | None:
    """Tell whether the module is loaded; None when the list does not say."""
    if modules is None:
        return None
    if {"nvidia_peermem", "nv_peer_mem"} & set(modules):
        return True
    return False if pattern in "nvidia_peermem" else None
