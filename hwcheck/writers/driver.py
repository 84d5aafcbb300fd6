"""
Acts on the driver of the GPUs: reload and reset, with the services that hold it stopped before and started after.

=============  ====================================================================================================
reload_driver  all modules that are loaded out and in again; disturbs the node
reset_gpu      one GPU by PCI address; all of them (target "" or ``all``) and wherever NVSwitches tie them together:
               there a single GPU cannot be reset, so the whole board is
=============  ====================================================================================================

What goes wrong on the way does not end it: modules are loaded and services started as before, and what is left is said.
Services come back in the order persistenced, fabric manager, the fabric's completion, and only then who uses it.

Source: nvidia-smi(1), ``--gpu-reset``: no process may use the GPU, persistenced included; NVIDIA Fabric Manager user
guide: restart it after GPUs were reset; knowledge of operators (oracle-quickstart/oci-hpc stops both first).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from . import gpu_clocks, nvml
from .acts import act
from .idle import holders
from .nvml_library import ADDRESS
from .place import Place, WriteError, words_of

PERSISTENCED, MANAGER = "nvidia-persistenced.service", "nvidia-fabricmanager.service"
USERS = ("nvidia-imex.service", "nvidia-dcgm.service", "dcgm.service", "dcgm-exporter.service", "nvsm.service")
"""Services that use the GPUs; stopped first, in the other order, and started last."""
MODULES = ("nvidia_fs", "gdrdrv", "nvidia_peermem", "nvidia_drm", "nvidia_modeset", "nvidia_uvm", "nvidia")
"""In the order of unloading: the last is used by all others."""
FABRIC_SECONDS = 300.0
_UNLOAD, _LOAD, _SERVICE, _RESET = 120.0, 180.0, 120.0, 300.0
_COMPLETED, _NO_FABRIC = 3, 0
_PAUSE = 2.0
_DEVICES = "/sys/bus/pci/devices/*"


@act("reload_driver")
def reload_driver(place: Place, target: str) -> None:
    """
    Unload and load the driver.

    Raises:
        WriteError: it is in use (by whom), or something went wrong; what is left is said.
    """
    if target not in ("", "nvidia"):
        raise WriteError(f"no driver that hwcheck reloads: {target!r}")
    loaded = [name for name in MODULES if place.exists(f"/sys/module/{name}")]
    if "nvidia" not in loaded:
        raise WriteError("the driver of the GPUs is not loaded, so it is not reloaded; modprobe nvidia says why")
    with _without_services(place) as attempts:
        attempts.run(["modprobe", "-r", *loaded], _UNLOAD)
        for name in reversed(loaded):
            attempts.run(["modprobe", name], _LOAD)
        missing = [name for name in loaded if not place.exists(f"/sys/module/{name}")]
        if missing:
            attempts.wrong.append(f"not loaded: {', '.join(missing)}")


@act("reset_gpu")
def reset_gpu(place: Place, target: str) -> None:
    """
    Reset a GPU, or all where they cannot be reset apart.

    Raises:
        WriteError: as :func:`reload_driver`.
    """
    known = _functions(place, "0x03")
    if target not in ("", "all") and (not ADDRESS.fullmatch(target) or target not in known):
        raise WriteError(f"there is no GPU {target!r} here; there are {', '.join(known) or 'none'}")
    is_board = target in ("", "all") or bool(_functions(place, "0x0680"))
    with _without_services(place) as attempts:
        attempts.run(["nvidia-smi", "--gpu-reset", *([] if is_board else ["-i", target])], _RESET)


class _Attempts:
    """
    Programs that are run one after the other, whatever becomes of each.

    Attributes:
        wrong: what went wrong, in sentences.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self.wrong: list[str] = []

    def run(self, words: list[str], seconds: float) -> bool:
        """Run a program; what it says of a failure is kept, and the rest goes on. Tells whether it ended well."""
        try:
            self._place.run(words, seconds)
        except WriteError as error:
            self.wrong.append(str(error))
            return False
        return True

    def start(self, units: list[str]) -> None:
        """Start services, and wait for the fabric behind its manager."""
        for unit in units:
            if self.run(["systemctl", "start", unit], _SERVICE) and unit == MANAGER:
                self._await_fabric()  # one that does not start brings no fabric, however long we wait

    def _await_fabric(self) -> None:
        """Wait until every GPU is registered with the fabric, which takes tens of seconds."""
        until = time.monotonic() + FABRIC_SECONDS
        waiting = _functions(self._place, "0x03")
        while waiting:
            try:
                waiting = [gpu for gpu in waiting if nvml.fabric(self._place, gpu) not in (_COMPLETED, _NO_FABRIC)]
            except (OSError, WriteError) as error:
                self.wrong.append(f"the fabric could not be asked for: {words_of(error)}")
                return
            if waiting and time.monotonic() > until:
                self.wrong.append(f"not in the NVLink fabric after {FABRIC_SECONDS:g} s: {', '.join(waiting)}")
                return
            if waiting:
                time.sleep(_PAUSE)


@contextlib.contextmanager
def _without_services(place: Place) -> Iterator[_Attempts]:
    """
    Stop the services that hold the driver, and start those that ran again at the end.

    Raises:
        WriteError: somebody else uses the GPUs, so nothing was done; or what went wrong of what was.
    """
    _refuse_if_used(place, with_services=False)
    ran = [unit for unit in (PERSISTENCED, MANAGER, *USERS) if _is_active(place, unit)]
    attempts = _Attempts(place)
    try:
        for unit in reversed(ran):
            place.run(["systemctl", "stop", unit], _SERVICE)
        _refuse_if_used(place, with_services=True)
    except WriteError as error:
        attempts.start(ran)
        raise WriteError("; ".join([f"nothing was done: {error}", *attempts.wrong])) from None
    try:
        yield attempts
    finally:
        nvml.forget(place)
        gpu_clocks.forget(place)
        attempts.start(ran)
    if attempts.wrong:
        raise WriteError("; ".join(attempts.wrong))


def _refuse_if_used(place: Place, *, with_services: bool) -> None:
    """
    Make sure that nobody has a GPU open.

    Raises:
        WriteError: somebody has; the text names them.
    """
    found = holders(place, everybody=with_services)
    if found:
        raise WriteError(f"the GPUs are in use: {'; '.join(found[:5])}")


def _is_active(place: Place, unit: str) -> bool:
    said = place.run(["systemctl", "show", "-p", "ActiveState", unit], 20.0)
    return "ActiveState=active" in said or "ActiveState=activating" in said


def _functions(place: Place, kind: str) -> list[str]:
    """Return NVIDIA's PCI functions of a class: 0x03 displays and accelerators, 0x0680 NVSwitches."""
    return [
        path.rpartition("/")[2]
        for path in place.expand(_DEVICES)
        if (place.text(f"{path}/vendor") or "").strip() == "0x10de"
        and (place.text(f"{path}/class") or "").startswith(kind)
    ]
