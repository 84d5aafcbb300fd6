"""
Properties of systemd units.

Source: ``systemctl show UNIT...`` of systemd 219 to 258, with or without ``--property=``.
Shape: ``service.*`` per unit; a block of ``Name=value`` lines a unit, an empty line between them, Id names the unit.
Units: LimitMEMLOCK is in bytes, the fact in KiB.
Missing: a unit that is not there has ``LoadState=not-found`` and no state. Without systemd as init (a container) the
    command says so, and there are no facts. ``[not set]`` and an empty value give none.
"""

from __future__ import annotations

import re

from hwcheck.errors import ParseError
from hwcheck.evidence import Output
from hwcheck.facts import Subject, count
from hwcheck.parse.format import fmt
from hwcheck.parse.memlock import kibibytes
from hwcheck.parse.sink import FactSink

_UNIT = re.compile(r"[\w@:.\\-]{1,100}\.(?:service|socket|target|timer|mount|path|slice)")
_ROW = re.compile(r"^([A-Za-z]\w{1,60})=(.{0,4000})$")
_WORDS = {
    "ActiveState": "service.active",
    "SubState": "service.sub",
    "UnitFileState": "service.enabled",
    "Result": "service.result",
}
_COUNTS = {"MainPID": "service.pid", "NRestarts": "service.restarts"}
_NO_SYSTEMD = ("System has not been booted with systemd", "Running in chroot", "Failed to connect to bus: Host is down")

Block = dict[str, tuple[str, int]]


@fmt(
    "systemctl.show",
    "systemctl show",
    gives=("service.*",),
    opens=rf"Id={_UNIT.pattern}\s*$",
    continues=r"^(?:[A-Za-z]\w{1,60}=|$)",
    command=r"(?:^|[\s/|;&])systemctl\s+(?:-\S+\s+)*show\b",
)
def systemctl_show(output: Output, facts: FactSink) -> None:
    """Read block after block."""
    first = next((text for text in output.lines if text.strip()), "")
    if first.startswith(_NO_SYSTEMD):
        return
    if output.lines and not any(_ROW.match(text[:4100]) for text in output.lines):
        raise ParseError(f"systemctl says: {first[:100]}", output.first_line)
    block: Block = {}
    for number, text in enumerate(output.lines, output.first_line):
        row = _ROW.match(text[:4100])
        if row and not (row[1] == "Id" and "Id" in block):
            block[row[1]] = row[2].strip(), number
        elif row or not text.strip():
            _unit(block, facts)
            block = {row[1]: (row[2].strip(), number)} if row else {}
    _unit(block, facts)


def _unit(block: Block, facts: FactSink) -> None:
    unit = Subject("unit", block.get("Id", ("", 0))[0])
    if not _UNIT.fullmatch(unit.id):
        return
    loaded = block.get("LoadState", ("", 0))
    if loaded[0]:
        facts.put(unit, "service.loaded", loaded[0][:40], loaded[1])
    if loaded[0] == "not-found":
        return
    for key, fact in _WORDS.items():
        text, number = block.get(key, ("", 0))
        if text:
            facts.put(unit, fact, text[:40], number)
    for key, fact in _COUNTS.items():
        text, number = block.get(key, ("", 0))
        if text and text != "[not set]":
            facts.read(unit, fact, count, text, number)
    _settings(unit, block, facts)


def _settings(unit: Subject, block: Block, facts: FactSink) -> None:
    stale, line = block.get("NeedDaemonReload", ("", 0))
    if stale in ("yes", "no"):
        facts.put(unit, "service.reload_needed", stale == "yes", line)
    limit, line = block.get("LimitMEMLOCK", ("", 0))
    if limit and limit != "[not set]":
        facts.read(unit, "service.limit_memlock", kibibytes, limit, line)
    policy, line = block.get("NUMAPolicy", ("", 0))
    if policy:
        mask = block.get("NUMAMask", ("", 0))[0]
        default = policy in ("n/a", "default", "-1", "0")
        facts.put(unit, "service.numa_policy", "default" if default else f"{policy} {mask}".strip()[:200], line)
    if "CPUAffinity" in block:
        facts.put(unit, "service.cpu_affinity", block["CPUAffinity"][0][:400], block["CPUAffinity"][1])
