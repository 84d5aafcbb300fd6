"""
Which platform is this node?

PCI device and subsystem id decide; a name alone is weaker (``NVIDIA H200`` is never NVL, ``NVIDIA Graphics Device`` is
any board newer than its driver), and is compared whole: GH200 is no H200. Where memory total or the sum of remap banks
is in the evidence too, it must agree. Every identity says its confidence.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hwcheck.facts import NODE, Snapshot, Subject

GENERIC = "base"
PLACEHOLDER = "NVIDIA Graphics Device"


@dataclass(frozen=True, slots=True)
class Identity:
    """
    Attributes:
        platform: profile name; ``base`` when no platform is recognised or GPUs differ.
        confidence: ``pci-id``; ``name`` (product name, and no contradiction); ``hint`` (name in a measurement);
            ``none``.
        basis: one sentence: from what.
        models: product names seen.
        mixed: GPUs of different platforms or models in one node.
        contradictions: GPU and figure that do not fit the platform, one sentence each.
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
    models: list[str] = []
    for gpu in snapshot.subjects("gpu"):
        name = snapshot.value("gpu.name", gpu)
        if name and name not in models:
            models.append(name)
        platform, how = _of_gpu(snapshot, gpu, platforms)
        if how or name:
            found.setdefault(platform, set()).add(how or "none")
    for name in _measured_names(snapshot):
        if name not in models:
            models.append(name)
        if not found:
            platform = _by_name(name, platforms)
            if platform:
                found.setdefault(platform, set()).add("hint")
    known = tuple(models)
    real = [model for model in models if model != PLACEHOLDER]
    if len(found) > 1 or len(real) > 1:
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
    device, subsystem = snapshot.value("gpu.pci.device_id", gpu), snapshot.value("gpu.pci.subsystem_id", gpu)
    if device:
        for name, match in platforms.items():
            ids = match.get("pci") or ()
            if (f"{device}/{subsystem}" in ids if subsystem else any(i.startswith(device) for i in ids)) or device in ids:
                return name, "pci-id"
    product = snapshot.value("gpu.name", gpu)
    platform = _by_name(product, platforms) if product else ""
    if not platform:
        return GENERIC, ""
    return platform, "name"


def _by_name(product: str, platforms: dict[str, dict[str, Any]]) -> str:
    wanted = product.strip().lower()
    bare = wanted.removeprefix("nvidia ")
    for name, match in platforms.items():
        if any(candidate.lower().removeprefix("nvidia ") == bare for candidate in match.get("names") or ()):
            return name
    return ""
