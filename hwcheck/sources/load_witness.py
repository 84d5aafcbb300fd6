"""
What happens while a measurement runs: on the GPU by NVML, on the node by the kernel's log and its counters.

A figure without its circumstances is none: one taken at 345 MHz, beside another process, or while the memory corrects
itself says nothing of the hardware. What cannot be told is left out and said why, never filled in.
"""

import os
import time

from hwcheck.sources import nvml
from hwcheck.sources.source import Absent

_REASONS = {
    # what holds clocks down: bit of nvmlDeviceGetCurrentClocksEventReasons → its word in the conditions
    0x4: "sw_power_cap", 0x8: "hw_slowdown", 0x10: "sync_boost", 0x20: "sw_thermal", 0x40: "hw_thermal",
    0x80: "hw_power_brake",
}  # fmt: skip
_CLOCKS = (("sm_clock", "NVML_CLOCK_SM"), ("memory_clock", "NVML_CLOCK_MEM"))
_GET = "nvmlDeviceGet"
_ERRORS = ("NVML_MEMORY_ERROR_TYPE_UNCORRECTED", "NVML_VOLATILE_ECC")
_TEMPERATURE = ("NVML_TEMPERATURE_GPU",)
_LINK = {
    "pcie_gen": "CurrPcieLinkGeneration", "pcie_gen_max": "MaxPcieLinkGeneration",
    "pcie_width": "CurrPcieLinkWidth", "pcie_width_max": "MaxPcieLinkWidth",
}  # fmt: skip
_PROCESSES = ("ComputeRunningProcesses_v3", "GraphicsRunningProcesses_v3")
_LOG_CAP = 4 << 20
_MOST_DEVICES = 64
_INTERRUPTS = 5  # names that are told


class Library:
    """NVML for witnesses; ``why`` says why there is none."""

    def __init__(self):
        self.why, self.nvml = "", None
        try:
            self.nvml = nvml.Nvml(nvml.load())
        except (Absent, ImportError, OSError) as error:
            self.why = "%s: %s" % (nvml.LIBRARY, "not there" if isinstance(error, Absent) else error)
            return
        code = self.nvml.function("nvmlInit_v2|nvmlInit")()
        if code:
            self.why, self.nvml = "nvmlInit_v2 answers %d" % code, None
            return
        self.calls = {(call[1][len(_GET) :], call[3]): call for call in self.nvml.calls}
        self.devices = self._devices()

    def _devices(self):
        """Return the handles of all GPUs by PCI address, spelled as the kernel does."""
        found, count = {}, self.nvml.c.c_uint()
        if self.nvml.function("nvmlDeviceGetCount_v2")(self.nvml.c.byref(count)):
            return found
        for index in range(min(count.value, _MOST_DEVICES)):
            handle = self.nvml.c.c_void_p()
            if not self.nvml.function("nvmlDeviceGetHandleByIndex_v2")(index, self.nvml.c.byref(handle)):
                where = self.ask(handle, "PciInfo")
                if where:
                    found["%04x:%02x:%02x.0" % (where["domain"], where["bus"], where["device"])] = handle
        return found

    def device(self, address):
        """Return the handle of the GPU at a PCI address, or None."""
        return None if self.nvml is None else self.devices.get(address)

    def ask(self, handle, name, args=()):
        """Return the answer of ``nvmlDeviceGet<name>``, or None."""
        code, value = self.nvml.ask(handle, self.calls[name, args])
        return None if code else value

    def processes(self, handle):
        """Return the names of the processes on a GPU by pid, or None where they cannot be told."""
        found = {}
        for name in _PROCESSES:
            code, listed = self.nvml.processes(handle, _GET + name)
            if code:
                return None
            found.update({entry["pid"]: entry["name"] for entry in listed})
        return found


class GpuWitness:
    """
    Watches GPUs through one measurement: make it before the context, ask :meth:`look` while work is in flight,
    :meth:`told` after the context is gone.

    Args:
        library: NVML.
        addresses: of the GPUs.
        strangers: who was on them before, where contexts of this process stay over several measurements; None to ask.
    """

    def __init__(self, library, addresses, strangers=None):
        self.library = library
        self.handles = [handle for handle in map(library.device, addresses) if handle is not None]
        self.why = library.why or ("" if len(self.handles) == len(addresses) else "NVML does not know this GPU")
        self.strangers, self.alone = strangers or {}, strangers is None
        self.counted = self._counters()
        self.lows, self.highs, self.reasons, self.looks, self.mig = {}, {}, 0, 0, False
        self._strangers()

    def look(self):
        """Note clocks, what holds them, links and temperature at this moment."""
        self.looks += 1
        for handle in self.handles:
            for word, clock in _CLOCKS:
                self._low(word, self.library.ask(handle, "ClockInfo", (clock,)))
                self._high(word + "_max", self.library.ask(handle, "MaxClockInfo", (clock,)))
            for word, name in _LINK.items():
                note = self._high if word.endswith("_max") else self._low
                note(word, self.library.ask(handle, name))
            mode = self.library.ask(handle, "MigMode")
            self.mig = self.mig or bool(mode and mode["current"])
            self._high("temperature", self.library.ask(handle, "Temperature", _TEMPERATURE))
            self.reasons |= self.library.ask(handle, "CurrentClocksEventReasons") or 0

    def told(self):
        """Return the conditions; of several GPUs the lowest clocks and links, and all that holds any of them."""
        if self.why:
            return {"unwatched": self.why}
        self._strangers()
        told = {**self.lows, **self.highs, "looks": self.looks}
        if self.looks:
            told["mig"] = self.mig
            told["throttled"] = [word for bit, word in _REASONS.items() if self.reasons & bit]
        if self.strangers is not None:
            told["strangers"] = ["%d %s" % item for item in sorted(self.strangers.items())][:16]
        after = self._counters()
        for word in ("ecc_errors", "remapped_rows"):
            if self.counted.get(word) is not None and after.get(word) is not None:
                told[word] = max(0, after[word] - self.counted[word])
        return told

    def _counters(self):
        """Return uncorrected memory errors and remapped rows so far, summed over the GPUs; None where not told."""
        errors, rows = [], []
        for handle in self.handles:
            errors.append(self.library.ask(handle, "TotalEccErrors", _ERRORS))
            remapped = self.library.ask(handle, "RemappedRows")
            rows.append(None if remapped is None else remapped["corrRows"] + remapped["uncRows"])
        return {"ecc_errors": _sum(errors), "remapped_rows": _sum(rows)}

    def _strangers(self):
        """Note whoever is on the GPUs; asked only while this process has no context on them."""
        for handle in self.handles if self.alone else ():
            found = self.library.processes(handle)
            if found is None or self.strangers is None:
                self.strangers = None
                return
            self.strangers.update(found)

    def _low(self, word, value):
        if value is not None:
            self.lows[word] = min(value, self.lows.get(word, value))

    def _high(self, word, value):
        if value is not None:
            self.highs[word] = max(value, self.highs.get(word, value))


def _sum(values):
    return sum(values) if values and None not in values else None


class NodeWitness:
    """Watches the node through one measurement: lines of the kernel's log, interrupts, how busy it was before."""

    def __init__(self, context):
        self.root = context.root
        self.began = time.monotonic()
        self.log = self._end_of_log()
        self.interrupts = _interrupts(self.root)

    def told(self, interrupts=False):
        """Return ``seconds``, ``xids`` (where the log may be read) and, when asked for, the busiest interrupts."""
        told = {"seconds": round(time.monotonic() - self.began, 3)}
        if self.log is None:
            told["log_unread"] = "/dev/kmsg is not there or may not be read"
        else:
            told["xids"] = [line[:200] for line in self._new_lines() if "NVRM: Xid" in line or "SXid" in line][:20]
            os.close(self.log)
            self.log = None
        if interrupts and self.interrupts:
            now = _interrupts(self.root)
            grown = {name: count - self.interrupts.get(name, 0) for name, count in now.items()}
            busiest = sorted((item for item in grown.items() if item[1] > 0), key=lambda item: (-item[1], item[0]))
            told["interrupts"] = dict(busiest[:_INTERRUPTS])
        return told

    def _end_of_log(self):
        try:
            log = os.open(self.root + "/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        os.lseek(log, 0, os.SEEK_END)
        return log

    def _new_lines(self):
        text = b""
        while len(text) < _LOG_CAP:
            try:
                part = os.read(self.log, 16384)
            except BrokenPipeError:  # overwritten while we read; the next read goes on behind it
                continue
            except OSError:
                break
            if not part:
                break
            text += part if part.endswith(b"\n") else part + b"\n"
        return text.decode("utf-8", "replace").split("\n")


def _interrupts(root):
    """Return how often each interrupt came, over all CPUs, by the name of its source."""
    try:
        with open(root + "/proc/interrupts", encoding="utf-8", errors="replace") as file:
            rows = file.read(8 << 20).split("\n")
    except OSError:
        return {}
    found = {}
    for row in rows[1:]:
        name, _, rest = row.strip().partition(":")
        words = rest.split()
        counts = []
        while words and words[0].isdigit():
            counts.append(int(words.pop(0)))
        if counts:
            label = words[-1] if name.isdigit() and words else name
            found[label] = found.get(label, 0) + sum(counts)
    return found
