"""
The kernel log: dmesg, journalctl -k, syslog, excerpts of them.

Source:
    ``dmesg`` in all its time formats, ``journalctl -k``, /var/log/kern.log, /var/log/syslog, /var/log/messages.
    Messages of the NVIDIA driver 450 to 595, the mlx5 driver and the kernel; forms in :mod:`hwcheck.parse.xid_lines`
    and :mod:`hwcheck.parse.kernel_rules`, prefixes in :mod:`hwcheck.parse.log_prefix`.
Shape:
    Xids by GPU, SXids by switch, all else as events of the node. Like lines are counted in one record; the number of
    records is bounded, so a log of any length can be read line by line with :class:`KernelLog`.
Units:
    none.
Missing:
    ``dmesg: read kernel buffer failed`` → DENIED. An Xid line that ends within its number → UNPARSABLE. That a log
    shows no Xid says something only when the log is known to cover a time: see ``kernel.log.window``.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from hwcheck.evidence import Output
from hwcheck.facts import NODE, Reason, Subject, gpu_at
from hwcheck.facts import pci_address as _pci_address
from hwcheck.parse.format import fmt
from hwcheck.parse.kernel_rules import ADDRESS, INTEREST, event_of
from hwcheck.parse.log_groups import Groups, put_log, put_records
from hwcheck.parse.log_meaning import Spread, asked_for, is_before
from hwcheck.parse.log_openers import OPENS, SIGNATURE
from hwcheck.parse.log_prefix import ANYWHERE, clock, from_journal, split_prefix
from hwcheck.parse.sink import FactSink
from hwcheck.parse.xid_lines import read_sxid, read_xid

pci_address = lru_cache(maxsize=512)(_pci_address)  # a storm names the same few devices a million times

GIVES = ("xid.*", "sxid.*", "kernel.log.*", "driver.api_mismatch")

_MESSAGE_LENGTH = 1000  # no driver message is longer; keeps the patterns cheap on hostile lines
_TIMES = 32

_LOADING = re.compile(
    r"NVRM: loading NVIDIA UNIX .{0,60}?Kernel Module(?: for \S{1,20})?\s{1,4}(\d{3}\.\d{1,3}(?:\.\d{1,3})?)"
)
_IDENTITY = re.compile(rf"NVRM: GPU at PCI:({ADDRESS}): (GPU-[0-9a-f-]{{36}})")
_SERIAL = re.compile(r"NVRM: GPU Board Serial Number: (\w{6,20})")
_CLIENT = re.compile(r"API mismatch: the client .{0,80}?version (\d[\d.]*\d)")
_MODULE = re.compile(r"kernel module has the version (\d[\d.]*\d)")
_BOOT = ("Linux version ", "PCI host bridge to bus", "Run /init as init")
_DENIED = re.compile(r"dmesg: read kernel buffer failed: (.{1,60})")


class KernelLog:
    """
    Reads a kernel log line by line, in bounded memory.

    Feed it every line, then let it put its facts. A million lines cost a few seconds.
    """

    def __init__(self) -> None:
        self._lines = 0
        self._first = self._last = ""
        self._xids, self._sxids, self._events = Groups(), Groups(), Groups()
        self._spread: dict[tuple[str, int], Spread] = {}
        self._counts = {"xid": 0, "sxid": 0}
        self._cut: tuple[str, int] | None = None
        self._boot = self._switches = False
        self._booted = ""
        self._load: dict[str, Any] | None = None
        self._mismatch: dict[str, Any] | None = None
        self._denied: tuple[str, int] | None = None
        self._gpus: dict[str, dict[str, tuple[str, int]]] = {}
        self._gpu = ""
        self._limited: set[str] = set()
        self._unsupported = ""

    def feed(self, text: str, line: int) -> None:
        """
        Take one line.

        Args:
            text: the line, free of escapes.
            line: its 1-based number in the file.
        """
        self._lines += 1
        self._last = text
        if self._lines == 1:
            self._first = text
        if text.startswith("{") and (entry := from_journal(text)) is not None:
            text = entry
        if INTEREST.search(text, 0, _MESSAGE_LENGTH + 200) is None:
            if self._lines == 1 and (denied := _DENIED.match(text)):
                self._denied = denied[1], line
            return
        time, message = split_prefix(text[: _MESSAGE_LENGTH + 200])
        message = message[:_MESSAGE_LENGTH]
        if "NVRM" in message:
            self._driver(message, time, line)
        elif "SXid" in message:
            self._switch(message, time, line)
        elif "nvidia-nvswitch" in message:
            self._switches = True
        elif any(sign in message for sign in _BOOT):
            self._boot = True
            if message.startswith("Linux version "):
                self._booted = time
        else:
            self._event(message, time, line)

    def _driver(self, message: str, time: str, line: int) -> None:
        if "NVRM: Xid (" in message:
            self._xid(message, time, line)
        elif (loading := _LOADING.search(message)) is not None:
            self._load = {"version": loading[1], "line": line, "time": time}
        elif (identity := _IDENTITY.search(message)) is not None:
            self._gpu = identity[1]
            if len(self._gpus) < 64:
                self._gpus.setdefault(identity[1], {})["gpu.uuid"] = identity[2], line
        elif (serial := _SERIAL.search(message)) is not None and self._gpu in self._gpus:
            self._gpus[self._gpu]["gpu.serial"] = serial[1], line
        elif not self._api_mismatch(message, line):
            self._event(message, time, line)

    def _api_mismatch(self, message: str, line: int) -> bool:
        """Read the four lines of an API mismatch; only the first one carries the time."""
        client, module = _CLIENT.search(message), _MODULE.search(message)
        if client is not None:
            self._mismatch = {"client": client[1], "module": "", "line": line, "text": message.strip()[:200]}
        if module is not None and self._mismatch is not None:
            self._mismatch["module"] = self._mismatch["module"] or module[1]
        return client is not None or module is not None

    def _xid(self, message: str, time: str, line: int) -> None:
        self._counts["xid"] += 1
        read = read_xid(message)
        address = pci_address(read.at) if read is not None else None
        if read is None or address is None:
            self._cut = self._cut or (message, line)
            return
        key = (read.code, read.unit, read.fatal, read.link, read.action)
        record = self._xids.again(address, key, time, line) or self._xids.add(
            address, key, time, line, message.strip(),
            code=read.code, unit=read.unit, fatal=read.fatal, link=read.link, words=read.words,
            action=read.action, pid=read.pid, name=read.name,
        )  # fmt: skip
        if record is not None:
            spread = self._spread.get((address, read.code))
            if spread is None:
                spread = self._spread[address, read.code] = Spread()
            spread.add(read, time)

    def _switch(self, message: str, time: str, line: int) -> None:
        self._counts["sxid"] += 1
        read = read_sxid(message)
        address = pci_address(read.at) if read is not None else None
        if read is None or address is None:
            self._cut = self._cut or (message, line)
            return
        key = (read.code, read.fatal, read.link, bool(read.text))
        self._sxids.add(
            address,
            key,
            time,
            line,
            message.strip(),
            code=read.code,
            fatal=read.fatal,
            link=read.link,
            meaning=read.text,
        )

    def _event(self, message: str, time: str, line: int) -> None:
        event = event_of(message)
        if event is None:
            return
        kind, device, detail = event
        if kind == "nvrm.off_bus" and ((pci_address(device) or device), 79) in self._spread:
            return  # the words of an Xid 79 that was told already
        if kind == "nvrm.unsupported":
            if device or detail:
                self._unsupported = device  # the GPU stands in the first line of the message
            device = self._unsupported
        if kind == "nvrm.gsp_limited":
            self._limited.add(pci_address(device) or device)
        record = self._events.add(
            device, (kind,), time, line, message.strip(), kind=kind, device=device, detail=detail, times=[]
        )
        if record is not None and kind == "mlx5.link_down" and (now := clock(time)) is not None:
            record["times"] = [*record["times"][1 - _TIMES :], now[1]]  # flaps are judged by their rate

    def finish(self, facts: FactSink) -> None:
        """Put what was read as facts."""
        for address, names in self._gpus.items():
            for name, (value, line) in names.items():
                facts.put(gpu_at(address), name, value, line)
        for address, records in self._xids.devices():
            for record in records:
                spread = self._spread[address, record["code"]]
                record |= {"programs": len(spread.programs), "places": len(spread.places)}
                record["stale"] = is_before(record, self._loaded())
                record["limited"] = address in self._limited
            put_records(facts, gpu_at(address), "xid.events", records, ("code", "unit", "fatal", "link", "action"))
        for address, records in self._sxids.devices():
            for record in records:
                record["stale"] = is_before(record, self._loaded())
            put_records(facts, Subject("switch", address), "sxid.events", records, ("code", "fatal", "link", "meaning"))
        if self._mismatch is not None:
            facts.put(NODE, "driver.api_mismatch", self._mismatch, self._mismatch["line"])
        if self._load is not None:
            facts.put(NODE, "kernel.log.driver_load", self._load, self._load["line"])
        self._put_reach(facts)

    def _put_reach(self, facts: FactSink) -> None:
        """Put how far the log reaches, and the counts whose zero means something only within that reach."""
        if self._denied is not None and self._lines == 1:
            facts.put(NODE, "kernel.log.denied", *self._denied)
            for name in ("kernel.log.window", "kernel.log.xids", "kernel.log.sxids", "kernel.log.events"):
                facts.missing(NODE, name, Reason.DENIED, *self._denied)
            return
        window = self._window(facts.output)
        if facts.seen(NODE, "kernel.log.denied") or not (self._lines or window["proves"]):
            return  # an empty text proves nothing, but for a grep that was asked and found nothing
        records = self._events.records()
        for record in records:
            record |= {"stale": is_before(record, self._booted), "times": tuple(record["times"])}
        put_records(facts, NODE, "kernel.log.events", records, ("kind", "device"))
        for name, count in self._counts.items():
            if self._cut is not None and ("SXid" in self._cut[0]) == (name == "sxid"):
                facts.unparsable(NODE, f"kernel.log.{name}s", *self._cut)
            else:
                facts.put(NODE, f"kernel.log.{name}s", count + (facts.seen(NODE, f"kernel.log.{name}s") or 0))
        before = facts.seen(NODE, "kernel.log.window")
        if before is None or _reach(window) >= _reach(before):
            facts.put(NODE, "kernel.log.window", window)

    def _window(self, output: Output) -> dict[str, Any]:
        proves: set[str] = set()
        if self._boot:
            # A whole boot is shown, not lines picked by a grep: what is absent did not happen in this time.
            proves.add("kernel")
            proves |= {"xid"} if self._load is not None else set()
            proves |= {"sxid"} if self._switches else set()
        if not self._lines:
            proves |= asked_for(output.command)
        whole = output.reason is None
        return {
            "proves": tuple(sorted(proves)) if whole else (),
            "whole": whole and self._lines > 0 and "|" not in output.command,
            "lines": self._lines,
            "time": split_prefix(self._first)[0],
            "last_time": split_prefix(self._last)[0],
            "truncated": self._xids.dropped + self._sxids.dropped + self._events.dropped,
        }

    def _loaded(self) -> str:
        return self._load["time"] if self._load is not None else ""


def _reach(window: dict[str, Any]) -> tuple[int, int]:
    return len(window["proves"]), window["lines"]


@fmt(
    "kernel.log",
    "kernel log (dmesg, journalctl -k, syslog)",
    gives=GIVES,
    opens=OPENS,
    command=r"\bdmesg\b|\bjournalctl\b.*(?:\s-k\b|--dmesg|_TRANSPORT=kernel)|/var/log/(?:kern\.log|syslog|messages)",
    lines=True,
    digest=KernelLog,
    rank=70,
)
def parse_kernel_log(output: Output, facts: FactSink) -> None:
    """Put what the kernel log holds."""
    put_log(output, facts, KernelLog)


@fmt(
    "kernel.line",
    "lines of the NVIDIA driver behind an unknown prefix",
    gives=GIVES,
    opens=SIGNATURE,
    lines=True,
    digest=KernelLog,
    rank=ANYWHERE,
)
def parse_kernel_line(output: Output, facts: FactSink) -> None:
    """Put what these lines hold; they are an excerpt and prove no absence."""
    put_log(output, facts, KernelLog)
