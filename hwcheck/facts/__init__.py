"""Facts: typed, with unit, subject, facet and origin; or Missing with a reason. Imports nothing else of hwcheck."""

from hwcheck.facts import names as _names  # noqa: F401 - declares every fact name
from hwcheck.facts.registry import NAMES, FactName, show
from hwcheck.facts.snapshot import IDENTITIES, Change, Snapshot, SourceGap
from hwcheck.facts.subjects import NODE, Subject, bare_name, gpu_at, gpu_index, gpu_uuid, pci_address, port
from hwcheck.facts.units import convert, count, number, quantity, real, whole
from hwcheck.facts.values import NO_FACT, NOT_COLLECTED, Facet, Fact, Missing, Origin, Reason

__all__ = [
    "IDENTITIES", "NAMES", "NODE", "NOT_COLLECTED", "NO_FACT", "Change", "Facet", "Fact", "FactName", "Missing",
    "Origin", "Reason", "Snapshot", "SourceGap", "Subject", "bare_name", "convert", "count", "gpu_at", "gpu_index",
    "gpu_uuid", "number", "pci_address", "port", "quantity", "real", "show", "whole",
]  # fmt: skip
