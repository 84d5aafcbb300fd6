"""
What the evidence says of a key itself, whatever check asks for it: its value now and at the next boot, and its owner.

Kernel parameters, kernel arguments, units and modules are read whole, so a plan need not rely on the check's own fact:
pcie.aspm judges registers of links, and asks for a kernel argument that may stand there already.
"""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any

from hwcheck.facts import NODE, Facet, Snapshot, Subject
from hwcheck.mechanisms import MECHANISMS

Seen = dict[str, str | None]
"""Value ``running`` and at the ``next boot``; None where the evidence does not tell, or nothing sets it."""

ABSENT = "absent"
"""What the writers call an argument that does not stand on the command line."""
RUNNING, NEXT_BOOT = str(Facet.RUNNING), str(Facet.NEXT_BOOT)
OURS = "90-hwcheck.conf"
"""Name of the drop-ins that the writers keep."""
_ALIASES = {"chrony.service": "chronyd.service", "chronyd.service": "chrony.service"}
_ON = ("enabled", "enabled-runtime", "static", "alias", "indirect", "generated")
_ATTRIBUTES = {"/sys/module/pcie_aspm/parameters/policy": "pci.aspm.policy"}


def seen_of(snapshot: Snapshot, mechanism: str, key: str, value: str) -> Seen | None:
    """
    Return what the evidence says of a key; None where only the check knows.

    Args:
        snapshot: facts of the node.
        mechanism: name of the mechanism.
        key: its key.
        value: wanted; decides for arguments that may stand several times.
    """
    reader = _READERS.get(mechanism)
    return reader(snapshot, key, value) if reader is not None else None


def is_right(mechanism: str, value: str, seen: Seen) -> bool:
    """Tell whether the key has the value now and keeps it over a boot."""
    running, following = seen[RUNNING], seen[NEXT_BOOT]
    if mechanism == "unit":
        on = following in _ON
        return {
            "running": running == "active" and on,
            "enabled": on,
            "disabled": running in ("inactive", "failed") and following in ("disabled", "masked"),
        }.get(value, False)
    return running == value and following == value


def owner_of(snapshot: Snapshot, mechanism: str, key: str) -> str:
    """Return the file that sets a kernel parameter at boot; "" when none does, or only the writers' own."""
    if mechanism != "sysctl":
        return ""
    record = _boot_value(snapshot, key) or {}
    file = str(record.get("file", ""))
    return "" if file.endswith(f"/{OURS}") else file


def unit_here(snapshot: Snapshot, unit: str) -> str | None:
    """
    Find a unit under the name it has on this node: chrony is chronyd on RHEL.

    Returns:
        its name; None when the evidence says that it is not installed.
    """
    for name in unit_names(unit):
        if _unit(snapshot, "service.loaded", name) == "loaded":
            return name
    return None if _unit(snapshot, "service.loaded", unit) in ("not-found", "masked") else unit


def unit_names(unit: str) -> tuple[str, ...]:
    """Return the names that a unit has on one node or another."""
    return (unit, _ALIASES[unit]) if unit in _ALIASES else (unit,)


def _unit(snapshot: Snapshot, fact: str, unit: str) -> str | None:
    value = snapshot.value(fact, Subject("unit", unit))
    return None if value is None else str(value)


def _of_unit(snapshot: Snapshot, key: str, _value: str) -> Seen | None:
    running, following = _unit(snapshot, "service.active", key), _unit(snapshot, "service.enabled", key)
    return None if running is None and following is None else {RUNNING: running, NEXT_BOOT: following}


def _boot_value(snapshot: Snapshot, key: str) -> dict[str, Any] | None:
    records: dict[str, dict[str, Any]] = snapshot.value("sysctl.boot_values") or {}
    if key in records:
        return records[key]
    matching = [record for pattern, record in records.items() if "*" in pattern and fnmatchcase(key, pattern)]
    return matching[-1] if matching else None


def _of_sysctl(snapshot: Snapshot, key: str, _value: str) -> Seen | None:
    values = snapshot.value("sysctl.values")
    record = _boot_value(snapshot, key)
    running = values.get(key) if values else None
    if running is None and record is None:
        return None
    return {RUNNING: _words(running), NEXT_BOOT: _words(record["value"]) if record else None}


def _words(value: Any) -> str | None:
    return None if value is None else " ".join(str(value).split())


def _of_argument(snapshot: Snapshot, key: str, value: str) -> Seen | None:
    told: Seen = {}
    for facet in (Facet.RUNNING, Facet.NEXT_BOOT):
        fact = snapshot.facts.get(NODE, {}).get(("kernel.cmdline", facet))
        told[str(facet)] = _argument(fact.value, key, value) if fact is not None and fact.present else None
    return told if any(part is not None for part in told.values()) else None


def _argument(words: tuple[str, ...], key: str, value: str) -> str:
    """Return the value that counts, in the writers' words: the last, or the wanted one of several."""
    values = [word.partition("=")[2] for word in words if word.partition("=")[0] == key]
    if key in MECHANISMS["kernel_argument"].several:
        return value if value in values else ",".join(values) or ABSENT
    return values[-1] if values else ABSENT


def _of_module(snapshot: Snapshot, key: str, _value: str) -> Seen | None:
    loaded, boot = snapshot.value("kernel.modules"), snapshot.value("kernel.modules.boot")
    whole = snapshot.value("kernel.modules.filter") == ""
    if loaded is None or not (whole or key in loaded):
        return None
    return {RUNNING: "loaded" if key in loaded else None, NEXT_BOOT: "loaded" if boot and key in boot else None}


def _of_attribute(snapshot: Snapshot, key: str, _value: str) -> Seen | None:
    value = snapshot.value(_ATTRIBUTES[key]) if key in _ATTRIBUTES else None
    return None if value is None else {RUNNING: str(value), NEXT_BOOT: None}


_READERS: dict[str, Callable[[Snapshot, str, str], Seen | None]] = {
    "attribute": _of_attribute,
    "kernel_argument": _of_argument,
    "module_load": _of_module,
    "sysctl": _of_sysctl,
    "unit": _of_unit,
}
