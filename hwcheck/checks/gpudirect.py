"""GPUDirect RDMA: can the NIC register GPU memory, as perftest saw it; and is there a way at all?"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from hwcheck.checks.relation import Answer, Given, Some, fail, ok, relation, skip, warn
from hwcheck.findings import Remedy, Urgency, Write

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


_WAY = Remedy(
    "write",
    "Use the open GPU kernel module with kernel 5.12 or later (dma-buf, NCCL takes it by itself); or install "
    "DOCA-OFED, reinstall the GPU driver after it, load nvidia_peermem and name it in /etc/modules-load.d.",
    role="gpudirect",
    disturbs="nothing",
    worked_out="module_load nvidia_peermem = loaded, where the RDMA stack takes it",
    by_hand="Both ways need other packages: the open kernel module, or DOCA-OFED under the GPU driver.",
)
_DMABUF = (5, 12)
"""First kernel whose RDMA core takes dma-buf memory."""


@relation(
    "rdma.gpudirect",
    needs=("driver.module_open", Some("rdma.port.state")),
    uses=(
        "kernel.release", "kernel.module.versions", "gpudirect.peermem", "gpudirect.clients", "gpudirect.peer_client",
        "gpu.attached_count",
    ),
    urgency=Urgency.JOB_END,
    remedy=_WAY,
)  # fmt: skip
def there_is_a_way(given: Given) -> Answer:
    """
    There is a way from the network adapter to GPU memory.

    What it checks: dma-buf (open GPU kernel module, kernel 5.12 or later), or nvidia_peermem loaded on an RDMA stack
    that takes it (DOCA or OFED). Neither alone is needed, and that a module is not loaded is no fault by itself.

    Why it matters: without a way every message goes through host memory, at a fraction of the rate.

    How to fix: the open module and a current kernel; or nvidia_peermem on OFED.

    Applies to: nodes with Active RDMA ports: a fault where there are as many as GPUs, else a warning. It proves that
    the way is there, not its rate: ib_write_bw --use_cuda does.

    Source: NVIDIA GPUDirect RDMA guide; NCCL documentation and issue 1939 (loaded, yet without effect).
    """
    active = sum(state == "Active" for state in given["rdma.port.state"].values())
    if not active:
        return skip("no RDMA port is Active")
    release, module_open = given.maybe("kernel.release") or "", given["driver.module_open"]
    dmabuf = _dmabuf(release)
    if module_open and dmabuf:
        return ok(f"GPU memory goes by dma-buf: open GPU module, kernel {release}", observed="dma-buf")
    if given.maybe("gpudirect.clients"):
        clients = ", ".join(given.maybe("gpudirect.clients"))
        return ok(f"GPU memory goes by the peer memory client {clients}", observed=clients)
    peermem, takes = _peermem(given)
    if peermem and takes:
        return ok(f"GPU memory goes by nvidia_peermem {peermem} on OFED's ib_core", observed="peermem")
    if peermem and takes is None:
        return skip("nvidia_peermem is loaded; whether this RDMA stack takes it is not told", observed="peermem")
    if dmabuf is None and module_open:
        return skip(f"whether kernel {release or '(unknown)'} offers dma-buf for RDMA is not told")
    module = "is loaded but has no effect with an in-box ib_core" if peermem else "is not loaded"
    no_dmabuf = (
        "the GPU kernel module is not the open one" if not module_open else f"kernel {release} is older than 5.12"
    )
    text = f"no way for GPUDirect RDMA: nvidia_peermem {module}, and no dma-buf, for {no_dmabuf}"
    gpus = given.maybe("gpu.attached_count")
    remedy = _WAY
    if takes and not peermem:
        remedy = replace(_WAY, by_hand="", writes=(Write("module_load", "nvidia_peermem", "loaded"),))
    judge = fail if gpus and active >= gpus else warn
    return judge(text, observed="none", expected="dma-buf or nvidia_peermem", remedy=remedy)


def _dmabuf(release: str) -> bool | None:
    """Tell whether a kernel offers dma-buf to RDMA; an older one of Red Hat may have it ported back."""
    match = re.match(r"(\d{1,3})\.(\d{1,3})", release)
    if match is None:
        return None
    if (int(match[1]), int(match[2])) >= _DMABUF:
        return True
    return None if ".el" in release else False


def _peermem(given: Given) -> tuple[str, bool | None]:
    """Return the version of the loaded module, "" where it is not, and whether the RDMA stack takes it."""
    versions: dict[str, Any] = given.maybe("kernel.module.versions") or {}
    loaded = given.maybe("gpudirect.peermem") or ""
    for name in ("nvidia_peermem", "nv_peer_mem"):
        if not loaded and name in versions:
            loaded = versions[name].get("version") or "(no version)"
    takes = given.maybe("gpudirect.peer_client")
    if takes is None and "mlx5_core" in versions:  # only builds of OFED carry a version
        takes = bool(versions["mlx5_core"].get("version"))
    return loaded, takes
