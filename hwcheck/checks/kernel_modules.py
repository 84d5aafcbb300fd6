"""Kernel modules, kernel arguments and limits."""

from __future__ import annotations

import re
from dataclasses import replace

from hwcheck.checks.pcie import in_guest
from hwcheck.checks.relation import Answer, Given, fail, ok, relation, skip, warn
from hwcheck.findings import Remedy, Urgency, Write


def absent(given: Given, module: str) -> bool:
    """Tell whether the list proves that a module is not loaded: it is complete, or its filter would show the module."""
    if module in given["kernel.modules"]:
        return False
    pattern = given.maybe("kernel.modules.filter")
    if pattern == "":
        return True
    return bool(pattern) and re.fullmatch(r"[\w-]+", pattern) is not None and pattern.replace("-", "_") in module


@relation(
    "kernel.peermem",
    needs=("kernel.modules",),
    uses=("kernel.modules.filter", "driver.module_open", "rdma.gpu_memory_error"),
    remedy=Remedy(
        "write",
        "With OFED or DOCA: modprobe nvidia_peermem, and name it in /etc/modules-load.d; without: use dma-buf "
        "(--use_cuda_dmabuf, open kernel module, kernel 5.12 or later).",
        role="gpudirect",
        disturbs="nothing",
        writes=(Write("module_load", "nvidia_peermem", "loaded"),),
    ),
)
def peermem_loaded(given: Given) -> Answer:
    """
    The NIC can register GPU memory.

    What it checks: nvidia_peermem in the list of loaded modules, beside errors of tools that needed it.

    Why it matters: without peermem or dma-buf GPUDirect RDMA stages through host memory or fails.

    How to fix: load the module, or use dma-buf.

    Applies to: nodes with RDMA. That the module is not loaded is no fault by itself: the open kernel module can do
    dma-buf. That it is loaded is no proof either.

    Source: NCCL and perftest documentation; NVIDIA GPUDirect RDMA guide.
    """
    if "nvidia_peermem" in given["kernel.modules"] or "nv_peer_mem" in given["kernel.modules"]:
        return ok("nvidia_peermem is loaded", observed=True)
    if not absent(given, "nvidia_peermem"):
        return skip("the list of modules does not tell whether nvidia_peermem is loaded")
    error = given.maybe("rdma.gpu_memory_error")
    if error:
        return fail(f"nvidia_peermem is not loaded, and GPU memory could not be registered: {error}", observed=False)
    return skip("nvidia_peermem is not loaded; it is needed only for GPUDirect RDMA without dma-buf", observed=False)


@relation(
    "kernel.nouveau",
    needs=("kernel.modules",),
    any_of=("kernel.modules", "kernel.nouveau"),
    uses=("kernel.modules.filter",),
    urgency=Urgency.JOB_END,
    remedy=Remedy(
        "write",
        "Blacklist nouveau, rebuild the initramfs and reboot.",
        disturbs="node",
        by_hand="The initramfs has to be built anew; the driver's package does both.",
    ),
)
def nouveau_absent(given: Given) -> Answer:
    """
    The nouveau driver is not loaded.

    What it checks: the list of loaded modules.

    Why it matters: nouveau takes the GPUs and keeps the NVIDIA driver out.

    How to fix: blacklist it.

    Applies to: every machine with NVIDIA GPUs.

    Source: NVIDIA driver installation guide.
    """
    if "nouveau" in given["kernel.modules"]:
        because = "kernel.nouveau" if given.maybe("kernel.nouveau") else "kernel.modules"
        return fail("nouveau is loaded", observed=True, expected=False, because=because)
    if absent(given, "nouveau"):
        return ok("nouveau is not loaded", observed=False)
    return skip("the list of modules does not tell whether nouveau is loaded")


_PASS_THROUGH = Remedy(
    "write",
    "On bare metal add iommu=pt (x86) or iommu.passthrough=1 (Arm) to the kernel arguments and reboot; a host of "
    "virtual machines keeps translation.",
    role="kernel_cmdline",
    disturbs="node",
    worked_out="kernel_argument iommu = pt (x86) or iommu.passthrough = 1 (Arm), only with opt-in",
    by_hand="Which argument it takes depends on the CPU's architecture, which is not in the evidence.",
)
_ARGUMENTS = {"x86_64": ("iommu", "pt"), "aarch64": ("iommu.passthrough", "1")}


def _pass_through(given: Given) -> Remedy:
    """Return the remedy with the argument of this architecture."""
    key, value = _ARGUMENTS.get(given.maybe("cpu.architecture") or "", ("", ""))
    if not key:
        return _PASS_THROUGH
    return replace(_PASS_THROUGH, by_hand="", writes=(Write("kernel_argument", key, value, opt_in=True),))


@relation(
    "kernel.iommu",
    any_of=("iommu.modes", "kernel.cmdline"),
    uses=("platform.virtualization", "cpu.architecture"),
    remedy=_PASS_THROUGH,
)
def iommu_passthrough(given: Given) -> Answer:
    """
    The IOMMU passes DMA of GPUs, adapters and drives through.

    What it checks: the mode of their IOMMU groups, the effective answer: identity, or no IOMMU. Where the evidence has
    only the kernel arguments: intel_iommu=on or amd_iommu=on without iommu=pt or iommu.passthrough=1.

    Why it matters: translated DMA costs throughput and makes the kernel turn ACS redirect on.

    How to fix: iommu=pt, or take the argument that switched it on away.

    Applies to: bare metal. An argument is only a request: with other drivers or firmware the groups tell otherwise.

    Source: Linux kernel parameters, Documentation/ABI/testing/sysfs-kernel-iommu_groups; NVIDIA H100 TuneD profile.
    """
    modes = given.maybe("iommu.modes")
    if modes is not None:
        return _iommu_modes(given, modes)
    arguments = given.maybe("kernel.cmdline") or ()
    if any(word in ("iommu=pt", "iommu.passthrough=1", "intel_iommu=on,pt") for word in arguments):
        return ok("the IOMMU is asked to pass through", observed="pt")
    asked = [word for word in arguments if word in ("intel_iommu=on", "amd_iommu=on", "iommu=force")]
    if not asked:
        return skip("no kernel argument sets the IOMMU's mode")
    if in_guest(given):
        return skip(f"{asked[0]} in a virtual machine: what its platform gives")
    return warn(
        f"{asked[0]} without iommu=pt: DMA is translated",
        observed=asked[0],
        expected="iommu=pt",
        remedy=_pass_through(given),
    )


def _iommu_modes(given: Given, modes: tuple[str, ...]) -> Answer:
    translated = [mode for mode in modes if mode.startswith("DMA")]
    text = f"IOMMU groups are of mode {', '.join(modes)}" if modes else "no IOMMU is on"
    if not translated:
        return ok(f"{text}: DMA is not translated", observed=list(modes))
    if in_guest(given):
        return skip(f"{text} in a virtual machine: what its platform gives", observed=list(modes))
    remedy = _pass_through(given)
    return warn(f"{text}: DMA is translated", observed=list(modes), expected=["identity"], remedy=remedy)


@relation(
    "kernel.pcie_aspm",
    needs=("kernel.cmdline",),
    remedy=Remedy(
        "write",
        "Remove pcie_aspm=force; use pcie_aspm.policy=performance.",
        role="pcie_aspm",
        disturbs="node",
        by_hand="The argument stands where somebody else wrote it; hwcheck takes away only what it wrote.",
    ),
)
def aspm_argument(given: Given) -> Answer:
    """
    ASPM is not forced by a kernel argument.

    What it checks: pcie_aspm=force, which overrides the firmware's refusal.

    Why it matters: it can hang machines.

    How to fix: remove it.

    Applies to: every machine. pcie_aspm=off is mentioned: it leaves links as the firmware set them, ASPM on included.

    Source: Linux kernel parameters; Linux drivers/pci/pcie/aspm.c.
    """
    arguments = given["kernel.cmdline"]
    if "pcie_aspm=force" in arguments:
        return warn("pcie_aspm=force overrides the firmware and can hang the machine", observed="force")
    if "pcie_aspm=off" in arguments:
        return skip("pcie_aspm=off leaves ASPM as the firmware set it: only LnkCtl tells whether it is off")
    return skip("no kernel argument forces ASPM")


@relation(
    "limits.memlock",
    needs=("limits.memlock",),
    uses=("kernel.modules",),
    remedy=Remedy(
        "write",
        "Set memlock to unlimited in /etc/security/limits.d and LimitMEMLOCK=infinity in the units of slurmd and the "
        "container runtime; restart them on the drained node.",
        role="memlock",
        disturbs="nothing",
        writes=(Write("limits", "* memlock", "unlimited", indirect=True),),
    ),
)
def memlock_unlimited(given: Given) -> Answer:
    """
    Processes may lock as much memory as they need.

    What it checks: the locked-memory limit of the shell or process in the evidence.

    Why it matters: RDMA registration pins memory; a low limit makes ibv_reg_mr and queue-pair creation fail.

    How to fix: limits.d for logins, unit drop-ins for services; services do not read limits.d.

    Applies to: nodes with RDMA: a fault where the evidence shows RDMA modules, else a warning.

    Source: NCCL troubleshooting guide; published node configurations of clouds (unlimited).
    """
    value = given["limits.memlock"]
    if value == "unlimited":
        return ok("locked memory is unlimited", observed=value)
    rdma = any(module in ("mlx5_ib", "ib_uverbs") for module in given.maybe("kernel.modules") or ())
    judge = fail if rdma else warn
    return judge(f"locked memory is limited to {value} KiB", observed=f"{value} KiB", expected="unlimited")
