"""
Which platform is this node?

PCI device and subsystem id decide; a name alone is weaker (``NVIDIA H200`` is never NVL, ``NVIDIA Graphics Device`` is
any board newer than its driver), and is compared whole: GH200 is no H200. Figures that contradict the platform are
findings of hbm.total and hbm.banks, not of this module. Every identity says its confidence.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hwcheck.facts import NODE, Snapshot, Subject, bare_name

GENERIC = "base"
PLACEHOLDER = "NVIDIA Graphics Device"


@dataclass(frozen=True, slots=True)
class Identity:
    """
    The platform of a node, and how sure we are of it.

    Attributes:
        platform: profile name; ``base`` when no platform is recognised or GPUs differ.
        confidence: ``pci-id``; ``name`` (product name, and no contradiction); ``hint`` (name in a measurement);
            ``none``.
        basis: one sentence: from what.
        models: product names seen.
        mixed: GPUs of different platforms or models in one node.
    """

    platform: str
    confidence: str
    basis: str
    models: tuple[str, ...] = ()
    mixed: bool = False


def identify(snapshot: Snapshot, platforms: dict[str, dict[str, Any]]) -> Identity:
    """
    Recognise the platform of a snapshot.

    Args:
        snapshot: facts of one node.
        platforms: platform name → match rules of its profile.
    """
    found: dict[str, set[str]] = {}
    models: dict[str, str] = {}
    for gpu in snapshot.subjects("gpu"):
        name = snapshot.value("gpu.name", gpu)
        if name:
            models.setdefault(bare_name(name), name)
        platform, how = _of_gpu(snapshot, gpu, platforms)
        if how or (name and name != PLACEHOLDER):
            found.setdefault(platform, set()).add(how or "none")
    hints = not found
    for name in _measured_names(snapshot):
        models.setdefault(bare_name(name), name)
        if hints:
            platform = _by_name(name, platforms)
            found.setdefault(platform or GENERIC, set()).add("hint" if platform else "none")
    known = tuple(models.values())
    real = [name for name in known if name != PLACEHOLDER]
    # Two spellings of one product (GH200 480GB, NVIDIA GH200 480GB) are one model: platforms are compared, and names
    # only where no platform is known for them.
    if len(found) > 1 or (GENERIC in found and len(real) > 1):
        return Identity(GENERIC, "none", f"different GPU models in one node: {', '.join(known)}", known, mixed=True)
    if not found or GENERIC in found:
        basis = f"no platform profile for {known[0]}" if known else "the evidence does not name the GPU model"
        return Identity(GENERIC, "none", basis, known)
    ((platform, hows),) = found.items()
    confidence = next(how for how in ("pci-id", "name", "hint") if how in hows)
    basis = {
        "pci-id": "PCI device and subsystem id",
        "name": f"product name {known[0] if known else ''}",
        "hint": f"the name {known[0] if known else ''} in a measurement",
    }[confidence]
    return Identity(platform, confidence, basis, known)


def _measured_names(snapshot: Snapshot) -> Iterable[str]:
    names = snapshot.value("platform.gpu_names", NODE)
    return names or ()


def _of_gpu(snapshot: Snapshot, gpu: Subject, platforms: dict[str, dict[str, Any]]) -> tuple[str, str]:
    """Recognise one GPU; a device id alone (lspci without subsystem) yields to a name that says more."""
    device, subsystem = snapshot.value("gpu.pci.device_id", gpu), snapshot.value("gpu.pci.subsystem_id", gpu)
    product = snapshot.value("gpu.name", gpu)
    by_name = _by_name(product, platforms) if product else ""
    if device and subsystem:
        for name, match in platforms.items():
            if f"{device}/{subsystem}" in (match.get("pci") or ()):
                return name, "pci-id"
    if by_name:
        return by_name, "name"
    if device and not subsystem and product in (None, PLACEHOLDER):
        several = [
            n for n, match in platforms.items() if any(i.startswith(f"{device}/") for i in match.get("pci") or ())
        ]
        if len(several) == 1:
            return several[0], "pci-id"
    return GENERIC, ""


def _by_name(product: str, platforms: dict[str, dict[str, Any]]) -> str:
    wanted = bare_name(product)
    for name, match in platforms.items():
        if any(bare_name(candidate) == wanted for candidate in match.get("names") or ()):
            return name
    return ""
