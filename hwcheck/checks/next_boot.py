"""What the next boot brings: kernel, its arguments, driver."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

from hwcheck.checks.driver import half_upgrade
from hwcheck.checks.relation import Answer, Given, fail, ok, relation, skip, warn
from hwcheck.facts import Facet
from hwcheck.findings import Act, Remedy, Urgency, Write

_TUNED = (
    "iommu", "iommu.passthrough", "intel_iommu", "amd_iommu", "init_on_alloc", "numa_balancing", "pci", "pcie_aspm",
    "pcie_aspm.policy", "hugepages", "hugepagesz", "default_hugepagesz", "isolcpus", "nohz_full", "rcu_nocbs",
    "mitigations", "processor.max_cstate", "intel_idle.max_cstate", "cpufreq.default_governor", "intel_pstate",
    "amd_pstate", "transparent_hugepage", "nosmt", "crashkernel", "nouveau.modeset", "modprobe.blacklist",
)  # fmt: skip
"""Arguments whose loss changes how a GPU node behaves; others (root=, quiet, console=) differ without harm."""
_LOADER = Remedy(
    "write",
    "Put the argument back where the boot loader takes it from (GRUB_CMDLINE_LINUX and update-grub, or grubby on "
    "RHEL), before the node is rebooted.",
    role="kernel_cmdline",
    disturbs="nothing",
    worked_out="kernel_argument of each argument that would be lost = its present value (only with opt-in)",
)


def _tuned(arguments: tuple[str, ...]) -> Counter[str]:
    return Counter(word for word in arguments if word.partition("=")[0] in _TUNED)


def _kernel_file(arguments: tuple[str, ...]) -> str:
    """Return the name of the kernel file that the loader names in BOOT_IMAGE=, without its folder."""
    image = next((word for word in arguments if word.startswith("BOOT_IMAGE=")), "")
    return re.split(r"[/)=]", image)[-1]


@relation("kernel.next_arguments", needs=("kernel.cmdline",), uses=("kernel.kernels",), remedy=_LOADER)
def arguments_survive(given: Given) -> Answer:
    """
    The kernel arguments that matter are there after a reboot too.

    What it checks: arguments for IOMMU, PCI, memory, CPU and modules of the running kernel against those of the entry
    that the boot loader starts by default. Both are compared as a multiset: pci= and console= may stand several times.

    Why it matters: an argument that was given by hand at one boot, or lost when a kernel was updated, is gone after the
    next reboot, and the node comes back slower.

    How to fix: write it into the boot loader's configuration.

    Applies to: nodes that were started by the boot loader on their own disk. One that was booted over the network gets
    its arguments from the server. An argument that will be new is no fault.

    Source: Linux kernel parameters; GRUB and Boot Loader Specification.
    """
    running, following = given["kernel.cmdline"], given.maybe("kernel.cmdline", Facet.NEXT_BOOT)
    if following is None:
        return skip("no boot loader configuration in the evidence")
    known = [f"vmlinuz-{name}" for name in given.maybe("kernel.kernels") or ()]
    if _kernel_file(running) not in (_kernel_file(following), *known):
        return skip("this kernel was not started by the boot loader on this disk")
    lost, new = _tuned(running) - _tuned(following), _tuned(following) - _tuned(running)
    added = f"; new will be {' '.join(new)}" if new else ""
    if lost:
        text = f"lost at the next boot: {' '.join(lost)}{added}"
        keep = tuple(
            Write("kernel_argument", name, value, opt_in=True, keeps=True)
            for name, _, value in (word.partition("=") for word in sorted(lost.elements()))
        )
        return warn(text, observed=sorted(following), expected=sorted(lost), remedy=replace(_LOADER, writes=keep))
    if new:
        return skip(f"waits for a reboot: {' '.join(new)}", observed=sorted(new))
    return ok("the arguments that matter are the same after a reboot", observed=sorted(_tuned(running)))


@relation(
    "kernel.loader_stale",
    needs=("kernel.cmdline.wanted",),
    uses=("kernel.cmdline",),
    remedy=Remedy(
        "act",
        "Run update-grub (Debian, Ubuntu) or grub2-mkconfig, and look at the entry before rebooting.",
        role="kernel_cmdline",
        disturbs="nothing",
    ),
)
def loader_is_current(given: Given) -> Answer:
    """
    The boot loader's configuration has what /etc/default/grub asks for.

    What it checks: arguments that matter in GRUB_CMDLINE_LINUX and its drop-ins against the default entry of grub.cfg.

    Why it matters: the file has no effect by itself; a change without update-grub looks made and is not.

    How to fix: update-grub.

    Applies to: GRUB with a generated grub.cfg; where entries are files of their own (RHEL) the setting is made there.

    Source: GRUB manual, grub-mkconfig.
    """
    wanted, following = given["kernel.cmdline.wanted"], given.maybe("kernel.cmdline", Facet.NEXT_BOOT)
    if following is None:
        return skip("the default entry is not known")
    missing = _tuned(wanted) - _tuned(following)
    if missing:
        text = f"/etc/default/grub asks for {' '.join(missing)}, grub.cfg does not have it"
        return warn(text, observed=sorted(missing))
    return ok("grub.cfg has what /etc/default/grub asks for", observed=sorted(_tuned(wanted)))


@relation(
    "driver.next_boot",
    needs=("driver.module_version", "kernel.release"),
    uses=("kernel.module.files", "kernel.dkms"),
    remedy=Remedy(
        "act",
        "Build the driver for that kernel before rebooting (dkms autoinstall -k RELEASE, or install the matching "
        "linux-modules-nvidia package), or make the running kernel the default; hold kernel and driver packages.",
        role="driver_stack",
        disturbs="nothing",
    ),
)
def driver_for_next_kernel(given: Given) -> Answer:
    """
    The kernel that boots next has the driver that is loaded now.

    What it checks: the version of the nvidia module file, or of DKMS's build, for the boot loader's default kernel
    against the loaded module.

    Why it matters: a kernel update without a rebuilt module gives a node without GPUs after the next reboot; a silent
    driver upgrade changes the node then.

    How to fix: build the module for every installed kernel; hold the packages.

    Applies to: nodes with a boot loader on disk and a loaded NVIDIA module.

    Source: dkms(8), modinfo(8); NVIDIA driver installation guide.
    """
    loaded, running = given["driver.module_version"], given["kernel.release"]
    release = given.maybe("kernel.release", Facet.NEXT_BOOT)
    files = given.maybe("kernel.module.files")
    if release is None or files is None:
        return skip("which kernel boots next, or which modules are installed, is not in the evidence")
    dkms = given.maybe("kernel.dkms") or ()
    built = [one["version"] for one in dkms if one["kernel"] == release and one["module"].startswith("nvidia")]
    record = files.get(release, {}).get("nvidia")
    version = (record["version"] if record else "") or (built[-1] if built else "")
    which = "the running kernel" if release == running else f"kernel {release}"
    if version == loaded:
        return ok(f"{which} boots next and has driver {version}", observed=version, expected=loaded)
    if version:
        return warn(f"driver {loaded} is loaded, {which} boots next with {version}", observed=version, expected=loaded)
    if record is not None:
        return skip(f"{which} boots next; its module file was not read: {record['gap'] or 'it names no version'}")
    if not files.get(running, {}).get("nvidia"):
        return skip("no module file of the running kernel was found either, so a missing one says nothing")
    return fail(f"{which} boots next and has no nvidia module", observed="no module", expected=loaded)


@relation(
    "driver.libraries",
    needs=("driver.libraries", "driver.module_version"),
    uses=("driver.module_installed", "driver.fabric_manager.version"),
    urgency=Urgency.JOB_END,
    remedy=Remedy(
        "act",
        "Drain the node and reload the driver or reboot, so that module and libraries are of one version; hold the "
        "driver packages against unattended upgrades.",
        role="driver_stack",
        disturbs="node",
        acts=(Act("reload_driver", "nvidia", opt_in=True),),
    ),
)
def libraries_match_module(given: Given) -> Answer:
    """
    The driver's libraries on disk are of the loaded module's version.

    What it checks: to which files libnvidia-ml.so.1, libcuda.so.1 and the other driver libraries lead.

    Why it matters: programs that start now get libraries that the loaded module refuses; those that run go on, so the
    mismatch is seen only at the next job.

    How to fix: reload the module or reboot.

    Applies to: nodes with a loaded NVIDIA module.

    Source: NVIDIA driver release notes: module and libraries are one set.
    """
    loaded, records = given["driver.module_version"], given["driver.libraries"]
    if not records:
        return skip("no driver library carries a version in its name")
    wrong = [f"{record['name']} {record['version']}" for record in records if record["version"] != loaded]
    if not wrong:
        return ok(f"module and libraries are both {loaded}", observed=loaded, expected=loaded)
    core = any(name.startswith(("libnvidia-ml ", "libcuda ")) for name in wrong)
    text = f"module {loaded} is loaded, libraries on disk are {', '.join(wrong[:4])}"
    installed = given.maybe("driver.module_installed")
    remedy = half_upgrade(given, installed) if installed is not None else None
    return (fail if core else warn)(text, observed=wrong, expected=loaded, remedy=remedy)
