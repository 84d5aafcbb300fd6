"""
Properties of services by drop-in: ``/etc/systemd/system/UNIT.d/90-hwcheck.conf``.

Source: systemd.unit(5), proc(5): drop-ins are read in the order of their names, a later one wins; they are read by
``daemon-reload`` and count from the unit's next start. Key: ``slurmd.service LimitMEMLOCK``. Value: as in the file. Of
a list property (ExecStart) the list is emptied first, so that ours replaces it.

Running is what systemd has read and the running process was started with: ``systemctl show``. What only the file says
is the next boot. Not undone by itself: a service that is running keeps its old limit until it is started again.
"""

from __future__ import annotations

import re

from . import placement
from .change import file_change
from .mechanism import Command, Facets, Mechanism, Proposal, mechanism, unsupported
from .owned_file import Owned, OwnedFile
from .place import Json, Place, WriteError
from .step import Step

_KEY = re.compile(r"([A-Za-z0-9:_.@\\-]{1,200}\.(?:service|socket|slice)) ([A-Za-z]{1,60})")
_LISTS = ("ExecStart", "ExecStartPre", "ExecStartPost", "ExecStop", "ExecStopPost", "Environment")
_PROCESS_LIMITS = {"LimitMEMLOCK": "Max locked memory", "LimitNOFILE": "Max open files"}
_FOLDERS = ("/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")
_OURS = "90-hwcheck.conf"
_SIZES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def file_of(unit: str) -> str:
    """Return our drop-in of a unit."""
    return f"/etc/systemd/system/{unit}.d/{_OURS}"


@mechanism("unit_property")
class UnitProperty(Mechanism):
    """Properties of services."""

    def files(self, place: Place) -> list[Owned]:
        """Return our drop-ins."""
        units = [path.split("/")[-2][: -len(".d")] for path in place.expand(file_of("*"))]
        return [
            Owned(file_of(unit), OwnedFile(place.bytes_as_text(file_of(unit)), key_of), "[Service]\n", unit + " ")
            for unit in units
        ]

    def after(self, place: Place, steps: list[int]) -> list[Command]:
        """Let systemd read them."""
        return [] if place.is_image else [Command(["systemctl", "daemon-reload"], steps)]

    def facets(self, place: Place, step: Step) -> Facets:
        """Read a property: what runs from systemd, the next start from the drop-ins."""
        found = _KEY.fullmatch(step.key)
        wanted = meaning(step.value)
        if found is None:
            return unsupported(wanted, f"{step.key!r} names no unit and property")
        unit, name = found[1], found[2]
        if not is_known(place, unit):
            return unsupported(wanted, f"there is no unit {unit} here")
        wrong = placement.not_understood(place, name, step.value)
        if wrong:
            return unsupported(wanted, wrong)
        following, owner = _next(place, unit, name)
        shown = {} if place.is_image else _shown(place, unit, name)
        running = None if name in _LISTS else shown.get(name)
        refused = ""
        if owner and following != wanted:
            refused = f"{owner} sets {name} to {following} after ours; its owner must change it"
        waits = f"counts from the next start of {unit}"
        return Facets(wanted, running, following, _effective(place, name, shown), refused, waits=waits)

    def propose(self, place: Place, steps: list[Step]) -> Proposal:
        """Propose a drop-in for each unit; systemd reads them at once, a restart makes them count."""
        changes: list[Json] = []
        for unit in sorted({step.key.split()[0] for step in steps}):
            mine = [step for step in steps if step.key.split()[0] == unit]
            owned = OwnedFile(place.bytes_as_text(file_of(unit)), key_of)
            _demand_placement(place, unit, {step.key.split()[1]: step.value for step in mine})
            for step in mine:
                name = step.key.split()[1]
                if _next(place, unit, name)[0] != meaning(step.value):
                    owned.put(name, _line(name, step.value), step.id)
            change = file_change(place, file_of(unit), owned.render("[Service]\n"), [step.number for step in mine])
            if change is not None:
                changes.append(change)
        numbers = sorted({number for change in changes for number in change["steps"]})
        return Proposal(changes, self.after(place, numbers) if changes else [])


def _demand_placement(place: Place, unit: str, wanted: dict[str, str]) -> None:
    """Make sure that the unit starts with the policy and the mask that it will have; raises WriteError else."""
    if not {"NUMAPolicy", "NUMAMask"} & set(wanted):
        return
    policy, mask = (wanted.get(name) or _next(place, unit, name)[0] for name in ("NUMAPolicy", "NUMAMask"))
    wrong = placement.mismatch(policy, mask)
    if wrong:
        raise WriteError(f"{unit}: {wrong}")


def meaning(value: str) -> str:
    """Spell sizes as ``systemctl show`` does: bytes, or ``infinity``."""
    text = value.strip()
    found = re.fullmatch(r"(\d+)([KMGT])", text)
    if found:
        return str(int(found[1]) * _SIZES[found[2]])
    return "infinity" if text in ("unlimited", "18446744073709551615") else text


def _line(name: str, value: str) -> str:
    return f"{name}=\n{name}={value}" if name in _LISTS else f"{name}={value}"


def key_of(line: str) -> str:
    """Return the property that a line of ours sets."""
    name, sign, _ = line.partition("=")
    return name if sign and name.isalpha() else ""


def is_known(place: Place, unit: str) -> bool:
    """Tell whether a unit, or its template, is installed."""
    template = re.sub(r"@[^.]*\.", "@.", unit)
    return any(place.exists(f"{folder}/{name}") for folder in _FOLDERS for name in (unit, template))


def _next(place: Place, unit: str, name: str) -> tuple[str | None, str]:
    """Return what the drop-ins set a property to, and the file that does so after ours; "" when ours is the last."""
    value, last = None, ""
    for path in place.drop_ins(*(f"{folder}/{unit}.d/*.conf" for folder in _FOLDERS)):
        for line in (place.text(path) or "").splitlines():
            key, sign, text = line.strip().partition("=")
            if sign and key.strip() == name and text.strip():
                value, last = meaning(text), path
    return value, last if last.rpartition("/")[2] > _OURS else ""


def _shown(place: Place, unit: str, name: str) -> dict[str, str]:
    """Return what systemd says of a unit: the property and its main process."""
    try:
        said = place.run(["systemctl", "show", "-p", f"{name},MainPID", unit], 20.0)
    except WriteError:
        return {}
    pairs = (line.partition("=") for line in said.splitlines())
    return {key: meaning(value) for key, sign, value in pairs if sign}


def _effective(place: Place, name: str, shown: dict[str, str]) -> str | None:
    """Return the limit of the running process, which keeps the one that it was started with."""
    pid = shown.get("MainPID", "0")
    if name not in _PROCESS_LIMITS or pid == "0" or not pid.isdigit():
        return None
    for line in (place.text(f"/proc/{pid}/limits") or "").splitlines():
        if line.startswith(_PROCESS_LIMITS[name]):
            words = line[len(_PROCESS_LIMITS[name]) :].split()
            return meaning(words[0]) if words else None
    return None
