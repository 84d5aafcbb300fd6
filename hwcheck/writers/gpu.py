"""
Settings of a GPU by NVML. Subject: its PCI address or UUID.

==================  ================================================================================================
persistence         1 or 0; the next boot is nvidia-persistenced's (mechanism ``unit_property``), which this only reads
power_limit         watts, or default
graphics_clocks     lowest and highest MHz (``1980,1980``), or reset
memory_clocks       the same; never lowered below the highest
application_clocks  reset alone: deprecated in CUDA 13, gone in 14
==================  ================================================================================================

Locks and limits are kept by ``hwcheck-gpu.service`` (:mod:`.gpu_unit`); what clocks are locked to, NVML does not tell
(:mod:`.gpu_clocks`). Refused: what the GPU or its driver does not have, values out of its bounds (the nearest is
named), a lost GPU, a driver that does not answer, a key that a unit of somebody else sets at boot.

Source: NVML API reference; CUDA 13 release notes for application clocks.
"""

from __future__ import annotations

import errno
from typing import Any

from . import gpu_clocks, gpu_unit, nvml, own_unit
from .change import VOLATILE, Kind, kind
from .gpu_clocks import FOREIGN, RESET
from .gpu_unit import UNIT
from .mechanism import Command, Facets, Mechanism, Proposal, mechanism, unsupported
from .nvml_library import ABSENT, NvmlError
from .owned_file import Owned
from .place import Json, Place, WriteError
from .step import Step

KEYS = ("persistence", "power_limit", "graphics_clocks", "memory_clocks", "application_clocks")
_CLOCKS = ("graphics_clocks", "memory_clocks")
_DEFAULT = "default"
_LOCKS = {
    "graphics_clocks": ("nvmlDeviceSetGpuLockedClocks", "nvmlDeviceResetGpuLockedClocks"),
    "memory_clocks": ("nvmlDeviceSetMemoryLockedClocks", "nvmlDeviceResetMemoryLockedClocks"),
}
_NEEDS_PERSISTENCE = "without persistence mode the driver forgets a lock when the last client leaves; turn it on first"


class PersistenceFacets(Facets):
    """Facets of persistence mode, whose next boot is nvidia-persistenced's: told, and settled by its unit."""

    @property
    def is_right(self) -> bool:
        """Whether the running value is; of an image, the next boot."""
        return self.wanted == (self.next_boot if self.running is None else self.running)


@kind("gpu")
class Gpu(Kind):
    """A setting of one GPU; its state is the value in the mechanism's words, a power limit in watts."""

    def look(self, place: Place, change: Json) -> Any:
        """Ask the GPU."""
        return _value(place, nvml.state(place, change["target"]), change["key"])

    def write(self, place: Place, change: Json, state: Any) -> None:
        """Set it."""
        gpu, key = change["target"], change["key"]
        if key == "persistence":
            nvml.call(place, gpu, "nvmlDeviceSetPersistenceMode", int(state))
        elif key == "power_limit":
            nvml.call(place, gpu, "nvmlDeviceSetPowerManagementLimit", round(float(state) * 1000))
        elif key == "application_clocks":
            _set_application(place, gpu, nvml.state(place, gpu), state)
        else:
            _lock(place, gpu, key, state)


@mechanism("gpu")
class GpuMechanism(Mechanism):
    """Settings of GPUs."""

    def files(self, place: Place) -> list[Owned]:
        """Return the drop-in of our unit."""
        return [UNIT.owned(place)]

    def name_of(self, step: Step) -> str:
        """Return the GPU and the key."""
        return gpu_unit.name_of(step)

    def after(self, place: Place, steps: list[int]) -> list[Command]:
        """Let systemd read our unit."""
        return [] if place.is_image else [Command(["systemctl", "daemon-reload"], steps)]

    def retire(self, place: Place, steps: list[Step]) -> Proposal:
        """Take keys from our unit, and the unit with the last of them."""
        found = super().retire(place, steps)
        numbers = [step.number for step in steps]
        return Proposal([*found.changes, *own_unit.frame_changes(place, UNIT, found.changes, numbers)], found.commands)

    def facets(self, place: Place, step: Step) -> Facets:
        """Ask the GPU; of an image only files say something."""
        wanted = _wanted(step)
        wrong = _misspelled(step)
        if wrong:
            return unsupported(wanted, wrong)
        if place.is_image:
            return _of_image(place, step)
        state = nvml.state(place, step.subject)
        try:
            running = _value(place, state, step.key)
        except NvmlError as error:
            if error.code not in ABSENT:
                raise
            return unsupported(wanted, f"{step.key}: {error.strerror}")
        if step.key == "persistence":
            return PersistenceFacets(wanted, running, gpu_unit.persistence(place))
        following = gpu_unit.kept(place, step, state["uuid"])
        refused = refusal(state, step)
        other = gpu_unit.owner(place, step.key)
        if other:
            refused = f"{other} sets {step.key} at boot; its owner must change it"
        elif not refused and _is_kept(step) and not own_unit.find_tool(place, "nvidia-smi"):
            refused = "nvidia-smi is not installed, so nothing would set it again after a boot"
        effective = _enforced(state, running) if step.key == "power_limit" else None
        if wanted == _DEFAULT:
            running, effective = _as_default(state, running), effective and _as_default(state, effective)
        return Facets(wanted, running, following, effective, refused)

    def propose(self, place: Place, steps: list[Step]) -> Proposal:
        """Propose our unit, then the running values: persistence first, since a lock needs it."""
        owned = UNIT.owned(place)
        changes: list[Json] = []
        for step in steps:
            if not _is_kept(step):
                owned.lines.drop(gpu_unit.name_of(step))
                continue
            tool, state = own_unit.find_tool(place, "nvidia-smi"), nvml.state(place, step.subject)
            line = gpu_unit.line_of(tool, state["uuid"], step.key, _wanted(step))
            owned.lines.put(gpu_unit.name_of(step), line, step.id)
        lasting = [step.number for step in steps if step.key != "persistence"]
        if lasting:
            changes = own_unit.unit_changes(place, UNIT, [owned], lasting)
        commands = own_unit.reload_units(place, changes)
        if not place.is_image:
            found = (_change(place, step) for step in sorted(steps, key=lambda step: KEYS.index(step.key)))
            changes += [change for change in found if change is not None]
        return Proposal(changes, commands)


def refusal(state: Json, step: Step) -> str:
    """Say why the GPU cannot be set so; "" when it can."""
    if step.key in _CLOCKS and step.value != RESET:
        return gpu_clocks.refusal(state, step.key, step.value)
    if step.key == "power_limit" and step.value != _DEFAULT:
        low, high = state.get("power_min", 0) / 1000, state.get("power_max", 1e9) / 1000
        if not low <= float(step.value) <= high:
            return f"{step.value} W is out of this GPU's bounds, {low:g} to {high:g} W"
    return ""


def _misspelled(step: Step) -> str:
    if not nvml.is_gpu(step.subject):
        return f"{step.subject!r} is no GPU: name it by PCI address (0000:18:00.0) or UUID"
    if step.key not in KEYS:
        return f"a GPU has no setting {step.key!r}; there are {', '.join(KEYS)}"
    value = step.value.strip()
    if step.key == "persistence":
        return "" if value in ("0", "1") else f"persistence is 1 or 0, not {value!r}"
    if step.key == "power_limit":
        plain = value.replace(".", "", 1)
        return "" if value == _DEFAULT or (plain.isascii() and plain.isdigit()) else f"no number of watts: {value!r}"
    if step.key == "application_clocks":
        return "" if value == RESET else "application clocks are deprecated: they are reset, and never set"
    if value != RESET and gpu_clocks.pair(value) is None:
        return f"{step.key} are lowest and highest MHz with a comma, or reset; not {value!r}"
    return ""


def _wanted(step: Step) -> str:
    if step.key == "power_limit" and step.value.strip() != _DEFAULT and not _misspelled(step):
        return f"{float(step.value):g}"
    return gpu_clocks.spelled(step.value)


def _is_kept(step: Step) -> bool:
    """Tell whether a line of our unit keeps a value: what the driver starts with needs none."""
    return step.key in (*_CLOCKS, "power_limit") and step.value.strip() not in (RESET, _DEFAULT)


def _of_image(place: Place, step: Step) -> Facets:
    if step.key == "persistence":
        why = "an image runs nothing; there persistence is the ExecStart of nvidia-persistenced.service"
        following = gpu_unit.persistence(place)
        return PersistenceFacets(step.value, None, following, None, "" if following == step.value else why)
    if _is_kept(step):
        return unsupported(_wanted(step), "which GPUs an image will run on is not known: set it on the running node")
    lines = UNIT.owned(place).lines.lines(gpu_unit.name_of(step))
    return Facets(step.value, None, lines[0] if lines else step.value)


def _value(place: Place, state: Json, key: str) -> str:
    """Return a key's value; raises what the driver said instead of it."""
    if key in _CLOCKS:
        return gpu_clocks.locked(place, state, key)
    names = {"power_limit": "power", "application_clocks": "application"}
    name = names.get(key, key)
    if name not in state:
        raise NvmlError(state["errors"].get(name, "NOT_SUPPORTED"))
    if key == "power_limit":
        return f"{state[name] / 1000:g}"
    if key == "application_clocks":
        now, first = _application(state, ""), _application(state, "_default")
        return RESET if now == first else ",".join(map(str, now))
    return str(state[name])


def _application(state: Json, suffix: str) -> tuple[int, int]:
    return int(state.get(f"application_memory{suffix}", 0)), int(state.get(f"application{suffix}", 0))


def _set_application(place: Place, gpu: str, state: Json, wanted: str) -> None:
    """Reset application clocks; set them only to take a reset back."""
    if wanted == RESET:
        nvml.call(place, gpu, "nvmlDeviceResetApplicationsClocks")
        return
    memory, graphics = (int(part) for part in wanted.split(","))
    nvml.call(place, gpu, "nvmlDeviceSetApplicationsClocks", memory or max(state["memory_clocks"], default=0), graphics)


def _lock(place: Place, gpu: str, key: str, wanted: str) -> None:
    """Lock clocks, or take a lock away, and write down which."""
    state = nvml.state(place, gpu)
    clocks = gpu_clocks.pair(wanted)
    if clocks is not None and not state.get("persistence"):
        raise OSError(errno.EBUSY, _NEEDS_PERSISTENCE)
    setter, resetter = _LOCKS[key]
    if clocks is None:
        nvml.call(place, gpu, resetter)
    else:
        nvml.call(place, gpu, setter, *clocks)
    gpu_clocks.record(place, state, key, wanted)
    if wanted == FOREIGN:
        raise WriteError(f"{key} are unlocked; a lock of somebody else was before, which NVML does not tell")


def _enforced(state: Json, running: str) -> str | None:
    """Return the limit in force, where the platform or the rack holds it below the one that was asked for."""
    enforced = state.get("power_enforced")
    told = None if enforced is None else f"{enforced / 1000:g}"
    return None if told == running else told


def _as_default(state: Json, watts: str) -> str:
    return _DEFAULT if float(watts) * 1000 == state.get("power_default") else watts


def _change(place: Place, step: Step) -> Json | None:
    state = nvml.state(place, step.subject)
    before, after = _value(place, state, step.key), _wanted(step)
    if after == _DEFAULT:
        if "power_default" not in state:
            raise WriteError("this GPU does not tell its default power limit")
        after = f"{state['power_default'] / 1000:g}"
    if before == after:
        return None
    return {
        "kind": "gpu", "target": step.subject, "key": step.key, "before": before, "after": after, "phase": VOLATILE,
        "steps": [step.number],
    }  # fmt: skip
