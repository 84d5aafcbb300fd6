"""
The GPU driver and what must have its version: loaded, on disk, installed, held, wanted.

Source: NVIDIA's release notes list driver, fabric manager, NSCQ and IMEX as one set; /proc/driver/nvidia/version is
what is loaded, ``modinfo`` what the next load takes. A loaded version that is not the installed one means an upgrade
that nobody finished.
"""

from __future__ import annotations

import re

from ..place import Json, Place, WriteError
from .packages import Package, installed

LOADED = "/proc/driver/nvidia/version"
_SET = re.compile(
    r"(nvidia-(?:driver|dkms|kernel-(?:source|open|common)|utils|compute-utils|fabricmanager|imex|open|headless)"
    r"|nvidia-fabric-manager|kmod-nvidia|libnvidia-(?:compute|nscq|cfg1|gl|decode|encode|extra|common)|cuda-drivers|nvlsm|libnvsdm).*"
)
_OF_ITS_OWN = re.compile(r"nvlsm.*|libnvsdm.*")
"""Belongs to the stack and has versions of its own."""
_UNITS = (
    "nvidia-dcgm.service", "dcgm.service", "nvidia-persistenced.service", "nvidia-fabricmanager.service",
    "nvidia-imex.service",
)  # fmt: skip
_FOLDERS = ("/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")


def advise(place: Place, versions: dict[str, str]) -> Json:
    """Compare versions, and say what brings them together."""
    unknown: list[str] = []
    loaded = _loaded(place)
    on_disk = _on_disk(place, unknown)
    manager, packages = _installed(place, unknown)
    stack = {name: package for name, package in sorted(packages.items()) if _SET.fullmatch(name)}
    advice = _of_the_set(loaded, on_disk, stack)
    wrong = {
        name: version for name, version in sorted(versions.items())
        if name not in packages or version not in (packages[name].version, packages[name].upstream)
    }  # fmt: skip
    advice += _upgrade(place, manager, packages, stack, wrong) if wrong else []
    loose = [name for name, package in stack.items() if not package.held]
    if loose:
        advice.append(f"not held, so the next upgrade of the system replaces it: {', '.join(loose)}")
    if loaded is None:
        unknown.append(f"{LOADED} is not there: no driver is loaded, or not the one of these packages")
    return {
        "found": {
            "loaded": loaded, "on_disk": on_disk,
            "packages": {name: {"version": one.version, "held": one.held} for name, one in stack.items()},
            "wrong": {name: {"wanted": wanted, "found": _version(packages, name)} for name, wanted in wrong.items()},
        },
        "unknown": unknown,
        "differs": bool(advice) if not unknown else (True if advice else None),
        "advice": advice,
    }  # fmt: skip


def _installed(place: Place, unknown: list[str]) -> tuple[str, dict[str, Package]]:
    try:
        return installed(place)
    except WriteError as error:
        unknown.append(f"what is installed: there is no list of dpkg, and {error}")
        return "", {}


def _version(packages: dict[str, Package], name: str) -> str | None:
    return packages[name].version if name in packages else None


def _loaded(place: Place) -> str | None:
    found = re.search(r"Kernel Module\s+(?:for \S+\s+)?(\d+(?:\.\d+)+)", place.text(LOADED) or "")
    return found[1] if found else None


def _on_disk(place: Place, unknown: list[str]) -> str | None:
    try:
        return place.run(["modinfo", "-F", "version", "nvidia"]).strip() or None
    except WriteError as error:
        unknown.append(f"which module the next load takes: {error}")
        return None


def _of_the_set(loaded: str | None, on_disk: str | None, stack: dict[str, Package]) -> list[str]:
    advice = []
    if loaded and on_disk and loaded != on_disk:
        advice.append(
            f"loaded is {loaded}, on disk is {on_disk}: drain and reboot; until then new programs may not start"
        )
    by_version: dict[str, list[str]] = {}
    for name, package in stack.items():
        if not _OF_ITS_OWN.fullmatch(name):
            by_version.setdefault(package.upstream, []).append(name)
    if len(by_version) > 1:
        told = "; ".join(f"{version}: {', '.join(names)}" for version, names in sorted(by_version.items()))
        advice.append(f"the packages are no set ({told}): install one version of all of them")
    elif by_version and on_disk and on_disk not in by_version:
        advice.append(f"the module on disk is {on_disk} and the packages are {next(iter(by_version))}: build it anew")
    return advice


def _upgrade(
    place: Place, manager: str, packages: dict[str, Package], stack: dict[str, Package], wrong: dict[str, str]
) -> list[str]:
    """Return the steps of a safe upgrade, in order, with what this node has."""
    units = [unit for unit in _UNITS if any(place.exists(f"{folder}/{unit}") for folder in _FOLDERS)]
    kernels = [path.rpartition("/")[2] for path in place.expand("/lib/modules/*")]
    held = sorted(name for name in {*wrong, *stack} if name in packages and packages[name].held)
    sign, tool = ("=", "apt-get install") if manager == "dpkg" else ("-", "dnf install")
    exact = " ".join(f"{name}{sign}{version}" for name, version in wrong.items())
    whole = any("imex" in name for name in stack)
    steps = [
        "drain the node" + (", and all nodes of its NVLink domain: the domain changes as one" if whole else ""),
        "record what is installed now: " + ", ".join(f"{name} {_version(packages, name)}" for name in wrong),
        "stop " + ", ".join(units) if units else "",
        "take the hold off " + ", ".join(held) if held else "",
        f"{tool} {exact}",
        "see that the module was built for every installed kernel: " + ", ".join(kernels) if kernels else "",
        "reboot",
        "check driver, fabric and a short load, hold the packages, and give the node back",
    ]
    told = [step for step in steps if step]
    return [f"upgrade, step {number} of {len(told)}: {step}" for number, step in enumerate(told, 1)]
