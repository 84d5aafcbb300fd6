"""The driver set: one version everywhere."""

from __future__ import annotations

from dataclasses import replace

from hwcheck.checks.relation import Answer, Given, fail, ok, relation, skip, warn
from hwcheck.findings import Act, Remedy, Urgency, Write

_NO_MANAGER = ("h100-pcie", "h100-nvl", "h200-nvl", "gh200", "gh200-144g", "gb200", "gb300")
"""Platforms whose nodes run no fabric manager: bridged or single cards, and trays whose switch trays run it."""
_SOURCES = (
    "driver.fabric_manager.wanted", "driver.module_version", "driver.version", "driver.module_installed",
    "driver.package_version",
)  # fmt: skip
"""Where the driver's version may stand, most direct first: what runs before what is installed."""


def _driver_version(given: Given) -> str:
    return next((version for version in map(given.maybe, _SOURCES) if version), "")


def same_version(one: str, other: str) -> bool:
    """Compare two versions; a shortened one (IMEX prints 570.172 of 570.172.08) fits as far as it goes."""
    first, second = one.split("."), other.split(".")
    short = min(len(first), len(second))
    return short > 1 and first[:short] == second[:short] and (first == second or short == 2)


@relation(
    "driver.fabric_manager",
    needs=("driver.fabric_manager.version",),
    uses=_SOURCES,
    urgency=Urgency.NOW,
    remedy=Remedy(
        "act",
        "Install nvidia-fabricmanager of exactly the driver's version (the full versions must match), both from one "
        "package source, and hold them together; then reboot, or reload the driver and start nvidia-fabricmanager.",
        role="driver_set",
        disturbs="board",
    ),
)
def fabric_manager_matches_driver(given: Given) -> Answer:
    """
    Fabric manager and driver are of one version.

    What it checks: the full versions; one branch is not enough.

    Why it matters: the fabric manager refuses any other driver; without it CUDA fails with error 802 on NVSwitch
    machines.

    How to fix: both packages from one source, at one version, held.

    Applies to: HGX and DGX boards with NVSwitch. PCIe cards, GH200 and GB200 / GB300 trays run no fabric manager.

    Source: NVIDIA fabric manager user guide.
    """
    manager, driver = given["driver.fabric_manager.version"], _driver_version(given)
    if given.platform in _NO_MANAGER:
        return skip(f"nodes of platform {given.platform} run no fabric manager")
    if not driver:
        return skip(f"fabric manager is {manager}; the driver's version is not known")
    if manager == driver:
        return ok(f"fabric manager and driver are both {driver}", observed=manager, expected=driver)
    return fail(f"fabric manager is {manager}, the driver {driver}", observed=manager, expected=driver)


@relation(
    "driver.imex",
    needs=("driver.imex.version",),
    uses=(*_SOURCES, "imex.nodes"),
    remedy=Remedy(
        "act",
        "Install nvidia-imex of exactly the driver's version on every node of the NVLink domain, rack drained.",
        role="driver_set",
        disturbs="board",
    ),
)
def imex_matches_driver(given: Given) -> Answer:
    """
    IMEX and driver are of one version.

    What it checks: the version of nvidia-imex against the driver's.

    Why it matters: nodes of different versions do not talk (``!V!`` in nvidia-imex-ctl -N).

    How to fix: one version on the whole rack.

    Applies to: GB200 and GB300 racks. A single HGX board needs no IMEX.

    Source: NVIDIA IMEX service guide.
    """
    imex, driver = given["driver.imex.version"], _driver_version(given)
    if not given.platform.startswith(("gb200", "gb300")) and not given.maybe("imex.nodes"):
        return skip("IMEX is needed only in a multi-node NVLink domain")
    if not driver:
        return skip(f"IMEX is {imex}; the driver's version is not known")
    if same_version(imex, driver):
        return ok(f"IMEX and driver are both {driver}", observed=imex, expected=driver)
    return fail(f"IMEX is {imex}, the driver {driver}", observed=imex, expected=driver)


@relation(
    "driver.library",
    needs=("driver.nvml_mismatch",),
    uses=("driver.library_version", "driver.module_version", "driver.api_mismatch"),
    urgency=Urgency.JOB_END,
    remedy=Remedy(
        "act",
        "Drain the node, stop what holds the driver (persistenced, DCGM, containers), unload and reload nvidia_uvm, "
        "nvidia_drm, nvidia_modeset and nvidia (rmmod, modprobe), or reboot; hold the driver packages against "
        "unattended upgrades.",
        disturbs="node",
        acts=(Act("reload_driver", "nvidia", opt_in=True),),
    ),
)
def library_matches_module(given: Given) -> Answer:
    """
    User-space libraries and the loaded kernel module are of one version.

    What it checks: NVML's own message that they differ; the kernel log's line beside it tells the two versions.

    Why it matters: no tool and no new job can open a GPU, while the GPUs themselves are fine.

    How to fix: reload the module or reboot: the new version is installed, the old one still loaded.

    Applies to: every machine.

    Source: NVML return code NVML_ERROR_LIB_RM_VERSION_MISMATCH.
    """
    logged = given.maybe("driver.api_mismatch") or {}  # the kernel log names both versions, NVML at most its own
    library = given.maybe("driver.library_version") or logged.get("client")
    module = given.maybe("driver.module_version") or logged.get("module")
    detail = f": libraries {library}" if library else ""
    detail += f", module {module}" if module else ""
    return fail(
        f"driver library and kernel module are of different versions{detail}", observed=library, expected=module
    )


HALF_UPGRADE = Remedy(
    "hands",
    "Install modules, libraries and fabric manager of one version, then reload the driver or reboot: a reload now "
    "would load a module that the libraries refuse.",
    role="driver_stack",
    disturbs="node",
)
"""What is installed is of two versions: the package manager stopped half-way, or a hold did."""


def half_upgrade(given: Given, installed: str) -> Remedy | None:
    """Return what to do where libraries or fabric manager are of another version than the module on disk."""
    records = given.maybe("driver.libraries") or ()
    others = {f"libraries {record['version']}" for record in records if record["version"] != installed}
    manager = given.maybe("driver.fabric_manager.version")
    if manager is not None and manager != installed:
        others.add(f"fabric manager {manager}")
    if not others:
        return None
    return replace(
        HALF_UPGRADE, text=f"{HALF_UPGRADE.text} Installed: module {installed}, {', '.join(sorted(others))}."
    )


@relation(
    "driver.next_load",
    needs=("driver.module_version",),
    any_of=("driver.module_installed", "driver.package_version"),
    uses=("driver.libraries", "driver.fabric_manager.version"),
    remedy=Remedy(
        "act",
        "Drain the node and reload the driver or reboot, so that the loaded version is the installed one.",
        disturbs="node",
        acts=(Act("reload_driver", "nvidia", opt_in=True),),
    ),
)
def loaded_is_installed(given: Given) -> Answer:
    """
    The loaded driver is the installed one.

    What it checks: the version of the loaded module against the module file and the package.

    Why it matters: a silent upgrade works until the next library call or reboot, then the node changes under a job.

    How to fix: finish the upgrade on a drained node, hold the packages.

    Applies to: every machine where both are in the evidence.

    Source: Linux /sys/module and modinfo.
    """
    loaded = given["driver.module_version"]
    installed = given.maybe("driver.module_installed") or given.maybe("driver.package_version")
    if loaded == installed:
        return ok(f"driver {loaded} is loaded and installed", observed=loaded, expected=installed)
    text = f"driver {loaded} is loaded, {installed} is installed"
    return warn(text, observed=loaded, expected=installed, remedy=half_upgrade(given, installed))


_HOLD = Remedy(
    "write",
    "Hold the packages (apt-mark hold, dnf versionlock), and take the holds off for an upgrade of the whole set.",
    role="driver_stack",
    disturbs="nothing",
    worked_out="package_hold of each driver package that is not held = held",
)


@relation("driver.held", needs=("driver.packages", "driver.packages_held"), remedy=_HOLD)
def driver_packages_are_held(given: Given) -> Answer:
    """
    No upgrade changes a part of the driver set by itself.

    What it checks: that the installed packages of the driver set are held, where the site wants it (bound driver.hold).

    Why it matters: an unattended upgrade of one part leaves libraries and loaded module of different versions, and no
    new job can open a GPU.

    How to fix: hold the packages of the set.

    Applies to: nodes with packages of the driver set. Sites that pin versions by their package source need no holds:
    without a wish it is only told.

    Source: node configurations of Google and Azure, which hold driver, fabric manager and IMEX together.
    """
    names, held = sorted({package["name"] for package in given["driver.packages"]}), given["driver.packages_held"]
    loose = [name for name in names if name not in held]
    if not loose:
        return ok(f"all {len(names)} packages of the driver set are held", observed=len(names))
    text = f"{len(loose)} of {len(names)} packages of the driver set are not held: {', '.join(loose[:6])}"
    if given.bound("driver.hold") is not True:
        return skip(f"{text}; the site does not ask for it", observed=len(loose))
    remedy = replace(_HOLD, writes=tuple(Write("package_hold", name, "held") for name in loose))
    return warn(text, observed=len(loose), expected=0, remedy=remedy)
