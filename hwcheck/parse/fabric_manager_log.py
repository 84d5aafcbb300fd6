"""
Fabric Manager's log, and its lines in the journal.

Source:
    /var/log/fabricmanager.log of nvidia-fabricmanager 470 to 580 (HGX boards with NVSwitch), and what nv-fabricmanager
    writes to syslog. Why it does not start is read in :mod:`hwcheck.parse.nvidia_errors`.
Shape:
    NVSwitch errors by switch and port; start, registered GPUs and other errors of the node. Records run over several
    lines; only the first one carries a time::

        [Mar 03 2025 08:11:02] [INFO] [tid 953] Received an inband message:  Message header details: ...
        Message payload details:Team release request: Team Handle:5ad0c3 Flags:0

        [Mar 03 2025 08:15:40] [ERROR] [tid 977] detected NVSwitch non-fatal error 12028 on fid 0 on NVSwitch pci
        bus id 00000000:c4:00.0 physical id 1 port 12
Units:
    none.
Missing:
    An error line that ends before its port is counted with what it tells. What stands before the last start in the
    log is not known to be over: a restart of Fabric Manager alone heals no GPU.
"""

from __future__ import annotations

import re
from typing import Any

from hwcheck.evidence import Output
from hwcheck.facts import NODE, Subject, pci_address
from hwcheck.parse.format import fmt
from hwcheck.parse.log_groups import Groups, put_log, put_records
from hwcheck.parse.log_prefix import clock
from hwcheck.parse.sink import FactSink

GIVES = ("fabricmanager.log.*",)

_STAMP = r"\[(?P<time>[A-Z][a-z]{2} [ \d]\d \d{4} \d\d:\d\d:\d\d)\] \[(?P<level>[A-Z]{3,10})\] \[tid \d{1,10}\]\s?"
_LINE = re.compile(_STAMP + r"(?P<text>.*)")
_WHEN = r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\S{8,24}"
_DAEMON = r" \S{1,64} nv-fabricmanager(?:\[\d{1,10}\])?: "
_JOURNAL = re.compile(rf"(?P<time>{_WHEN}){_DAEMON}(?P<text>.*)")
_SWITCH_ERROR = re.compile(
    r"detected NVSwitch (?P<severity>non-fatal|fatal) error (?P<code>\d{1,6}) on"
    r"(?: fid \d{1,4} on)? NVSwitch pci bus id (?P<at>[0-9A-Fa-f:.]{7,20})"
    r"(?: physical id (?P<id>\d{1,4}))?(?: port (?P<port>\d{1,4}))?"
)
_VERSION = re.compile(r"Fabric Manager version (\d[\d.]*\d) is running")
_EXPECTED = re.compile(r"number of devices specified in topology file NVSwitches: \d{1,4}, GPUs: (\d{1,4})")
_REGISTERED = re.compile(r"added GPU with UUID (GPU-[0-9a-f-]{36})")
_SETTLED = 120.0  # seconds after the start in which all GPUs of a board register; seen: 9
_QUIET = ("INFO", "WARNING", "DEBUG", "NOTICE")


class FabricManagerLog:
    """Reads the log line by line, in bounded memory."""

    def __init__(self) -> None:
        self._switches, self._errors = Groups(), Groups()
        self._start: dict[str, Any] | None = None
        self._gpus: set[str] = set()
        self._began: tuple[str, float] | None = None
        self._last = ""

    def feed(self, text: str, line: int) -> None:
        """Take one line and its 1-based number in the file."""
        text = text[:1000]
        match = _LINE.match(text)
        journal = _JOURNAL.match(text) if match is None else None
        found = match or journal
        if found is None:
            return  # the rest of a record
        self._last = found["time"]
        message = found["text"]
        level = match["level"] if match is not None else "JOURNAL"
        if message.startswith("detected NVSwitch ") and " error " in message:
            self._switch_error(message, found["time"], line)
        elif level in _QUIET:
            self._progress(message, line)
        elif level != "JOURNAL":
            shape = re.sub(r"0x[0-9a-fA-F]+|\d+", "#", message[:200])
            self._errors.add("", (shape,), found["time"], line, message, level=level)

    def _switch_error(self, message: str, time: str, line: int) -> None:
        found = _SWITCH_ERROR.search(message)
        address = pci_address(found["at"]) if found is not None else None
        if found is None or address is None:
            self._errors.add("", ("switch",), time, line, message, level="ERROR")
            return
        port = int(found["port"]) if found["port"] else None
        key = (int(found["code"]), found["severity"], port)
        physical = int(found["id"]) if found["id"] else None
        self._switches.add(
            address, key, time, line, message,
            code=key[0], fatal=found["severity"] == "fatal", link=port, physical_id=physical,
        )  # fmt: skip

    def _progress(self, message: str, line: int) -> None:
        version = _VERSION.search(message)
        if version is not None:
            self._start = {"version": version[1], "expected": None, "configured": False, "line": line}
            self._gpus, self._began = set(), clock(self._last)
        elif self._start is None:
            return
        elif (expected := _EXPECTED.search(message)) is not None:
            self._start["expected"] = int(expected[1])
        elif message.startswith("Successfully configured all the available NVSwitches"):
            self._start["configured"] = True
        elif (added := _REGISTERED.search(message)) is not None and len(self._gpus) < 1024:
            self._gpus.add(added[1])

    def finish(self, facts: FactSink) -> None:
        """Put what was read as facts."""
        for address, records in self._switches.devices():
            put_records(
                facts, Subject("switch", address), "fabricmanager.log.switch_errors", records, ("code", "fatal", "link")
            )
        put_records(facts, NODE, "fabricmanager.log.errors", self._errors.records(), ("text",))
        if self._start is not None:
            now = clock(self._last)
            settled = now is not None and self._began is not None and now[1] - self._began[1] >= _SETTLED
            start = {**self._start, "gpus": len(self._gpus), "settled": settled}
            facts.put(NODE, "fabricmanager.log.start", start, start["line"])


@fmt(
    "fabricmanager.log",
    "Fabric Manager log",
    gives=GIVES,
    opens=(
        # IMEX writes its log in the same form
        r"\[[A-Z][a-z]{2} [ \d]\d \d{4} \d\d:\d\d:\d\d\] \[[A-Z]{3,10}\] \[tid \d{1,10}\]"
        r"(?!.*(?:IMEX|imex|nodes_config|gRPC|node as ID))"
        r"|Message payload details:|Fabric Manager Log initializing at: "
        r"|\s{2}Index: \d\d  Physical Id: \d"
        rf"|(?:{_WHEN}){_DAEMON}"
    ),
    command=r"\bfabricmanager\.log\b",
    lines=True,
    digest=FabricManagerLog,
    rank=60,
)
def parse_fabric_manager_log(output: Output, facts: FactSink) -> None:
    """Put what the Fabric Manager log holds."""
    put_log(output, facts, FabricManagerLog)
