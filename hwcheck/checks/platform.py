"""What the node is: a platform with a profile, one kind of GPU, a supported system, and all of its GPUs."""

from __future__ import annotations

from hwcheck.checks.relation import Answer, Given, Some, fail, ok, relation, skip, unknown, warn
from hwcheck.findings import Remedy, Urgency

_BARE_METAL = "None"
_SHARES = (1, 2, 4)
"""Counts of GPUs that clouds and schedulers hand out of a larger board."""


@relation(
    "platform.profile",
    needs=("platform.identity",),
)
def profile_is_known(given: Given) -> Answer:
    """
    The platform is one that hwcheck has figures for.

    What it checks: whether PCI device and subsystem id, or else the product name, belong to a platform profile.

    Why it matters: memory size, bank count, clocks, link counts and measured floors differ from board to board. On an
    unknown board only what holds for every NVIDIA data-centre GPU can be judged, and that is said here.

    How to fix: nothing is wrong with the node. Post output that names the GPU (nvidia-smi -q, lspci -nn), or write a
    site layer for the board and pass it with --profile.

    Applies to: every node with GPUs.

    Source: device and product names of NVIDIA/open-gpu-kernel-modules, g_nv_name_released.h.
    """
    identity = given["platform.identity"]
    if identity["confidence"] == "none":
        return skip(f"judged as a generic NVIDIA data-centre GPU: {identity['basis']}")
    text = f"recognised as {identity['platform']} by {identity['basis']}"
    return ok(text, observed=identity["platform"])


@relation(
    "platform.gpus",
    needs=("evidence.collected", "platform.identity"),
    uses=("gpu.attached_count", "driver.no_devices", "driver.unreachable", "evidence.boot_id", "evidence.taken"),
    urgency=Urgency.NOTE,
    remedy=Remedy("hands", "If this is a GPU node: lspci -d 10de: tells whether the bus shows GPUs, dmesg why not."),
)
def gpus_were_seen(given: Given) -> Answer | None:
    """
    The node that was read shows an NVIDIA GPU.

    What it checks: whether any source of a node that hwcheck read itself names a GPU.

    Why it matters: a node that lost all GPUs, and its driver with them, has nothing left that could fail. Without this
    question it would look healthier than one that lost a single GPU.

    How to fix: see whether the bus shows GPUs, and the kernel log why not; or leave the node out: it is none.

    Applies to: live nodes and collected evidence. A posted text need not speak of GPUs; an image, which has no boot,
    cannot.

    Source: by design of this tool: could not tell is never fine.
    """
    identity = given["platform.identity"]
    if not given["evidence.collected"] or given.maybe("gpu.attached_count"):
        return None
    if given.maybe("evidence.taken") is not None and given.maybe("evidence.boot_id") is None:
        return None  # an image
    if identity["models"] or identity["confidence"] != "none":
        return None  # named by a tool, or recognised by the ids that the bus shows
    if given.maybe("driver.no_devices") or given.maybe("driver.unreachable"):
        return None  # said by the driver checks
    return unknown("no source shows an NVIDIA GPU on this node")


@relation(
    "platform.mixed",
    needs=("platform.identity",),
    urgency=Urgency.MAINTENANCE,
    remedy=Remedy(
        "hands",
        "Keep one GPU model in a node; where the mix is meant, judge the GPUs apart and expect no common baseline.",
        disturbs="node",
    ),
)
def one_gpu_model(given: Given) -> Answer | None:
    """
    All GPUs of the node are of one model.

    What it checks: that every GPU that is named belongs to the same platform or has the same product name.

    Why it matters: a collective runs at the pace of the slowest GPU, and no profile of a platform fits a mixed node.
    A single GPU of another kind in a fleet node is often a wrong spare part.

    How to fix: replace the odd GPU, or keep the node out of the pool that expects one model.

    Applies to: nodes with two or more GPUs whose model is known.

    Source: one profile a node, by design of this tool.
    """
    identity = given["platform.identity"]
    models = ", ".join(identity["models"])
    if identity["mixed"]:
        return warn(f"different GPU models in one node: {models}", observed=list(identity["models"]))
    return None


@relation(
    "platform.windows",
    needs=(Some("gpu.driver_model"),),
    urgency=Urgency.NOTE,
    remedy=Remedy("hands", "Judge the node under Linux: this tool knows no figures of the Windows driver."),
)
def not_windows(given: Given) -> Answer:
    """
    The evidence is from Linux.

    What it checks: whether the driver names a Windows driver model (WDDM, TCC or MCDM); on Linux there is none.

    Why it matters: persistence mode, fabric manager, GPUDirect RDMA and every host setting are other things on
    Windows, or do not exist there. What hwcheck says of such a node is limited to the GPU itself.

    How to fix: post evidence from Linux.

    Applies to: GPUs that report a driver model.

    Source: NVIDIA nvidia-smi documentation, driver model.
    """
    models = sorted(set(given["gpu.driver_model"].values()))
    return warn(f"Windows is no supported platform; driver model {', '.join(models)}", observed=models)


@relation(
    "platform.wsl",
    needs=("platform.wsl",),
    urgency=Urgency.NOTE,
    remedy=Remedy("hands", "Judge the node under Linux itself, not in the Windows Subsystem for Linux."),
)
def not_wsl(given: Given) -> Answer | None:
    """
    The evidence is not from the Windows Subsystem for Linux.

    What it checks: whether a command was run through wsl.

    Why it matters: WSL shows a virtual GPU device. Errors such as "no devices were found" there say nothing about the
    hardware.

    How to fix: post evidence from Linux.

    Applies to: posted shell sessions.

    Source: Microsoft documentation of GPU support in WSL.
    """
    if given["platform.wsl"]:
        return warn("taken in the Windows Subsystem for Linux, which is no supported platform", observed=True)
    return None


@relation(
    "gpu.count_matches",
    needs=("gpu.attached_count", "gpu.listed_count"),
)
def all_attached_gpus_listed(given: Given) -> Answer:
    """
    The listing describes every GPU that the driver says is attached.

    What it checks: the line "Attached GPUs" against the number of GPU blocks in the same output.

    Why it matters: where blocks are left out, nothing is known of those GPUs. People post the one block that matters;
    a short listing is an excerpt and no sign of a fault.

    How to fix: post the whole output if the other GPUs are to be judged too.

    Applies to: nvidia-smi -q in text and XML form.

    Source: nvidia-smi -q of nodes with eight GPUs, whole and shortened.
    """
    attached, listed = given["gpu.attached_count"], given["gpu.listed_count"]
    if listed == attached:
        return ok(f"all {attached} attached GPUs are in the listing", observed=listed, expected=attached)
    return skip(f"an excerpt: {listed} of {attached} attached GPUs are described", observed=listed, expected=attached)


@relation(
    "gpu.count",
    needs=("gpu.attached_count", Some("gpu.virtualization_mode")),
    uses=("evidence.collected", "platform.virtualization", "platform.container"),
    urgency=Urgency.NOW,
    remedy=Remedy(
        "act",
        "Compare with lspci -d 10de: and search the kernel log for Xid 79 and 'fallen off the bus'; reboot the node, "
        "and power-cycle or reseat the GPU that does not come back.",
        disturbs="node",
    ),
)
def board_is_complete(given: Given) -> Answer:
    """
    The driver has as many GPUs as the board carries.

    What it checks: the number of attached GPUs against the platform's: eight on an HGX board, four in a compute tray.

    Why it matters: a GPU that did not come up, or fell off the bus, is missing from every tool that counts what is
    there. Guests, containers and jobs are given 1, 2 or 4 GPUs on purpose, so these counts say nothing of them. Where
    hwcheck has read a machine itself that is neither guest nor container, half of the GPUs is a warning.

    How to fix: find the GPU that lspci shows and the driver does not; reboot, power-cycle, reseat.

    Applies to: platforms with a known count, evidence from nvidia-smi -q or NVML.

    Source: HGX and NVL72 product layout; partition sizes of the fabric manager user guide.
    """
    count, whole = given["gpu.attached_count"], given.bound("gpu.count")
    if whole is None:
        return skip(f"{count} GPUs; how many the machine should have is not known for this platform", observed=count)
    if count == whole:
        return ok(f"all {count} GPUs of the board are attached", observed=count, expected=whole)
    if count in _SHARES[1:] and count < whole and _is_machine(given):
        text = f"{count} GPUs are attached, the board carries {whole}: the others are gone, or a job was given a part"
        return warn(text, observed=count, expected=whole)
    if count in _SHARES and count < whole:
        return skip(f"{count} of {whole} GPUs: a guest, container or job may be given a part", observed=count)
    text = f"{count} GPUs are attached, the board carries {whole}"
    bare = set(given["gpu.virtualization_mode"].values()) == {_BARE_METAL}
    return (fail if bare else warn)(text, observed=count, expected=whole)


def _is_machine(given: Given) -> bool:
    """Tell whether hwcheck has read this machine itself, and it is neither guest nor container."""
    bare = given.maybe("platform.virtualization") == "none" and not given.maybe("platform.container")
    return bare and bool(given.maybe("evidence.collected"))
