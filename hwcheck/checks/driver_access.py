"""Whether tools and containers reach the driver and its GPUs."""

from __future__ import annotations

from hwcheck.checks.relation import Answer, Given, fail, ok, relation, skip, warn
from hwcheck.findings import Act, Remedy, Urgency

_WINDOWS = "read in WSL on Windows, which is no supported platform: a GPU in TCC mode makes NVML there fail for all"


@relation(
    "driver.loaded",
    needs=("driver.unreachable",),
    uses=("platform.wsl",),
    urgency=Urgency.NOW,
    remedy=Remedy(
        "act",
        "Load the driver: modprobe nvidia, and read dmesg for why it refuses; after a kernel update rebuild the module "
        "(dkms autoinstall) and reboot. In a container that lost its devices, start the container anew.",
        disturbs="node",
        acts=(Act("reload_driver", "nvidia", opt_in=True),),
    ),
)
def driver_loaded(given: Given) -> Answer:
    """
    The NVIDIA kernel driver answers.

    What it checks: nvidia-smi's message that it cannot talk to the driver.

    Why it matters: no GPU can be used.

    How to fix: load or rebuild the module.

    Applies to: Linux; Windows and WSL are not judged.

    Source: nvidia-smi.
    """
    if given.maybe("platform.wsl"):
        return skip(_WINDOWS)
    words = given["driver.unreachable"]
    return fail(f"the NVIDIA driver does not answer: {words}", observed=words)


@relation(
    "driver.devices",
    needs=("driver.no_devices",),
    uses=("platform.wsl",),
    urgency=Urgency.NOW,
    remedy=Remedy(
        "hands",
        "Look whether lspci shows the GPUs and what dmesg says of NVRM; on the bus but not in the driver: reload it, "
        "or fix the device permissions; not on the bus: power cycle, then reseat.",
        disturbs="node",
    ),
)
def devices_found(given: Given) -> Answer:
    """
    The driver shows GPUs.

    What it checks: nvidia-smi's message that there are none.

    Why it matters: the node has no usable GPU, whatever lspci shows.

    How to fix: bus first, then driver, then permissions or container.

    Applies to: Linux; Windows and WSL are not judged.

    Source: nvidia-smi.
    """
    if given.maybe("platform.wsl"):
        return skip(_WINDOWS)
    return fail("the driver shows no GPU (No devices were found)", observed=given["driver.no_devices"])


@relation(
    "driver.device_handle",
    needs=("gpu.handle_error",),
    uses=("platform.wsl",),
    urgency=Urgency.NOW,
    remedy=Remedy(
        "act",
        "Drain the node, read dmesg for the Xid of this GPU, and reboot; if it comes back, power cycle, then reseat or "
        "replace the GPU.",
        disturbs="node",
        acts=(Act("reboot", opt_in=True),),
    ),
)
def device_opens(given: Given) -> Answer:
    """
    NVML can open every GPU.

    What it checks: the message that NVML gets no handle for a GPU, with its reason.

    Why it matters: the GPU is lost to every program; tools then often fail for the other GPUs too.

    How to fix: the Xid tells; a lost GPU needs a reboot or power cycle.

    Applies to: Linux. In WSL a GPU in TCC mode gives the same words and is no fault.

    Source: NVML return codes NVML_ERROR_GPU_IS_LOST and NVML_ERROR_UNKNOWN.
    """
    if given.maybe("platform.wsl"):
        return skip(_WINDOWS)
    reason = given["gpu.handle_error"]
    return fail(f"NVML cannot open this GPU: {reason}", observed=reason)


@relation(
    "driver.container",
    needs=("driver.container_error",),
    uses=("driver.nvml_mismatch",),
    remedy=Remedy(
        "act",
        "Run nvidia-smi on the host first; when it works, reinstall the container toolkit and the driver's libraries "
        "of the loaded version, and restart the container runtime.",
        disturbs="nothing",
    ),
)
def container_runtime(given: Given) -> Answer:
    """
    Containers can be given GPUs.

    What it checks: the error of nvidia-container-cli, which the container runtime passes on.

    Why it matters: no container with GPUs starts.

    How to fix: the driver on the host first; then toolkit and libraries.

    Applies to: nodes that run containers. An image that wants a newer driver is the image's matter, so a warning.

    Source: libnvidia-container.
    """
    text = given["driver.container_error"]
    if given.maybe("driver.nvml_mismatch"):
        return skip("follows from the version mismatch of library and kernel module")
    if "requirement error" in text:
        return warn(f"an image wants another driver: {text}", observed=text)
    return fail(f"containers get no GPU: {text}", observed=text)


@relation(
    "driver.bound",
    needs=("pci.driver",),
    uses=("pci.name", "pci.class"),
    remedy=Remedy(
        "write",
        "Blacklist nouveau, rebuild the initramfs, reboot, and load the NVIDIA driver.",
        disturbs="node",
        by_hand="The initramfs has to be built anew; the driver's package does both.",
    ),
)
def bound_driver(given: Given) -> Answer | None:
    """
    GPUs are bound to the NVIDIA driver.

    What it checks: "Kernel driver in use" of NVIDIA display functions.

    Why it matters: nouveau cannot run CUDA and keeps the NVIDIA driver out.

    How to fix: blacklist nouveau.

    Applies to: GPUs of the machine itself; one that is bound to vfio-pci belongs to a virtual machine.

    Source: Linux driver binding; NVIDIA driver installation guide.
    """
    name, driver = given.maybe("pci.name") or "", given["pci.driver"]
    if "NVIDIA" not in name or given.maybe("pci.class") not in ("3D controller", "VGA compatible controller"):
        return None
    if driver == "nvidia":
        return ok("bound to the nvidia driver", observed=driver)
    if driver == "nouveau":
        return fail(f"{name} is bound to nouveau", observed=driver, expected="nvidia")
    return skip(f"bound to {driver}: not for the machine itself")
