"""
The calls of NVML that settings need, through ctypes; made in a child alone (:mod:`.nvml`), since any may hang.

Source: nvml.h; the library is libnvidia-ml.so.1 of the driver package, or of the GPU operator's driver container.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
from typing import Any

from .place import Json, Place

LIBRARY = "libnvidia-ml.so.1"
ADDRESS = re.compile(r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])", re.IGNORECASE)
UUID = re.compile(r"GPU-[0-9a-f-]{36}", re.IGNORECASE)
ABSENT = ("NOT_SUPPORTED", "FUNCTION_NOT_FOUND", "DEPRECATED")
"""What a driver answers that does not have a setting, or no longer."""
_PLACES = (
    "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib",
    "/run/nvidia/driver/usr/lib/x86_64-linux-gnu", "/run/nvidia/driver/usr/lib/aarch64-linux-gnu",
    "/run/nvidia/driver/usr/lib64",
)  # fmt: skip
_NAMES = (
    "SUCCESS", "UNINITIALIZED", "INVALID_ARGUMENT", "NOT_SUPPORTED", "NO_PERMISSION", "ALREADY_INITIALIZED",
    "NOT_FOUND", "INSUFFICIENT_SIZE", "INSUFFICIENT_POWER", "DRIVER_NOT_LOADED", "TIMEOUT", "IRQ_ISSUE",
    "LIBRARY_NOT_FOUND", "FUNCTION_NOT_FOUND", "CORRUPTED_INFOROM", "GPU_IS_LOST", "RESET_REQUIRED",
    "OPERATING_SYSTEM", "LIB_RM_VERSION_MISMATCH", "IN_USE", "MEMORY", "NO_DATA", "VGPU_ECC_NOT_SUPPORTED",
    "INSUFFICIENT_RESOURCES", "FREQ_NOT_SUPPORTED", "ARGUMENT_VERSION_MISMATCH", "DEPRECATED", "NOT_READY",
    "GPU_NOT_FOUND", "INVALID_STATE", "RESET_TYPE_NOT_SUPPORTED",
)  # fmt: skip
_WORDS = {
    "NOT_SUPPORTED": (errno.EOPNOTSUPP, "this GPU does not support it"),
    "FUNCTION_NOT_FOUND": (errno.EOPNOTSUPP, "this driver does not have it"),
    "DEPRECATED": (errno.EOPNOTSUPP, "this driver no longer has it"),
    "NO_PERMISSION": (errno.EPERM, "the driver does not let this process change it; root of the host is needed"),
    "GPU_IS_LOST": (errno.ENODEV, "the GPU is lost: it no longer answers on its bus"),
    "RESET_REQUIRED": (errno.ENODEV, "the GPU needs a reset first"),
    "NOT_FOUND": (errno.ENODEV, "the driver has no such GPU"),
    "GPU_NOT_FOUND": (errno.ENODEV, "the driver has no such GPU"),
    "IN_USE": (errno.EBUSY, "the GPU is in use"),
    "LIBRARY_NOT_FOUND": (errno.ENODEV, f"there is no {LIBRARY} on this node"),
    "DRIVER_NOT_LOADED": (errno.ENODEV, "the driver of the GPUs is not loaded"),
    "LIB_RM_VERSION_MISMATCH": (errno.ENODEV, "library and loaded driver are of two versions: a reboot is due"),
}
_GRAPHICS, _MEMORY = 0, 2
_NUMBERS = (
    ("persistence", "nvmlDeviceGetPersistenceMode"),
    ("power", "nvmlDeviceGetPowerManagementLimit"),
    ("power_default", "nvmlDeviceGetPowerManagementDefaultLimit"),
    ("power_enforced", "nvmlDeviceGetEnforcedPowerLimit"),
    ("clock", "nvmlDeviceGetClockInfo", _GRAPHICS),
    ("clock_max", "nvmlDeviceGetMaxClockInfo", _GRAPHICS),
    ("memory_clock", "nvmlDeviceGetClockInfo", _MEMORY),
    ("application", "nvmlDeviceGetApplicationsClock", _GRAPHICS),
    ("application_default", "nvmlDeviceGetDefaultApplicationsClock", _GRAPHICS),
    ("application_memory", "nvmlDeviceGetApplicationsClock", _MEMORY),
    ("application_memory_default", "nvmlDeviceGetDefaultApplicationsClock", _MEMORY),
)
_MOST_CLOCKS = 1024


class NvmlError(OSError):
    """NVML refused; ``code`` is its name for it without ``NVML_ERROR_``."""

    def __init__(self, code: str) -> None:
        super().__init__(*_WORDS.get(code, (errno.EINVAL, f"NVML says {code}")))
        self.code = code


class Library:
    """
    NVML, loaded and started.

    Raises:
        NvmlError: it is not there, or does not start.
    """

    def __init__(self, place: Place) -> None:
        import ctypes  # noqa: PLC0415 - in the child alone

        self._c = ctypes
        self._library: Any = None
        paths = [f"{place.real(folder)}/{LIBRARY}" for folder in _PLACES]
        for path in [*filter(os.path.exists, paths), LIBRARY]:
            with contextlib.suppress(OSError):
                self._library = ctypes.CDLL(path)
                break
        if self._library is None:
            raise NvmlError("LIBRARY_NOT_FOUND")
        self.must("nvmlInit_v2")

    def must(self, function: str, *arguments: Any) -> None:
        """
        Make a call.

        Raises:
            NvmlError: it did not succeed.
        """
        code = self._call(function, *arguments)
        if code != "SUCCESS":
            raise NvmlError(code)

    def _call(self, function: str, *arguments: Any) -> str:
        try:
            number = getattr(self._library, function)(*arguments)
        except AttributeError:
            return "FUNCTION_NOT_FOUND"
        return _NAMES[number] if 0 <= number < len(_NAMES) else f"error {number}"

    def handle(self, gpu: str) -> Any:
        """Return the handle of a GPU, named by PCI address or UUID."""
        handle = self._c.c_void_p()
        found = ADDRESS.fullmatch(gpu)
        if found is None:
            self.must("nvmlDeviceGetHandleByUUID", gpu.encode(), self._c.byref(handle))
        else:
            spelled = f"{int(found[1] or '0', 16):08X}:{found[2]}:{found[3]}.{found[4]}".upper()
            self.must("nvmlDeviceGetHandleByPciBusId_v2", spelled.encode(), self._c.byref(handle))
        return handle

    def read(self, handle: Any) -> Json:
        """
        Ask for everything that settings need.

        Returns:
            ``uuid``, ``driver``; ``persistence`` (0 or 1); ``power``, ``power_default``, ``power_min``, ``power_max``,
            ``power_enforced`` in mW; ``clock``, ``clock_max``, ``memory_clock``, ``application*`` in MHz; ``reasons``
            (bits); ``memory_clocks``, ``graphics_clocks`` (MHz, highest first). What was refused is missing, with the
            name of the error in ``errors``.

        Raises:
            NvmlError: the GPU does not answer at all.
        """
        found: Json = {"driver": self._text("nvmlSystemGetDriverVersion"), "errors": {}}
        found["uuid"] = self._text("nvmlDeviceGetUUID", handle)
        for name, function, *more in _NUMBERS:
            cell = self._c.c_uint()
            code = self._call(function, handle, *more, self._c.byref(cell))
            (found if code == "SUCCESS" else found["errors"])[name] = cell.value if code == "SUCCESS" else code
        reasons = self._c.c_ulonglong()
        if self._call("nvmlDeviceGetCurrentClocksEventReasons", handle, self._c.byref(reasons)) == "SUCCESS":
            found["reasons"] = reasons.value
        low, high = self._c.c_uint(), self._c.c_uint()
        function = "nvmlDeviceGetPowerManagementLimitConstraints"
        if self._call(function, handle, self._c.byref(low), self._c.byref(high)) == "SUCCESS":
            found.update(power_min=low.value, power_max=high.value)
        found["memory_clocks"] = self._clocks("nvmlDeviceGetSupportedMemoryClocks", handle)
        highest = max(found["memory_clocks"], default=0)
        found["graphics_clocks"] = self._clocks("nvmlDeviceGetSupportedGraphicsClocks", handle, highest)
        return found

    def fabric(self, handle: Any) -> int:
        """
        Return where the GPU's registration with the NVLink fabric stands.

        Returns:
            0 not supported, 1 not started, 2 in progress, 3 completed (nvml.h, nvmlGpuFabricInfo_v2 and _v3: 36 and
            40 bytes, the state is the byte at 28).
        """
        for version, size in ((3, 40), (2, 36)):
            buffer = self._c.create_string_buffer(64)
            self._c.c_uint.from_buffer(buffer).value = size | version << 24
            code = self._call("nvmlDeviceGetGpuFabricInfoV", handle, buffer)
            if code == "SUCCESS":
                return buffer.raw[28]
            if code not in (*ABSENT, "ARGUMENT_VERSION_MISMATCH", "INVALID_ARGUMENT"):
                raise NvmlError(code)
        return 0

    def _text(self, function: str, *before: Any) -> str:
        buffer = self._c.create_string_buffer(96)
        self.must(function, *before, buffer, 96)
        return bytes(buffer.value).decode("utf-8", "replace")

    def _clocks(self, function: str, *before: Any) -> list[int]:
        count = self._c.c_uint(_MOST_CLOCKS)
        cells = (self._c.c_uint * _MOST_CLOCKS)()
        code = self._call(function, *before, self._c.byref(count), cells)
        return sorted(set(cells[: count.value]), reverse=True) if code == "SUCCESS" else []
