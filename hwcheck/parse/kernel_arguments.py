"""Kernel arguments: split as the kernel does, and the few that are facts of their own."""

from __future__ import annotations

import re

from hwcheck.facts import NODE, Facet
from hwcheck.parse.sink import FactSink

_ARGUMENT = re.compile(r"(?:[^\s\"]|\"[^\"]*\")+")
_ON = {"1": "pt", "y": "pt", "yes": "pt", "on": "pt", "0": "off", "n": "off", "no": "off", "off": "off"}
ARGUMENTS = ("kernel.cmdline", "kernel.arg.*")


def split(text: str) -> tuple[str, ...]:
    """Split a command line; a value in double quotes keeps its blanks."""
    return tuple(_ARGUMENT.findall(text))


def put_arguments(facts: FactSink, arguments: tuple[str, ...], line: int, facet: Facet = Facet.RUNNING) -> None:
    """Put the arguments and the facts drawn from them; an argument that is not given is ``default``."""
    kernel = arguments[: arguments.index("--")] if "--" in arguments else arguments  # what follows is for init
    facts.put(NODE, "kernel.cmdline", arguments, line, facet)
    for name in ("init_on_alloc", "numa_balancing", "isolcpus"):
        facts.put(NODE, f"kernel.arg.{name}", _last(kernel, name), line, facet)
    for name, keys in (
        ("hugepages", ("hugepagesz", "hugepages", "default_hugepagesz")),
        ("pcie_aspm", ("pcie_aspm", "pcie_aspm.policy")),
        ("pci", ("pci",)),
    ):
        facts.put(NODE, f"kernel.arg.{name}", _all(kernel, keys), line, facet)
    facts.put(NODE, "kernel.arg.iommu", _iommu(kernel), line, facet)


def _last(arguments: tuple[str, ...], name: str) -> str:
    values = [word.partition("=")[2] for word in arguments if word.startswith(f"{name}=")]
    return values[-1][:200] if values else "default"


def _all(arguments: tuple[str, ...], keys: tuple[str, ...]) -> str:
    return " ".join(word for word in arguments if word.partition("=")[0] in keys)[:400] or "default"


def _iommu(arguments: tuple[str, ...]) -> str:
    """Say what is asked for: ``pt`` however it is spelled, else the words as they stand."""
    passthrough = _last(arguments, "iommu.passthrough")
    if "pt" in _last(arguments, "iommu").split(",") or "pt" in _last(arguments, "intel_iommu").split(","):
        return "pt"
    if passthrough != "default":
        return _ON.get(passthrough.lower(), passthrough)
    return _all(arguments, ("iommu", "intel_iommu", "amd_iommu"))
