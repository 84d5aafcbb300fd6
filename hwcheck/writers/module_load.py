"""
Kernel modules that are loaded: now by modprobe(8), at boot by /etc/modules-load.d/90-hwcheck.conf (modules-load.d(5)).

Key: module. Value: ``loaded``. Refused: a module that this kernel does not have, or for which a file of modprobe.d
puts a command in place of loading. Undone by ``modprobe -r``, not while the module is in use.

``nvidia_peermem`` registers with the ib_core of OFED, which openibd.service loads after modules-load has run, and
again at each restart: where that service is, a drop-in of ours loads it after that one too (as Azure's images do).
"""

from __future__ import annotations

from typing import Any

from . import modprobe, unit_property
from .change import ACT, Kind, file_change, kind
from .mechanism import Command, Facets, Mechanism, Proposal, mechanism, unsupported
from .owned_file import Owned, OwnedFile
from .place import Json, Place, WriteError
from .step import Step

FILE = "/etc/modules-load.d/90-hwcheck.conf"
LOADED, ABSENT = "loaded", "absent"
_PEERMEM, _OPENIBD, _POST = "nvidia_peermem", "openibd.service", "ExecStartPost"


@kind("module")
class Module(Kind):
    """A module of the running kernel."""

    def look(self, place: Place, change: Json) -> Any:
        """Tell whether it is loaded."""
        return LOADED if modprobe.is_loaded(place, change["target"]) else None

    def write(self, place: Place, change: Json, state: Any) -> None:
        """Load it, or unload it when nobody uses it."""
        module = change["target"]
        if state is not None:
            place.run(["modprobe", module], 120.0)
            return
        folder = f"/sys/module/{modprobe.plain(module)}"
        users = [path.rpartition("/")[2] for path in place.expand(f"{folder}/holders/*")]
        if users or (place.text(f"{folder}/refcnt") or "0").strip() not in ("0", ""):
            raise WriteError(f"{module} is in use{': by ' + ', '.join(users) if users else ''}; it stays loaded")
        place.run(["modprobe", "-r", module], 120.0)


@mechanism("module_load")
class ModuleLoad(Mechanism):
    """Modules to be loaded."""

    def files(self, place: Place) -> list[Owned]:
        """Return our file."""
        return [Owned(FILE, OwnedFile(place.bytes_as_text(FILE), _key_of))]

    def facets(self, place: Place, step: Step) -> Facets:
        """Tell whether a module is loaded, and will be."""
        if not modprobe.NAME.fullmatch(step.key):
            return unsupported(step.value, f"{step.key!r} is no name of a module")
        if step.value != LOADED:
            return unsupported(step.value, f"a module can be {LOADED}, or {ABSENT} from our file; not {step.value!r}")
        running, following = None, LOADED if _is_listed(place, step.key) else ABSENT
        if not place.is_image:
            running = LOADED if modprobe.is_loaded(place, step.key) else ABSENT
            try:
                found = modprobe.file_of(place, step.key)
            except WriteError as error:
                if running == ABSENT:
                    return unsupported(LOADED, str(error))
                found = ""
            if found == modprobe.BUILT_IN:
                running, following = LOADED, LOADED
        owner = modprobe.forbidden(place, step.key)
        refused = f"{owner} puts a command in place of loading {step.key}; its owner must change it" if owner else ""
        return Facets(LOADED, running, following, None, refused)

    def propose(self, place: Place, steps: list[Step]) -> Proposal:
        """Propose our file, the hook of peer memory, and the modules."""
        owned = OwnedFile(place.bytes_as_text(FILE), _key_of)
        for step in steps:
            owned.put(step.key, step.key, step.id)
        changes = [file_change(place, FILE, owned.render(), [step.number for step in steps])]
        commands: list[Command] = []
        for step in steps:
            if _needs_hook(place, step.key) and not _has_hook(place):
                changes.append(_hook(place, step, f"{_POST}=-/sbin/modprobe {_PEERMEM}"))
                commands += _reload(place, step)
            if not place.is_image and not modprobe.is_loaded(place, step.key):
                changes.append({
                    "kind": "module", "target": step.key, "before": None, "after": LOADED, "phase": ACT,
                    "steps": [step.number],
                })  # fmt: skip
        return Proposal([change for change in changes if change is not None], commands)

    def retire(self, place: Place, steps: list[Step]) -> Proposal:
        """Propose that our file, and the hook, no longer load these."""
        proposal = super().retire(place, steps)
        for step in steps:
            change = _hook(place, step, None) if _needs_hook(place, step.key) else None
            if change is not None:
                proposal.changes.append(change)
                proposal.commands.extend(_reload(place, step))
        return proposal


def _key_of(line: str) -> str:
    return line.strip() if modprobe.NAME.fullmatch(line.strip()) else ""


def _is_listed(place: Place, module: str) -> bool:
    names = {modprobe.plain(line) for _, line in modprobe.lines(place, "modules-load.d")}
    is_there = modprobe.plain(module) in names
    return is_there and (not _needs_hook(place, module) or _has_hook(place))


def _needs_hook(place: Place, module: str) -> bool:
    return modprobe.plain(module) == _PEERMEM and unit_property.is_known(place, _OPENIBD)


def _has_hook(place: Place) -> bool:
    return any(
        line.strip().startswith(_POST) and "peermem" in line.replace("-", "_")
        for path in place.expand(f"/*/systemd/system/{_OPENIBD}.d/*.conf")
        for line in (place.text(path) or "").splitlines()
    )


def _hook(place: Place, step: Step, line: str | None) -> Json | None:
    """Propose our drop-in of openibd with a line, or without; the file is that of the mechanism unit_property."""
    path = unit_property.file_of(_OPENIBD)
    owned = OwnedFile(place.bytes_as_text(path), unit_property.key_of)
    if line is None and not any(_PEERMEM in one for one in owned.lines(_POST)):
        return None
    if line is None:
        owned.drop(_POST)
    else:
        owned.put(_POST, line, step.id)
    return file_change(place, path, owned.render("[Service]\n"), [step.number])


def _reload(place: Place, step: Step) -> list[Command]:
    return [] if place.is_image else [Command(["systemctl", "daemon-reload"], [step.number])]
